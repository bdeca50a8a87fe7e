"""Which commands checked the work, and what they came to."""

import pytest

from agent_relay.domain.documents.packet import Blocker, ValidationState
from agent_relay.domain.facts import CommandRun, Facts, Message, ToolError
from agent_relay.packet.extract.outcomes import (
    build_blockers,
    build_runs,
    build_state,
    find_checks,
    find_telling_line,
)


def _facts(*runs: tuple[str, int | None, str]) -> Facts:
    commands = tuple(CommandRun(command, output, code, 1, place="t:9") for command, code, output in runs)
    return Facts(agent="a", conversation=(Message("user", "go", 1),), commands=commands)


def test_checks_are_recognised_through_what_runs_them() -> None:
    """Agents hardly ever type `pytest` alone."""
    rows = {
        "pytest": ["tests"],
        "cd api && PYTHONPATH=. uv run --with x pytest -q tests": ["tests"],
        "python3 -m pytest -x": ["tests"],
        "python -m unittest discover": ["tests"],
        ".venv/bin/pytest tests | tail -5": ["tests"],
        "bash -lc 'cd x && cargo test'": ["tests"],
        "npx --yes vitest run": ["tests"],
        "npm test -- --watch=false": ["tests"],
        "npm run lint": ["lint"],
        "pnpm run type-check": ["typecheck"],
        "pnpm exec tsc --noEmit": ["typecheck"],
        "yarn test:unit": ["tests"],
        "go test ./...": ["tests"],
        "go vet ./...": ["lint"],
        "make check": ["tests"],
        "make -C sub lint": ["lint"],
        "ruff check . && mypy src && pytest": ["lint", "typecheck", "tests"],
        "ruff format --check .": ["lint"],
        "timeout 60 env CI=1 jest": ["tests"],
        "sudo -u me time pytest": ["tests"],
        "coverage run -m pytest": ["tests"],
        "./gradlew test": ["tests"],
        "node --test": ["tests"],
        "./run_tests.sh": ["tests"],
        "poetry run pyright": ["typecheck"],
        "(cd x && pytest 2>&1) | tee log": ["tests"],
        "make deps\npytest -q \\\n  tests": ["tests"],
        "env": [],
        "pytest # && mypy": ["tests"],
        "echo 'unclosed && pytest": [],
        "cat tests/test_x.py": [],
        "grep -rn pytest .": [],
        "ruff format .": [],
        "pytest --version": [],
        "test -f x && echo yes": [],
        "git commit -m 'run pytest'": [],
        "make build": [],
        "": [],
        "bash": [],
        "cd x": [],
    }
    assert {command: [check.kind for check in find_checks(command)] for command in rows} == rows


@pytest.mark.parametrize(
    ("command", "code", "output", "tests"),
    [
        ("pytest", 0, "", "passed"),
        ("pytest", 1, "", "failed"),
        ("pytest | tail -3", 0, "1 failed, 2 passed", "failed"),
        ("pytest | tail -3", 0, "3 passed", "passed"),
        ("pytest | tail -3", 0, "", None),
        ("pytest || true", 0, "FAILED test_x.py::test_y", "failed"),
        ("pytest; echo done", 0, "done", None),
        ("cd x && pytest && echo ok", 0, "ok", "passed"),
        ("pytest", None, "cut off", None),
        ("pytest", None, "== 2 failed ==", "failed"),
    ],
)
def test_a_hidden_status_is_not_believed(
    command: str, code: int | None, output: str, tests: str | None
) -> None:
    """The status of a pipe is its last program's: `pytest | tail` always "succeeds"."""
    runs = build_runs(_facts((command, code, output)), agent="a")
    assert build_state(runs).tests == tests


def test_a_pipes_status_is_not_told_as_the_tests() -> None:
    """A successor who reads "exit 0" would believe it."""
    [run] = build_runs(_facts(("pytest | tail -3", 0, "1 failed")), agent="a")
    assert (run.exit_code, run.verdict) == (None, "failed")


def test_of_several_checks_the_output_tells_which_failed() -> None:
    """`ruff && pytest` with status 1: the tests failed, the lint passed."""
    runs = build_runs(_facts(("ruff check . && pytest", 1, "All checks passed!\n1 failed")), agent="a")
    assert build_state(runs) == ValidationState(tests="failed", lint="passed")


def test_the_last_run_of_each_kind_is_the_state() -> None:
    """What failed and was fixed is no failure any more."""
    runs = build_runs(_facts(("pytest", 1, "1 failed"), ("mypy .", 0, ""), ("pytest", 0, "")), agent="a")
    assert build_state(runs) == ValidationState(tests="passed", typecheck="passed")
    assert [run.exit_code for run in runs] == [1, 0, 0]


def test_a_failing_test_is_a_blocker_with_its_evidence() -> None:
    """The successor needs the failing test's name and where its output stands."""
    output = "E   assert 1 == 2\nFAILED test_calc.py::test_add - assert 1 == 2\n1 failed"
    facts = _facts(("pytest -q", 1, output))
    [blocker] = build_blockers(facts, build_runs(facts, agent="a"), agent="a")
    assert blocker.id == "tests"
    assert blocker.summary == "`pytest -q` exited 1: FAILED test_calc.py::test_add - assert 1 == 2"
    assert blocker.evidence == f"t:9\n{output}"


def test_a_predecessors_blocker_goes_when_the_check_passes() -> None:
    """Carried along a chain, and dropped once the tests passed."""
    old = [Blocker(id="tests", summary="old"), Blocker(id="lint", summary="lint")]
    facts = _facts(("pytest", 0, ""))
    blockers = build_blockers(facts, build_runs(facts, agent="a"), agent="a", before=old)
    assert [blocker.summary for blocker in blockers] == ["lint"]


def test_the_last_command_that_failed_in_vain_stands_in_the_way() -> None:
    """A build that was repaired, a search without hits and a check do not."""
    facts = _facts(
        ("npm install", 1, "npm ERR! 404"),
        ("make", 2, "error: x"),
        ("make", 0, ""),
        ("grep foo bar", 1, ""),
        ("pytest", 1, "1 failed"),
        ("pip install y", 1, ""),
    )
    blockers = build_blockers(facts, (), agent="a")
    assert [(one.id, one.summary) for one in blockers] == [("command", "`pip install y` exited 1")]


def test_the_last_tools_error_is_a_blocker() -> None:
    """The agent stopped on it."""
    facts = Facts(
        agent="a",
        conversation=(Message("user", "go", 1),),
        errors=(ToolError("Edit", "String not found", 1, place="t:3"),),
    )
    [blocker] = build_blockers(facts, (), agent="a", before=[Blocker(id="tool", summary="old")])
    assert (blocker.id, blocker.summary, blocker.evidence) == (
        "tool",
        "Edit failed: String not found",
        "t:3\nString not found",
    )


def test_the_telling_line_is_found() -> None:
    """One line has to stand for pages of output."""
    rows = {
        "collected 1\nE   ValueError: no\nFAILED a::b\n1 failed in 2s": "FAILED a::b",
        "Traceback\n  File x\nKeyError: 'k'": "KeyError: 'k'",
        "src/a.ts(1,2): error TS2322: no": "src/a.ts(1,2): error TS2322: no",
        "just this\n\n": "just this",
        "FAIL src/cart.test.ts\n  ● sum\n\n    expect(received).toBe(expected)\n\n    Expected: 300\n"
        "    Received: 270\n\n      at src/cart.test.ts:4:5\n\nTests: 1 failed, 3 passed": (
            "Expected: 300, Received: 270"
        ),
        "FAIL src/cart.test.ts > total\nAssertionError: expected 270 to be 300\n\nTests 1 failed": (
            "AssertionError: expected 270 to be 300"
        ),
        "--- FAIL: TestTotal (0.00s)\n    cart_test.go:12: got 270, want 300\nFAIL\nFAIL\tshop\t0.01s": (
            "cart_test.go:12: got 270, want 300"
        ),
        "F\nFAIL: test_total (cart.Total)\nAssertionError: 270 != 300\n\nFAILED (failures=1)": (
            "AssertionError: 270 != 300"
        ),
        "not ok 1 - total\n  ---\n  expected: 300\n  actual: 270\n": "expected: 300, actual: 270",
        "--- FAIL: TestTotal (0.00s)\nFAIL\n": "--- FAIL: TestTotal (0.00s)",
        "": "",
    }
    assert {output: find_telling_line(output) for output in rows} == rows


def test_a_command_that_cannot_be_parsed_still_failed() -> None:
    """An open quote is no reason to lose the failure."""
    [blocker] = build_blockers(_facts(("deploy 'now", 3, "refused")), (), agent="a")
    assert blocker.summary == "`deploy 'now` exited 3: refused"
    [blocker] = build_blockers(_facts(("x" * 400, 1, "")), (), agent="a")
    assert blocker.summary == f"`{'x' * 300}…` exited 1"
