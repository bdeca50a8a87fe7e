"""Drops what no packet quotes from facts: outputs of commands that went well, errors that are long over."""

from dataclasses import replace

from agent_relay.domain.facts import CommandRun, Facts
from agent_relay.logic.packet.checks import find_checks
from agent_relay.logic.packet.obstacles import RUNS, has_failed
from agent_relay.logic.packet.speech import TOLD

# More than are told, since those that stand in the way are told elsewhere.
_FAILURES = 16
_ERRORS = 16


def trim_facts(facts: Facts) -> Facts:
    """The facts a packet can be built of as well, without most of the text agents read and printed.

    Kept are the output of the last checks and of the last failure of each of the last failed commands,
    the last errors, and every error in which the user spoke.
    """
    kept = _find_quoted(facts.commands)
    last = len(facts.errors) - _ERRORS
    return replace(
        facts,
        commands=tuple(
            run if at in kept or not run.output else replace(run, output="")
            for at, run in enumerate(facts.commands)
        ),
        errors=tuple(error for at, error in enumerate(facts.errors) if at >= last or TOLD in error.text),
    )


def _find_quoted(runs: tuple[CommandRun, ...]) -> set[int]:
    """The places of the runs whose output may be quoted, found from the end."""
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
