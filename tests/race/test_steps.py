"""What is to be done next follows from the journal alone, so that any crash is followed by the right step."""

from agent_relay.race._events import (
    RaceApplied,
    RaceApplying,
    RaceBody,
    RaceCleaning,
    RaceNotApplied,
    RaceScored,
    RaceStopped,
    RunnerEnded,
    RunnerMeasured,
    RunnerPlacing,
    RunnerStarting,
    RunnerStopped,
    RunnerTesting,
)
from agent_relay.race.model import RaceStep, RunnerStep, find_race_step, find_runner_step
from tests.support.races import begin, place, settle, start, tell

ENDED = [*start(1), RunnerEnded(1, "finished", 100)]
MEASURED = [*ENDED, RunnerMeasured(1, "e4d", 1, 1, 0)]
BOTH = [*settle(1), *settle(2)]
SCORED = [*BOTH, RaceScored(1, ("1", "2"), ("", ""))]


def test_a_runner_goes_on_from_its_last_line() -> None:
    """What was under way is begun again; what is done is not."""
    rows: list[tuple[list[RaceBody], RunnerStep]] = [
        ([], RunnerStep.PLACE),
        ([RunnerPlacing(1, "b", "t")], RunnerStep.PLACE),
        (place(1), RunnerStep.START),
        ([*place(1), RunnerStarting(1)], RunnerStep.START),
        (start(1), RunnerStep.WATCH),
        ([*start(1), RunnerStopped(1, 100)], RunnerStep.START),
        (ENDED, RunnerStep.MEASURE),
        (MEASURED, RunnerStep.TEST),
        ([*MEASURED, RunnerTesting(1)], RunnerStep.TEST),
        (settle(1), RunnerStep.NOTHING),
    ]
    races = [tell(*begin("ann", "bob"), *bodies) for bodies, _ in rows]
    assert [find_runner_step(race, race.get_runner(1)) for race in races] == [step for _, step in rows]


def test_without_a_test_a_measured_runner_is_done() -> None:
    """There is nothing to wait for."""
    race = tell(*begin("ann", "bob", test=""), *MEASURED)
    assert find_runner_step(race, race.get_runner(1)) is RunnerStep.NOTHING
    assert race.is_settled(race.get_runner(1))


def test_a_race_goes_on_from_its_last_line() -> None:
    """A winner is applied once, and only where that was asked for; what is not committed is carried first."""
    rows: list[tuple[list[RaceBody], bool, RaceStep]] = [
        (MEASURED, True, RaceStep.RUN),
        (BOTH, True, RaceStep.SCORE),
        (SCORED, True, RaceStep.APPLY),
        (SCORED, False, RaceStep.NOTHING),
        ([*BOTH, RaceScored(0, ("1", "2"), ("", ""))], True, RaceStep.NOTHING),
        ([*SCORED, RaceApplying(1)], False, RaceStep.APPLY),
        ([*SCORED, RaceApplying(1), RaceNotApplied(1, "changed")], True, RaceStep.NOTHING),
        ([*SCORED, RaceApplying(1), RaceApplied(1, 1)], True, RaceStep.NOTHING),
        ([RaceStopped("Ctrl-C")], True, RaceStep.NOTHING),
        ([RaceCleaning()], True, RaceStep.NOTHING),
    ]
    races = [tell(*begin("ann", "bob", applies=applies), *bodies) for bodies, applies, _ in rows]
    assert [find_race_step(race) for race in races] == [step for *_, step in rows]
    assert find_race_step(tell(begin("ann", "bob")[0])) is RaceStep.CARRY
