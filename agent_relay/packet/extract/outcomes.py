"""Find the results of the commands an agent ran: checks (tests, lint, types), failures and blockers."""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import msgspec

from agent_relay.domain.documents.packet import Blocker, ValidationRun, ValidationState
from agent_relay.domain.facts import CommandRun, Facts
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.provenance import tell_source
from agent_relay.packet.extract.sentences import get_phrases

CheckKind = Literal["tests", "lint", "typecheck"]
KINDS: tuple[CheckKind, ...] = get_args(CheckKind)

_TESTS = (
    *("pytest", "py.test", "unittest", "nosetests", "tox", "nox", "stestr", "behave", "ctest", "bats"),
    *("jest", "vitest", "mocha", "ava", "tap", "karma", "playwright", "cypress", "rspec", "phpunit"),
    "gotestsum",
)
_LINT = (
    *("ruff", "flake8", "pylint", "black", "isort", "pre-commit", "yamllint", "shellcheck", "hadolint"),
    *("eslint", "biome", "oxlint", "stylelint", "prettier", "standard", "xo", "markdownlint"),
    *("golangci-lint", "rubocop", "clippy"),
)
_TYPES = ("mypy", "pyright", "basedpyright", "ty", "pyre", "pytype", "tsc", "vue-tsc", "flow")

PROGRAMS: dict[str, CheckKind] = {
    **dict.fromkeys(_TESTS, "tests"),
    **dict.fromkeys(_LINT, "lint"),
    **dict.fromkeys(_TYPES, "typecheck"),
}

_TESTING = (
    *("go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "swift", "dotnet", "mix", "make", "just"),
    *("gradle", "mvn", "rake", "rails", "zig", "bazel", "hatch", "meson"),
)
SUBCOMMANDS: dict[tuple[str, str], CheckKind] = {
    **{(program, "test"): "tests" for program in _TESTING},
    ("npm", "t"): "tests",
    ("cargo", "nextest"): "tests",
    ("node", "--test"): "tests",
    ("cargo", "clippy"): "lint",
    ("cargo", "fmt"): "lint",
    ("go", "vet"): "lint",
    ("deno", "lint"): "lint",
    ("cargo", "check"): "typecheck",
    ("deno", "check"): "typecheck",
}

# Their own targets and scripts are told by name.
RUNNERS = frozenset(
    {"make", "just", "npm", "pnpm", "yarn", "bun", "task", "rake", "gradle", "gradlew", "deno"}
)

# Programs that run another one, and the words they may have before it.
WRAPPERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "pixi", "coverage"), ("run",)),
    **dict.fromkeys(("bundle", "npm"), ("exec",)),
    **dict.fromkeys(("pnpm", "yarn"), ("exec", "dlx")),
    "bun": ("x",),
}
PLAIN_WRAPPERS = frozenset(
    {"npx", "bunx", "uvx", "time", "env", "sudo", "nice", "command", "exec", "xvfb-run", "stdbuf"}
)
SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
# Flags of wrappers that take the next word as their value.
VALUED_FLAGS = frozenset(
    {"--with", "--extra", "--group", "--python", "-p", "--package", "-n", "-u", "--project", "-C"}
)


Verdict = Literal["passed", "failed"]

_ASSIGNMENT = compile_late(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = compile_late(r"(?:python|pypy)\d*(?:\.\d+)?$")
_TEST_SCRIPT = compile_late(r"(?:run[-_]?)?tests?(?:\.\w+)?")
_TARGETS: tuple[tuple[re.Pattern[str], CheckKind], ...] = (
    (compile_late(r"(?:.*[:_-])?(?:type-?check|types|mypy|tsc)(?:[:_-].*)?"), "typecheck"),
    (compile_late(r"(?:.*[:_-])?(?:lint|format-check|fmt)(?:[:_-].*)?"), "lint"),
    (compile_late(r"(?:.*[:_-])?(?:tests?|check|spec|ci|unit|e2e|integration)(?:[:_-].*)?"), "tests"),
)
_FAILURES = {kind: get_phrases(f"{kind}-failed") for kind in KINDS}
_SUCCESSES = {kind: get_phrases(f"{kind}-passed") for kind in KINDS}
_TELLING = get_phrases("telling-line")
_BARE = get_phrases("bare-failure")
_REASON = get_phrases("failure-reason")
_CAME = get_phrases("came-instead")
_MAX_WORDS = 40
# Words are split character by character, several times per command; of a longer line, no status is read.
_LONGEST_LINE = 20_000


class Check(msgspec.Struct, frozen=True):
    """One check within a command; `is_certain` is whether the command's exit status is that of this check."""

    kind: CheckKind
    is_certain: bool


def find_checks(command: str) -> list[Check]:
    """Find the checks a command line ran, also behind `cd x &&`, wrappers, variables and pipes."""
    found: list[Check] = []
    parts = _split_command(command)
    for index, (words, _) in enumerate(parts):
        kind = find_kind(words)
        if kind is not None and not any(check.kind == kind for check in found):
            # A later `&&` runs only after success; after `|`, `;` or `||` the status is another's.
            after = [joint for _, joint in parts[index:-1]]
            found.append(Check(kind, all(joint == "&&" for joint in after)))
    return found


def find_kind(words: list[str]) -> CheckKind | None:
    """Return what a single command checks, or `None` if it checks nothing."""
    words = _strip_wrappers(words)
    if not words or {"--version", "--help"} & set(words):
        return None
    program = words[0].rsplit("/", 1)[-1]
    rest = [word for word in words[1:] if not word.startswith("-") or word == "--test"]
    kind = PROGRAMS.get(program) or (SUBCOMMANDS.get((program, rest[0])) if rest else None)
    if program in ("ruff", "biome") and rest[:1] == ["format"] and "--check" not in words:
        kind = None  # it changes files, it does not check them
    elif program in SHELLS:
        checks = find_checks(_find_script(words))
        kind = checks[0].kind if checks else None
    elif kind is None and program in RUNNERS:
        kind = next((found for word in rest for pattern, found in _TARGETS if pattern.fullmatch(word)), None)
    elif kind is None and _TEST_SCRIPT.fullmatch(program) and words[0] != "test":
        kind = "tests"
    return kind


def _find_script(words: list[str]) -> str:
    """Return a shell's command line (the word after a flag with `c`), or the script it was given."""
    flags = [index for index, word in enumerate(words[:3]) if word.startswith("-") and "c" in word]
    inner = words[flags[0] + 1 :] if flags else words[1:]
    return inner[0] if inner else ""


def _strip_wrappers(words: list[str]) -> list[str]:
    """Return the words of the command itself, without the wrappers that run it."""
    words = words[:_MAX_WORDS]
    while words:
        program = words[0].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[0]) or program in PLAIN_WRAPPERS:
            words = _drop_flags(words[1:])
        elif program == "timeout":
            words = _drop_flags(words[1:])[1:]
        elif program in WRAPPERS and words[1:] and words[1] in WRAPPERS[program]:
            words = _drop_flags(words[2:])
        elif _PYTHON.match(program) and "-m" in words[1:4]:
            words = words[words.index("-m") + 1 :]
        else:
            break
    return words


def _drop_flags(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in VALUED_FLAGS else words[1:]
    return words


def _split_command(command: str) -> list[tuple[list[str], str]]:
    """Split a command line into its simple commands, each with the operator that joins it to the next."""
    parts: list[tuple[list[str], str]] = []
    for line in command.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line[:_LONGEST_LINE], posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        try:
            for word in lexer:
                if word and set(word) <= set(";|&"):
                    parts.append((words, word))
                    words = []
                elif not set(word) <= set("()<>"):
                    words.append(word)
        except ValueError:
            pass  # an open quote: what came before it still counts
        if words:
            parts.append((words, ";"))
        if len(line) > _LONGEST_LINE:
            parts.append((["…"], ";"))
    return [(words, joint) for words, joint in parts if words]


def judge(run: CommandRun, check: Check, *, is_only: bool) -> Verdict | None:
    """Judge whether a check passed: by the exit status if that is its own, else by what it printed."""
    if run.exit_code == 0 and check.is_certain:
        return "passed"
    if _FAILURES[check.kind].search(run.output):
        return "failed"
    if _SUCCESSES[check.kind].search(run.output):
        return "passed"
    if run.exit_code and check.is_certain and is_only:
        return "failed"
    return None


def find_telling_line(output: str) -> str:
    """Return the most informative line of a failed command's output, empty if it printed nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith(("FAILED", "--- FAIL", "not ok"))), "")
    told = [line for line in lines if _TELLING.search(line)]
    line = first or (told[-1] if told else lines[-1] if lines else "")
    return (_find_reason(lines, line) or line) if _BARE.search(line) else line


def _find_reason(lines: Sequence[str], bare: str) -> str:
    """Find what was expected and what came: the first such line below the failure, else the last above."""
    at = lines.index(bare)
    reasons = [place for place, line in enumerate(lines) if _REASON.search(line)]
    below = [place for place in reasons if place > at]
    if not reasons:
        return ""
    chosen = below[0] if below else reasons[-1]
    came = next(iter(lines[chosen + 1 : chosen + 2]), "")
    return f"{lines[chosen]}, {came}" if _CAME.search(came) else lines[chosen]


_TAIL = 1500
RUNS = 12
_COMMAND_LENGTH = 300
_LONGEST_PROGRAM = 1000
# For these programs, a status other than 0 is an answer, not a failure.
_ASKING = frozenset({"grep", "rg", "diff", "test", "[", "which", "cmp", "pgrep", "ls", "find", "cat", "git"})


def build_runs(
    facts: Facts, *, agent: str, before: Iterable[ValidationRun] = ()
) -> tuple[ValidationRun, ...]:
    """List the last checks with their verdicts.

    An exit status is `None` if the command's status is not that of the check.
    """
    runs = list(before)
    for run in facts.commands:
        checks = find_checks(run.command)
        for check in checks:
            verdict = judge(run, check, is_only=len(checks) == 1)
            is_own = check.is_certain and (len(checks) == 1 or run.exit_code == 0 or verdict == "failed")
            runs.append(
                ValidationRun(
                    kind=check.kind,
                    command=run.command[:_COMMAND_LENGTH],
                    exit_code=run.exit_code if is_own else None,
                    at=run.at,
                    output_tail=run.output[-_TAIL:].strip(),
                    verdict=verdict,
                    source=tell_source(agent, run),
                )
            )
    return tuple(runs[-RUNS:])


def build_state(runs: Sequence[ValidationRun]) -> ValidationState:
    """Build the state after the last run of each kind; a pass before files changed counts as unknown."""
    last = {run.kind: None if run.verdict == "passed" and run.changed_since else run.verdict for run in runs}
    return ValidationState(tests=last.get("tests"), lint=last.get("lint"), typecheck=last.get("typecheck"))


def build_blockers(
    facts: Facts, runs: Sequence[ValidationRun], *, agent: str, before: Iterable[Blocker] = ()
) -> tuple[Blocker, ...]:
    """List the blockers: failing checks, the last failed command, the last failed tool call.

    A predecessor's blocker stays until the same kind of thing is tried again.
    """
    found = {blocker.id: blocker for blocker in before}
    last = {run.kind: run for run in runs}
    for kind in KINDS:
        run = last.get(kind)
        if run is not None and run.verdict != "failed":
            found.pop(kind, None)
        elif run is not None:
            found[kind] = _block_check(kind, run)
    turn = _find_last_turn(facts)
    if facts.commands:
        found.pop("command", None)
        failed = [run for run in _list_failures(facts.commands) if run.turn == turn]
        if failed:
            found["command"] = _block_command(failed[-1], agent)
    errors = [error for error in facts.errors if error.turn == turn]
    if facts.conversation:
        found.pop("tool", None)
    if errors:
        error = errors[-1]
        source = tell_source(agent, error)
        summary = f"{error.tool} failed: {find_telling_line(error.text)}"
        evidence = _tell_evidence(error.place, error.text)
        found["tool"] = Blocker(id="tool", summary=summary, evidence=evidence, source=source)
    return tuple(found.values())


def _find_last_turn(facts: Facts) -> int:
    """Return the last turn the agent worked in; an unanswered prompt does not make failures outdated."""
    said = [one.turn for one in facts.conversation if one.role == "assistant"]
    return max([*said, *(one.turn for one in facts.commands), *(one.turn for one in facts.errors)], default=0)


def _block_check(kind: CheckKind, run: ValidationRun) -> Blocker:
    place = run.source.transcript if run.source else ""
    status = "failed" if run.exit_code is None else f"exited {run.exit_code}"
    line = find_telling_line(run.output_tail)
    summary = f"`{_shorten(run.command)}` {status}" + (f": {line}" if line else "")
    return Blocker(
        id=kind, summary=summary, evidence=_tell_evidence(place, run.output_tail), source=run.source
    )


def _block_command(run: CommandRun, agent: str) -> Blocker:
    line = find_telling_line(run.output)
    return Blocker(
        id="command",
        summary=f"`{_shorten(run.command)}` exited {run.exit_code}" + (f": {line}" if line else ""),
        evidence=_tell_evidence(run.place, run.output),
        source=tell_source(agent, run),
    )


def _tell_evidence(place: str, output: str) -> str:
    """Return the position of the evidence in the record, then the end of the output."""
    return "\n".join(part for part in (place, output[-_TAIL:].strip()) if part)


def _list_failures(runs: Sequence[CommandRun]) -> list[CommandRun]:
    """List the last runs of commands that failed, except checks and what succeeded later."""
    found: dict[str, CommandRun] = {}
    for run in runs:
        found.pop(run.command, None)
        if has_failed(run) and not find_checks(run.command):
            found[run.command] = run
    return list(found.values())


def has_failed(run: CommandRun) -> bool:
    """Check whether a command failed; a status that merely answers a question is not a failure."""
    if not run.exit_code:
        return False
    head = run.command.lstrip()[:_LONGEST_PROGRAM]
    try:
        words = shlex.split(head)
    except ValueError:
        words = head.split()
    program = words[0].rsplit("/", 1)[-1] if words else ""
    return not (run.exit_code == 1 and program in _ASKING)


def _shorten(command: str) -> str:
    """Return a command on one line, cut to a readable length."""
    line = "; ".join(part for line in command.split("\n") if (part := line.strip()))
    return line if len(line) <= _COMMAND_LENGTH else f"{line[:_COMMAND_LENGTH]}…"
