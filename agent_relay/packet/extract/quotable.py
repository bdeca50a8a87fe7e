"""Drop from facts what no packet quotes: most of what agents read and printed, and old errors."""

from agent_relay.domain.facts import CommandRun, Facts
from agent_relay.domain.values import replace
from agent_relay.packet.extract.outcomes import RUNS, find_checks, find_telling_line, has_failed
from agent_relay.packet.extract.requests import USER_SAID

# More than are shown, since blockers are shown elsewhere.
_MOST_FAILURES = 16
_ERRORS = 16

# Of every other command the last lines with a number in them are kept, because measurements settle many
# choices; the length is the most that the search for secrets reads in full.
_MEASURED_LENGTH = 300
_MEASURED_LINES = 6
_SEARCHED = 2000
# Lines of keys and encoded files are one long word, the last line a shorter one; a measured value has a name.
_LONGEST_WORD = 40
_LONGEST_ALONE = 8
# The beginnings of keys that span several lines: a single line of one could not be recognised afterwards.
_KEYS = ("PRIVATE KEY", "SECRET KEY", "Private-Lines", "LS0tLS1CRUdJTi")


def trim_facts(facts: Facts) -> Facts:
    """Remove most of the text agents read and printed, but nothing a packet is built from.

    Kept are the output of the last checks and of the last failure of each recently failed command, the
    last numbers and the failing line of other commands, the last errors, and every error that quotes the
    user.
    """
    kept = _find_quoted(facts.commands)
    last = len(facts.errors) - _ERRORS
    return replace(
        facts,
        commands=tuple(
            run if at in kept or not run.output else replace(run, output=find_measured(run))
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
            if failures < _MOST_FAILURES and has_failed(run):
                failures += 1
                kept.add(at)
    return kept


def find_measured(run: CommandRun) -> str:
    """Return the last lines of the output with numbers in them, preceded by the line that shows a failure."""
    if any(key in run.output for key in _KEYS):
        return ""
    lines = [line.strip() for line in run.output[-_SEARCHED:].splitlines()]
    if len(run.output) > _SEARCHED:
        lines = lines[1:]
    kept: list[str] = []
    length = 0
    for line in reversed(lines):
        length += len(line)
        if length > _MEASURED_LENGTH or len(kept) == _MEASURED_LINES:
            break
        if _is_measured(line):
            kept.insert(0, line)
    telling = find_telling_line(run.output) if has_failed(run) else ""
    if telling and telling not in kept and len(telling) <= _MEASURED_LENGTH:
        kept.insert(0, telling)
    return "\n".join(kept)


def _is_measured(line: str) -> bool:
    if not any(character.isdigit() for character in line):
        return False
    words = line.split()
    if len(words) == 1 and len(line) > _LONGEST_ALONE and "=" not in line.rstrip("="):
        return False
    return max(map(len, words)) <= _LONGEST_WORD
