"""A race's journal is its truth: every line leads to one state and one next step, and nothing else does."""

import json
from datetime import timedelta

import pytest

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.codec import render_event
from agent_relay.domain.events.session import Unknown
from agent_relay.race._events import (
    OverlapSeen,
    RaceApplied,
    RaceApplying,
    RaceBody,
    RaceCleaning,
    RaceEvent,
    RaceNotApplied,
    RaceResumed,
    RaceScored,
    RaceStopped,
    RunnerCounted,
    RunnerEnded,
    RunnerMeasured,
    RunnerPlaced,
    RunnerPlacing,
    RunnerStarted,
    RunnerStarting,
    RunnerStopped,
    RunnerTesting,
    parse_race_event,
)
from agent_relay.race.journal import fold_race
from agent_relay.race.model import (
    Overlap,
    RaceState,
    RaceStep,
    RunnerState,
    RunnerStep,
    Verdict,
    build_race_view,
    find_race_step,
    find_runner_step,
)
from tests.support.races import BEGAN, begin, number_events, place, settle, start, tell

SCORED = RaceScored(1, ("1", "2"), ("first", "second"))


def test_an_empty_journal_is_no_race() -> None:
    """A crash before the first line leaves a folder and nothing to resume."""
    assert fold_race([]) is None


def test_a_race_is_what_its_lines_say() -> None:
    """Whoever takes it up after a crash has nothing else to go by."""
    race = tell(*begin("ann", "bob"), *settle(1), *start(2), OverlapSeen(1, 2, "a.py", "both add it"))
    one, two = race.runners
    assert (race.id, race.root, race.task, race.head) == ("R", "/work", "paint the shed", "c0ffee")
    assert (race.state, race.carried, race.notes, race.base) == (RaceState.RUNNING, 3, ("a note",), "ba5e")
    assert race.overlaps == (Overlap(1, 2, "a.py", "both add it"),)
    assert (one.name, one.state, one.how, one.lines) == ("1-ann", RunnerState.TESTED, "finished", 10)
    assert (one.branch, one.tree, one.result, one.test_ms) == ("branch-1", "/trees/1", "e4d1", 1500)
    assert (one.spent_ms, one.since) == (40_000, None)
    assert (one.turns, one.tokens, one.cost) == (0, -1, "")
    assert (two.name, two.state, two.session) == ("2-bob", RunnerState.RUNNING, "S2")
    assert two.since == BEGAN + timedelta(seconds=12)
    assert race.updated_at == BEGAN + timedelta(seconds=14)


def test_a_stopped_race_goes_on_where_it_was() -> None:
    """The time a runner had before counts; it is started again in its own session."""
    stopped = [*begin("ann", "bob"), *start(1), RunnerStopped(1, 7000), RaceStopped("Ctrl-C")]
    race = tell(*stopped)
    assert (race.state, race.why, race.get_runner(1).spent_ms) == (RaceState.STOPPED, "Ctrl-C", 7000)
    race = tell(*stopped, RaceResumed(), RunnerStarting(1), RunnerStarted(1, "S1"))
    assert (race.state, race.why) == (RaceState.RUNNING, "")
    assert (race.get_runner(1).state, race.get_runner(1).spent_ms) == (RunnerState.RUNNING, 7000)


def test_a_race_interrupted_while_it_was_prepared_is_prepared_again() -> None:
    """Nothing was carried yet, so no runner may be placed."""
    race = tell(begin("ann", "bob")[0], RaceStopped("the daemon ended"), RaceResumed())
    assert (race.state, race.base) == (RaceState.PREPARING, "")


def test_what_a_runner_used_is_kept_whenever_it_is_counted() -> None:
    """It is counted while the runner works and once more at its end."""
    race = tell(*begin("ann", "bob"), *start(1), RunnerCounted(1, 2, 4711, "$0.12"))
    assert (race.get_runner(1).turns, race.get_runner(1).tokens) == (2, 4711)
    view = build_race_view(race, BEGAN)["runners"]
    assert isinstance(view, list)
    told = [(one["tokens"], one["cost"], one["turns"]) for one in view]
    assert (told[0][:2], told[1][0], told[1][2]) == ((4711, "$0.12"), None, None)
    assert race.get_runner(1).state is RunnerState.RUNNING


def test_a_verdict_an_application_and_a_refusal_are_kept() -> None:
    """`race show` tells them long afterwards."""
    over = [*begin("ann", "bob"), *settle(1), *settle(2), SCORED]
    race = tell(*over)
    assert (race.state, race.verdict) == (RaceState.SCORED, Verdict(1, (1, 2), ("first", "second")))
    refused = tell(*over, RaceApplying(1), RaceNotApplied(1, "a.py was changed meanwhile"))
    assert (refused.state, refused.failure) == (RaceState.SCORED, "a.py was changed meanwhile")
    assert (refused.applying, refused.applied) == (1, 0)
    applied = tell(*over, RaceApplying(2), RaceApplied(2, 4))
    assert (applied.state, applied.applied, applied.applied_files) == (RaceState.APPLIED, 2, 4)
    again = tell(*over, RaceApplying(2), RaceApplied(2, 4), RaceApplying(2), RaceApplied(2, 0))
    assert (again.state, again.applied, again.applied_files) == (RaceState.APPLIED, 2, 4)
    assert tell(*over, RaceCleaning()).state is RaceState.CLEANING


def test_a_line_that_cannot_follow_is_refused() -> None:
    """Going on from a journal that somebody else wrote would remove or apply the wrong thing."""
    histories: list[list[RaceBody]] = [
        [RaceCleaning()],
        [*begin("ann", "bob"), begin("ann", "bob")[0]],
        [*begin("ann", "bob"), RaceApplying(1)],
        [*begin("ann", "bob"), RunnerPlaced(1, "ba5e")],
        [*begin("ann", "bob"), *place(1), RunnerStarting(3)],
        [*begin("ann", "bob"), *place(1), RunnerStarting(0)],
    ]
    for bodies in histories:
        with pytest.raises(UntrustedDataError):
            fold_race(number_events(*bodies))


def test_a_line_of_a_newer_version_is_carried() -> None:
    """An older agent-relay may look at a race of a newer one."""
    race = tell(*begin("ann", "bob"), Unknown("race.photographed", {"by": "somebody"}))
    assert race.state is RaceState.RUNNING
    assert race.number == 3


def test_every_line_survives_the_journal() -> None:
    """What is read back is what was written, names that are not UTF-8 included."""
    bodies = [
        *begin("ann", "bob"),
        *settle(1),
        OverlapSeen(1, 2, "caf\udce9\n.py", "both add it"),
        SCORED,
        Unknown("race.photographed", {"by": "somebody"}),
    ]
    for event in number_events(*bodies):
        assert parse_race_event(json.loads(json.dumps(render_event(event)))) == event


def test_a_line_that_is_no_event_is_refused() -> None:
    """Half a line must not become half a race."""
    line = {"v": 1, "n": 1, "at": "2026-11-21T18:20:00+00:00", "event": "race.applying", "data": {}}
    for odd in ({}, line | {"v": 2, "event": "race.stopped"}, line, line | {"data": {"runner": "1"}}):
        with pytest.raises(UntrustedDataError):
            parse_race_event(odd)


def test_an_event_knows_its_number_and_moment() -> None:
    """Lines are told apart by number, and shown by time."""
    line = {"v": 1, "n": 4, "at": BEGAN.isoformat(), "event": "race.stopped", "data": {"why": "x", "new": 1}}
    assert parse_race_event(line) == RaceEvent(4, BEGAN, RaceStopped("x"))


ENDED = [*start(1), RunnerEnded(1, "finished", 100)]
MEASURED = [*ENDED, RunnerMeasured(1, "e4d", 1, 1, 0)]
BOTH = [*settle(1), *settle(2)]
DECIDED = [*BOTH, SCORED]


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
        (DECIDED, True, RaceStep.APPLY),
        (DECIDED, False, RaceStep.NOTHING),
        ([*BOTH, RaceScored(0, ("1", "2"), ("", ""))], True, RaceStep.NOTHING),
        ([*DECIDED, RaceApplying(1)], False, RaceStep.APPLY),
        ([*DECIDED, RaceApplying(1), RaceNotApplied(1, "changed")], True, RaceStep.NOTHING),
        ([*DECIDED, RaceApplying(1), RaceApplied(1, 1)], True, RaceStep.NOTHING),
        ([RaceStopped("Ctrl-C")], True, RaceStep.NOTHING),
        ([RaceCleaning()], True, RaceStep.NOTHING),
    ]
    races = [tell(*begin("ann", "bob", applies=applies), *bodies) for bodies, applies, _ in rows]
    assert [find_race_step(race) for race in races] == [step for *_, step in rows]
    assert find_race_step(tell(begin("ann", "bob")[0])) is RaceStep.CARRY
