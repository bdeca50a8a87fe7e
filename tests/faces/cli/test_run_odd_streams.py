"""`agent-relay run` where a standard stream is full, closed, ignored or no text."""

import io
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent_relay.faces.cli.session.run import read_task
from tests.house import tree
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, relay_world, wait_until

SCENES = [
    {"when": "soon", "again": True, "do": [{"say": "I begin."}, {"wait_s": 30}, {"say": "I end."}]},
    {"when": "short", "again": True, "do": [{"wait_s": 2}, {"say": "I end."}]},
    {"when": "faces", "again": True, "do": [{"say": "\U0001f600" * 200_000}]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents; `run` starts the daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        made.environ["PYTHONPATH"] = tree.CHECKOUT
        yield made


def shell(world: RelayWorld, script: str, *, given: bytes = b"") -> tuple[int, str, str]:
    """How a script ended in which `run` is our command."""
    command = f'run() {{ {sys.executable} -m agent_relay run "$@"; }}; {script}'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=world.project,
        env=world.environ,
        input=given,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def has_agent(world: RelayWorld) -> bool:
    """Whether a scripted agent lives."""
    return any("--headless" in line for line in world.processes().values())


@pytest.mark.size("test")
def test_output_that_cannot_be_written_ends_the_agent(world: RelayWorld) -> None:
    """A full disk is nobody's mistake, and an agent whose words are lost must not go on spending."""
    status, _, err = shell(world, "run demo soon > /dev/full")
    assert (status, err) == (1, "agent-relay: nothing more can be written: No space left on device\n")
    wait_until(lambda: not has_agent(world), "no agent")


@pytest.mark.size("test")
@pytest.mark.parametrize(("closed", "out"), [(">&-", ""), ("2>&-", "demo heard you\n")])
def test_a_stream_that_is_closed_is_nobodys_mistake(world: RelayWorld, closed: str, out: str) -> None:
    """Supervisors start programs like that; what would be said there is not said."""
    status, said, err = shell(world, f"run demo hello {closed}")
    assert (status, said) == (0, out)
    assert "mistake" not in err


@pytest.mark.size("test")
def test_a_closed_standard_input_holds_no_task(world: RelayWorld) -> None:
    """It is wrong use, told in one sentence."""
    assert shell(world, "run demo - <&-")[::2] == (
        2,
        "agent-relay run: the task is empty\n  See: agent-relay run --help\n",
    )


def test_a_task_need_not_be_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """`git diff | agent-relay run codex -`: a diff quotes files in whatever encoding they have."""
    given = io.TextIOWrapper(io.BytesIO(b"h\xe9llo \0"), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "stdin", given)
    assert read_task().encode("utf-8", "surrogateescape") == b"h\xe9llo \0"


@pytest.mark.size("test")
def test_a_task_that_does_not_fit_is_refused_whatever_its_letters(world: RelayWorld) -> None:
    """Letters beyond ASCII take more room on their way to the daemon."""
    status, _, err = shell(world, "run demo -", given="\U0001f600".encode() * 100_000)
    assert status == 2
    assert "the task is longer than 500,000 characters" in err


@pytest.mark.size("test")
def test_absurd_numbers_are_wrong_use(world: RelayWorld) -> None:
    """Python itself refuses to read five thousand digits."""
    status, _, err = shell(world, f"run demo hello -n {'1' * 5000}")
    assert status == 2
    assert "-n needs a number from 1 to 1000" in err


@pytest.mark.size("test")
def test_letters_of_any_width_come_whole(world: RelayWorld) -> None:
    """An answer is measured as it is sent: a face takes twelve bytes there."""
    status, out, _ = shell(world, "run demo faces")
    assert (status, len(out), set(out)) == (0, 200_001, {"\U0001f600", "\n"})


@pytest.mark.size("test")
def test_a_run_outlives_the_terminal_it_was_told_to_outlive(world: RelayWorld) -> None:
    """`nohup agent-relay run …`: what whoever started it ignores stays ignored."""
    command = f"{sys.executable} -m agent_relay run demo short"
    script = f"trap '' HUP INT; {command} & sleep 1.5; kill -HUP $!; kill -INT $!; wait $!"
    assert shell(world, script)[:2] == (0, "I end.\n")
