"""Score a race: the test's exit status, then the size of the diff, then the time."""

from itertools import pairwise

from agent_relay.domain.text.counts import render_count
from agent_relay.race.model import Race, Runner, RunnerOutcome, Verdict

_PASSED, _FAILED = 0, 1


def build_verdict(race: Race) -> Verdict:
    """Rank the race's runners from best to worst, with a sentence of reasons for each.

    A runner that changed nothing comes last: the smallest diff must not win by ignoring the task. There is
    no winner if the best changed nothing or failed. Equal runners keep the order they were named in.
    """
    ranked = sorted(race.runners, key=lambda runner: _rank(race, runner))
    best = ranked[0]
    winner = best.number if best.files and _grade(race, best) == _PASSED else 0
    reasons = [_explain(race, runner) for runner in ranked]
    for place, (one, other) in enumerate(pairwise(ranked)):
        if one.files:
            reasons[place] += f"; {_compare(race, one, other)}"
    return Verdict(winner, tuple(runner.number for runner in ranked), tuple(reasons))


def _rank(race: Race, runner: Runner) -> tuple[bool, int, int, int, int]:
    return (not runner.files, _grade(race, runner), runner.lines, runner.spent_ms, runner.number)


def _grade(race: Race, runner: Runner) -> int:
    """Return 0 for passed or 1: by the test if there is one, else by whether the agent finished."""
    if race.test:
        return _PASSED if runner.test_status == 0 else _FAILED
    return _PASSED if runner.how == RunnerOutcome.FINISHED else _FAILED


def _explain(race: Race, runner: Runner) -> str:
    if not runner.files:
        return f"changed nothing ({_render_end(runner)})"
    parts = [_render_test(runner)] if race.test else [_render_end(runner)]
    if race.test and runner.how != RunnerOutcome.FINISHED:
        parts.append(_render_end(runner))
    parts.append(f"{render_count(runner.lines, 'line')} in {render_count(runner.files, 'file')}")
    parts.append(f"{runner.spent_ms / 1000:.1f} s")
    return ", ".join(parts)


def _render_test(runner: Runner) -> str:
    if runner.test_status == 0:
        return "test passed"
    return f"test {runner.test_why}" if runner.test_why else f"test failed (exit {runner.test_status})"


def _render_end(runner: Runner) -> str:
    how = runner.how.replace("-", " ")
    return f"{how}: {runner.why}" if runner.why else how


def _compare(race: Race, one: Runner, other: Runner) -> str:
    """Say why `one` ranks before `other`: the first thing in which they differ."""
    if not other.files:
        return f"{other.name} changed nothing"
    if _grade(race, one) != _grade(race, other):
        return f"{other.name} {'failed the test' if race.test else 'did not finish'}"
    if one.lines != other.lines:
        return f"{render_count(other.lines - one.lines, 'line')} less than {other.name}"
    if one.spent_ms != other.spent_ms:
        return f"as many lines as {other.name}, {(other.spent_ms - one.spent_ms) / 1000:.1f} s faster"
    return f"a tie with {other.name}, broken by the order given"
