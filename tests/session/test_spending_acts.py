"""What follows as budgets are used, as stories: told at each mark, acted on once, never in circles."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.effects import AwaitQuiet, NoteRest, ShowMessage, StopLeg, WakeAt
from agent_relay.domain.inputs import (
    ContextFilled,
    HandoffAsked,
    Restarted,
    StateSeen,
    StopAsked,
)
from agent_relay.domain.limits import ContextWishes, Mark
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.transitions import find_spending
from agent_relay.session.views.messages import render_end_line
from tests.session.story import HERE, NOW, Story, spend
from tests.session.turn_story import TurnStory

WARN, SPENT, UNPRICED, OPEN = Mark.WARN, Mark.SPENT, Mark.UNPRICED, Mark.OPEN
UNCOUNTED = Mark.UNCOUNTED
TOMORROW = datetime(2026, 11, 22, tzinfo=UTC)
HEADLESS = replace(HERE, capabilities=frozenset({"headless"}))


def test_each_mark_is_told_once_and_a_budget_never_gets_fuller_by_being_counted_again() -> None:
    """Counts come every few seconds; a line on the screen each time would be noise."""
    story = Story().start().says("busy")
    assert story.counts(spend(WARN, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(WARN, "warn")).effects == []
    assert story.counts(spend(OPEN, "warn")).effects == []
    assert story.counts(spend(SPENT, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(SPENT, "warn"), spend(WARN, "warn")).effects == []
    assert story.count("budget.noted") == 2
    assert story.says("ready").effects == []


def test_a_budget_that_cannot_be_counted_is_told_and_that_it_can_be_again() -> None:
    """It must not stop being watched in silence, however much of it was used before; nor flood."""
    story = Story().start().says("busy")
    assert story.counts(spend(UNCOUNTED, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(UNCOUNTED, "warn")).effects == []
    assert story.counts(spend(OPEN, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(WARN, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(UNCOUNTED, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(SPENT, "warn")).effects == [ShowMessage("L1")]
    assert story.counts(spend(UNCOUNTED, "warn")).effects == []
    assert story.count("budget.noted") == 5


def test_the_next_day_begins_anew() -> None:
    """A day's budget is the day's."""
    story = Story().start().says("busy")
    story.counts(spend(SPENT, "warn"))
    later = replace(spend(WARN, "warn"), period="2026-11-22", until="2026-11-23T00:00:00+00:00")
    story.moment = TOMORROW
    assert story.counts(later).effects == [ShowMessage("L1")]
    known = find_spending(story.now, later.budget)
    assert known is not None
    assert (known.mark, known.period) == (WARN, "2026-11-22")


def test_an_agent_over_its_days_budget_gives_way_at_the_end_of_its_turn_and_rests_until_midnight() -> None:
    """The ledger keeps it from being chosen in any session; nothing is typed over, and no turn is cut."""
    story = Story().start().says("busy")
    assert story.counts(spend(SPENT, "handoff", agent="ann")).effects == [ShowMessage("L1")]
    assert story.says("ready").effects == [AwaitQuiet("L1")]
    story.quiet()
    assert story.effects == [NoteRest("ann", "budget", TOMORROW, "used up"), StopLeg("L1")]
    begun = story.now.handoff
    assert begun is not None
    assert (begun.from_agent, begun.to_agent, begun.reason, begun.why) == (
        "ann",
        "bob",
        "rate_limit",
        "used up",
    )
    assert story.names(last=2) == ["budget.applied", "handoff.begun"]


def test_a_successor_is_left_alone_and_nobody_goes_back_to_who_used_up_a_sessions_budget() -> None:
    """A chain that circled between two agents would use both up."""
    story = Story().start().says("busy")
    story.counts(*(spend(SPENT, "handoff", agent=name, day=False) for name in ("ann", "nobody-here")))
    story.says("ready").quiet()
    assert story.effects == [StopLeg("L1")]
    story.take_over().says("ready")
    assert (story.now.agent, story.effects) == ("bob", [])
    assert story.counts(spend(SPENT, "handoff", agent="ann", day=False)).effects == []
    story.limit()
    assert story.now.handoff is not None
    assert story.now.handoff.to_agent == "cas"
    assert story.now.skipped == ("ann: rests until you say otherwise (budget)",)


def test_who_goes_back_by_name_all_the_same_is_let() -> None:
    """A person may know better than their own budget; they are not thrown out a second time."""
    story = Story().start().says("busy")
    story.counts(spend(SPENT, "handoff", agent="ann"))
    story.says("ready").quiet()
    story.take_over().says("ready")
    story.happens(HandoffAsked("ann", force=True))
    story.take_over().says("ready")
    assert story.now.agent == "ann"
    assert story.counts(spend(SPENT, "handoff", agent="ann")).effects == []
    story.says("busy")
    assert story.says("ready").effects == []
    assert story.count("budget.applied") == 1


def test_nobody_left_is_rest_until_the_day_is_over() -> None:
    """All others rest: the session waits for its own agent's midnight, not for ever."""
    story = Story().start().says("busy")
    for name in ("bob", "cas"):
        story.availability[name] = Availability(installed=False)
    story.counts(spend(SPENT, "handoff", agent="ann"))
    story.says("ready").quiet()
    assert story.now.state is State.RESTING
    assert story.now.rested_until == TOMORROW.isoformat()
    assert story.effects[-1] == WakeAt(TOMORROW)


def test_a_session_that_is_to_end_is_ended_while_it_works_and_not_while_somebody_types() -> None:
    """Work under way uses more with every second; a prompt that is being typed uses nothing."""
    working = Story().start().says("busy")
    assert working.counts(spend(SPENT, "stop")).effects == [ShowMessage("L1"), StopLeg("L1")]
    assert working.now.state is State.STOPPING
    asked = Story().start().says("asking")
    assert asked.counts(spend(SPENT, "stop")).effects == [ShowMessage("L1"), StopLeg("L1")]
    waiting = Story().start()
    assert waiting.counts(spend(SPENT, "stop")).effects == [ShowMessage("L1"), AwaitQuiet("L1")]
    assert waiting.now.state is State.READY
    assert waiting.quiet().effects == [StopLeg("L1")]
    waiting.gone()
    assert waiting.now.state is State.ENDED
    assert render_end_line(waiting.now) == "→ Used up. Go on all the same: agent-relay ann --session S"


def test_an_end_comes_before_a_handoff() -> None:
    """Who used up both budgets has nobody to hand over to."""
    story = Story().start().says("busy")
    story.counts(spend(SPENT, "handoff", agent="ann"), spend(SPENT, "stop"))
    assert story.now.state is State.STOPPING


def test_a_session_gone_on_with_after_its_end_is_not_ended_again() -> None:
    """It was a person who went on."""
    story = Story().start().says("busy")
    story.counts(spend(SPENT, "stop"))
    story.gone()
    story.happens(HandoffAsked("ann"))
    story.spawned().says("ready")
    story.says("busy")
    assert story.counts(spend(SPENT, "stop")).effects == []
    assert story.now.state is State.BUSY


@pytest.mark.parametrize("day", [True, False])
def test_a_headless_turn_hands_over_at_once(*, day: bool) -> None:
    """Its process is the turn: there is no quiet moment to wait for."""
    story = TurnStory()
    story.take().spawned().counts(spend(SPENT, "handoff", agent="ann", day=day))
    assert story.effects[-1] == StopLeg("L1")
    assert story.now.handoff is not None
    assert story.now.handoff.to_agent == "bob"


def test_every_headless_turn_is_ended_that_begins_beyond_the_budget() -> None:
    """A script that begins the next one is nobody's wish to go on; it has to be told each time."""
    story = TurnStory()
    for _ in range(2):
        story.take().spawned()
        assert story.counts(spend(SPENT, "stop")).effects[-1] == StopLeg(story.leg)
        assert story.now.state is State.STOPPING
        story.gone()
        assert story.now.turn is not None
        assert (story.now.turn.outcome, story.now.state) == ("stopped", State.ENDED)


def test_a_headless_turn_whose_end_was_told_is_not_ended_for_it() -> None:
    """Its agent is only about to leave."""
    story = TurnStory()
    story.take().spawned()
    turn = story.now.turn
    assert turn is not None
    story.session = replace(story.now, turn=replace(turn, outcome="done"))
    assert story.counts(spend(SPENT, "stop")).effects == [ShowMessage("L1")]


def test_counts_of_old_legs_other_agents_and_of_sessions_at_rest_change_nothing() -> None:
    """They come late, or are not this agent's."""
    story = Story().start().says("busy")
    before = len(story.events)
    assert story.counts(spend(SPENT, "stop"), leg="L0").effects == []
    assert len(story.events) == before
    assert story.counts(spend(SPENT, "stop", agent="bob")).effects == [ShowMessage("L1")]
    assert story.says("ready").effects == []
    story.happens(StopAsked())
    assert story.counts(spend(SPENT, "stop")).effects == [ShowMessage("L1")]
    story.gone()
    story.session = replace(story.now, state=State.READY)
    assert story.quiet().effects == []


def test_a_quiet_moment_that_comes_late_ends_nothing() -> None:
    """The day is over, a turn has begun, or a handoff is under way."""
    story = Story().start()
    story.counts(spend(SPENT, "stop"))
    story.moment = TOMORROW
    assert story.quiet().effects == []
    story.moment = NOW
    story.says("busy")
    assert story.quiet().effects == []
    story = Story().start()
    story.happens(HandoffAsked("bob"))
    assert story.counts(spend(SPENT, "stop")).effects == []
    assert story.quiet().effects == []


def test_a_full_context_waits_behind_a_used_up_budget_and_is_seen_to_without_one() -> None:
    """Two handoffs at one moment would be one too many."""
    wishes = ContextWishes(mode="handoff")
    for notes, reason in (((), "context"), ((spend(SPENT, "handoff", agent="ann"),), "rate_limit")):
        story = Story().start()
        story.says("busy")
        story.happens(ContextFilled("L1", 950, 1000, NOW), context=wishes)
        story.counts(*notes)
        story.happens(StateSeen("L1", "ready"), context=wishes)
        assert story.effects[-1] == AwaitQuiet("L1")
        story.quiet(context=wishes)
        assert story.now.handoff is not None
        assert story.now.handoff.reason == reason


def test_a_daemon_that_died_in_between_acts_when_it_has_counted_again() -> None:
    """What was noted and not yet done is in the journal; what was done is, too."""
    story = Story().start()
    story.counts(spend(SPENT, "stop"))
    again = story.cut(len(story.events)).happens(Restarted(leg_lives=True))
    assert again.counts(spend(SPENT, "stop")).effects == [AwaitQuiet("L1")]
    assert again.quiet().effects == [StopLeg("L1")]
