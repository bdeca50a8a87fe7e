"""Find the outcomes of the commands an agent ran: validation runs, failures and blockers.

`trim_facts` drops what no packet quotes: the output of commands that succeeded, and old errors.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_relay.domain.documents.packet import Attempt, Blocker, ValidationRun, ValidationState
from agent_relay.domain.facts import CommandRun, Facts
from agent_relay.packet._check_commands import KINDS, Kind, find_checks, find_telling_line, judge
from agent_relay.packet._merge import tell_source
from agent_relay.packet.extract.conversation import USER_SAID

_TAIL = 1500
RUNS = 12
_FAILED_COMMANDS = 8
_COMMAND_LENGTH = 300
# A status other than 0 is these programs' answer, not a failure.
_ASKING = frozenset({"grep", "rg", "diff", "test", "[", "which", "cmp", "pgrep", "ls", "find", "cat", "git"})


def build_runs(
    facts: Facts, *, agent: str, before: Iterable[ValidationRun] = ()
) -> tuple[ValidationRun, ...]:
    """List the last checks with their verdicts.

    An exit status is `None` where the command's status is not the check's own.
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
    """Build the state after the last run of each kind."""
    last = {run.kind: run.verdict for run in runs}
    return ValidationState(tests=last.get("tests"), lint=last.get("lint"), typecheck=last.get("typecheck"))


def build_failures(facts: Facts, agent: str, *, told: Iterable[Blocker] = ()) -> list[Attempt]:
    """List commands that failed and never succeeded afterwards, as things tried in vain.

    Checks are left out, and so are the blockers `told`.
    """
    found: dict[str, Attempt] = {}
    places = {blocker.source.transcript for blocker in told if blocker.source}
    for run in facts.commands:
        found.pop(run.command, None)
        if has_failed(run) and run.place not in places and not find_checks(run.command):
            line = find_telling_line(run.output)
            found[run.command] = Attempt(
                summary=f"ran `{_shorten(run.command)}`",
                outcome=f"exit {run.exit_code}" + (f": {line}" if line else ""),
                source=tell_source(agent, run),
            )
    return list(found.values())[-_FAILED_COMMANDS:]


def build_blockers(
    facts: Facts, runs: Sequence[ValidationRun], *, agent: str, before: Iterable[Blocker] = ()
) -> tuple[Blocker, ...]:
    """List the blockers: failing checks, the last failed command, the last failed tool call.

    A predecessor's blocker stays until the same kind of thing was tried again.
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
        failed = _find_last_failure(facts.commands, turn)
        if failed is not None:
            found["command"] = _block_command(failed, agent)
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
    """Return the last turn the agent worked in; an unanswered prompt does not make failures old."""
    said = [one.turn for one in facts.conversation if one.role == "assistant"]
    return max([*said, *(one.turn for one in facts.commands), *(one.turn for one in facts.errors)], default=0)


def _block_check(kind: Kind, run: ValidationRun) -> Blocker:
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
    """Return the place of the evidence, then the end of its output."""
    return "\n".join(part for part in (place, output[-_TAIL:].strip()) if part)


def _find_last_failure(runs: Sequence[CommandRun], turn: int) -> CommandRun | None:
    """Return the last command of the turn that failed, unless it succeeded later or was a check."""
    found: dict[str, CommandRun] = {}
    for run in runs:
        found.pop(run.command, None)
        if run.turn == turn and has_failed(run) and not find_checks(run.command):
            found[run.command] = run
    return next(reversed(found.values()), None)


def has_failed(run: CommandRun) -> bool:
    """Check whether a command failed; a status that only answers a question is no failure."""
    if not run.exit_code:
        return False
    try:
        words = shlex.split(run.command)
    except ValueError:
        words = run.command.split()
    program = words[0].rsplit("/", 1)[-1] if words else ""
    return not (run.exit_code == 1 and program in _ASKING)


def _shorten(command: str) -> str:
    """Return a command on one line, cut to a readable length."""
    line = "; ".join(part for line in command.split("\n") if (part := line.strip()))
    return line if len(line) <= _COMMAND_LENGTH else f"{line[:_COMMAND_LENGTH]}…"


# More than are told, since those that stand in the way are told elsewhere.
_FAILURES = 16
_ERRORS = 16


def trim_facts(facts: Facts) -> Facts:
    """Remove most of the text agents read and printed; a packet can be built from the rest as well.

    Kept are the output of the last checks and of the last failure of each of the last failed commands, the
    last errors, and every error in which the user spoke.
    """
    kept = _find_quoted(facts.commands)
    last = len(facts.errors) - _ERRORS
    return replace(
        facts,
        commands=tuple(
            run if at in kept or not run.output else replace(run, output="")
            for at, run in enumerate(facts.commands)
        ),
        errors=tuple(error for at, error in enumerate(facts.errors) if at >= last or USER_SAID in error.text),
    )


def _find_quoted(runs: tuple[CommandRun, ...]) -> set[int]:
    """Return the indices of the runs whose output may be quoted, found from the end."""
    kept: set[int] = set()
    checks = 0
    seen: set[str] = set()
    failures = 0
    for at in range(len(runs) - 1, -1, -1):
        run = runs[at]
        if find_checks(run.command):
            checks += 1
            if checks <= RUNS:
                kept.add(at)
        elif run.command not in seen:
            seen.add(run.command)
            if failures < _FAILURES and has_failed(run):
                failures += 1
                kept.add(at)
    return kept
