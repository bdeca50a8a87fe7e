"""Build the view of a race that every face shows, from its journal alone."""

from datetime import datetime

from agent_relay.race.model import Race, RaceState, RaceStep, Runner, RunnerState, find_race_step


def build_race_view(race: Race, now: datetime) -> dict[str, object]:
    """Build the view of the race with all its runners; `None` for what is not known (yet)."""
    verdict = race.verdict
    return {
        "race": race.id,
        "state": race.state.value,
        "root": race.root,
        "task": race.task,
        "test": race.test,
        "max_time_s": race.max_time_s,
        "head": race.head,
        "began_at": race.began_at.isoformat(),
        "updated_at": race.updated_at.isoformat(),
        "notes": list(race.notes),
        "why": race.why,
        "resumable": race.state is RaceState.STOPPED or find_race_step(race) is not RaceStep.NOTHING,
        "runners": [_build_runner(race, runner, now) for runner in race.runners],
        "overlaps": [
            {
                "first": race.get_runner(overlap.first).name,
                "second": race.get_runner(overlap.second).name,
                "path": overlap.path,
                "what": overlap.what,
            }
            for overlap in race.overlaps
        ],
        "winner": race.get_runner(verdict.winner).name if verdict and verdict.winner else "",
        "ranking": [race.get_runner(number).name for number in verdict.order] if verdict else [],
        "applied": race.get_runner(race.applied).name if race.applied else "",
        "applied_files": race.applied_files,
        "failure": race.failure,
    }


def _build_runner(race: Race, runner: Runner, now: datetime) -> dict[str, object]:
    measured = bool(runner.result)
    verdict = race.verdict
    place = verdict.order.index(runner.number) if verdict else None
    return {
        "runner": runner.name,
        "number": runner.number,
        "agent": runner.agent,
        "state": runner.state.value,
        "how": runner.how,
        "why": runner.why,
        "session": runner.session,
        "branch": runner.branch,
        "tree": runner.tree,
        "spent_s": _count_seconds(runner, now),
        "files": runner.files if measured else None,
        "added": runner.added if measured else None,
        "removed": runner.removed if measured else None,
        "turns": runner.turns or None,
        "tokens": runner.tokens if runner.tokens >= 0 else None,
        "cost": runner.cost or None,
        "test": _name_test_state(race, runner),
        "test_status": runner.test_status if runner.state is RunnerState.TESTED else None,
        "test_s": runner.test_ms / 1000 if runner.state is RunnerState.TESTED else None,
        "place": place + 1 if place is not None else None,
        "reason": verdict.reasons[place] if verdict and place is not None else "",
    }


def _count_seconds(runner: Runner, now: datetime) -> float:
    going = (now - runner.since).total_seconds() if runner.since is not None else 0.0
    return round(runner.spent_ms / 1000 + max(going, 0.0), 1)


def _name_test_state(race: Race, runner: Runner) -> str:
    if not race.test:
        return "none"
    if runner.state is RunnerState.TESTED:
        return "passed" if runner.test_status == 0 else "failed"
    return "running" if runner.state is RunnerState.TESTING else "waiting"
