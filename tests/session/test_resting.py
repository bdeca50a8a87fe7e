"""Everybody rests: what a person may agree to, and who goes on when the reset has come."""

from datetime import UTC, timedelta

import pytest

from agent_relay.domain.effects import CancelContinue, ShowMessage, StopLeg, WakeAt
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.inputs import (
    Answered,
    ContinueAnnounced,
    ContinueAsked,
    ResetPassed,
    Restarted,
    ResumeAsked,
    StateSeen,
)
from agent_relay.domain.limits import Scope, parse_quiet_hours
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from agent_relay.session.views.messages import render_message
from tests.session.story import HERE, NOW, RESET, Story, reset_window

NIGHT = parse_quiet_hours("20:00-07:00")
ALWAYS = parse_quiet_hours("always")
MORNING = NOW.replace(day=22, hour=7, minute=0)
CHECK = RESET + timedelta(minutes=5)
WITH_LEG = pytest.mark.parametrize("lives", [True, False])


def _rest(*, lives: bool = True) -> Story:
    """The only agent there is has hit its limit; its leg may have left since."""
    story = Story(("ann",)).start().says("busy").limit()
    assert story.now.state is State.RESTING
    return story if lives else story.gone("exited")


@WITH_LEG
def test_who_agreed_once_is_gone_on_for_once(*, lives: bool) -> None:
    """One key while everybody rests is consent to this reset and to no other."""
    story = _rest(lives=lives).happens(ResumeAsked())
    assert (story.names(last=1), story.now.agreed) == (["resume.agreed"], True)
    reset_window(story).happens(ResetPassed(), now=RESET)
    assert (story.now.state, story.now.handoff.to_agent) == (State.HANDING_OFF, "ann")
    if lives:
        story.gone()
    story.published().spawned().says("ready")
    assert not story.now.agreed


def test_who_changes_their_mind_takes_it_back() -> None:
    """The key that agreed is the one that does not any more; pressing it twice says nothing new."""
    story = _rest().happens(ResumeAsked()).happens(ResumeAsked())
    count = len(story.events)
    story.happens(ResumeAsked(agreed=False))
    assert (len(story.events), story.now.agreed) == (count + 1, False)
    reset_window(story).happens(ResetPassed(), now=RESET)
    assert (story.now.state, story.now.handoff) == (State.READY, None)


def test_nobody_can_agree_to_a_reset_that_is_not_known() -> None:
    """Money is back when somebody pays; waiting for it would be a promise nobody keeps."""
    story = Story(("ann",)).start().says("busy").limit(Scope.BILLING, resets_at=None)
    with pytest.raises(WrongUseError, match="no reset is known"):
        story.happens(ResumeAsked())


def test_nobody_can_agree_or_go_on_where_nobody_rests() -> None:
    """A key that came late must not begin anything."""
    story = Story(("ann",)).start().says("busy")
    for wish in (ResumeAsked(), ContinueAsked()):
        with pytest.raises(WrongUseError, match="is not resting"):
            story.happens(wish)


def test_in_the_quiet_hours_what_was_agreed_to_waits_for_their_end() -> None:
    """Nothing works while its user sleeps; nothing that was agreed to is forgotten for that."""
    story = reset_window(_rest().happens(ResumeAsked()))
    story.happens(ResetPassed(), now=RESET, quiet=NIGHT)
    assert (story.now.state, story.effects) == (State.RESTING, [WakeAt(MORNING)])
    story.happens(ResetPassed(), now=MORNING, quiet=NIGHT)
    assert story.now.state is State.HANDING_OFF


def test_with_quiet_hours_that_never_end_the_agent_is_offered_only() -> None:
    """Never while I am away: whoever comes back is told that it could go on."""
    story = reset_window(_rest()).happens(ResetPassed(), now=RESET, quiet=ALWAYS, resume_at_reset=True)
    assert (story.now.state, story.now.offer, story.now.handoff) == (State.READY, "ann", None)
    assert story.effects == [ShowMessage(story.leg)]


def test_without_a_word_who_can_be_had_again_is_offered_once() -> None:
    """The person comes back to a name and one key, not to a dead prompt."""
    story = _rest(lives=False)
    reset_window(story).happens(ResetPassed(), now=RESET)
    assert (story.names(last=1), story.now.state) == (["return.offered"], State.RESTING)
    count = len(story.events)
    assert len(story.happens(ResetPassed(), now=RESET).events) == count


def test_somebody_elses_reset_is_offered_while_the_agent_at_work_rests_on() -> None:
    """The first reset of all need not be that of the agent on the screen."""
    story = Story(("ann", "bob"))
    story.availability["bob"] = Availability(
        installed=True, resting=True, rests_until=NOW + timedelta(hours=1)
    )
    story.start().says("busy").limit()
    story.availability["bob"] = HERE
    story.happens(ResetPassed(), now=NOW + timedelta(hours=1))
    assert (story.now.state, story.now.offer) == (State.RESTING, "bob")
    assert story.effects == [ShowMessage(story.leg), WakeAt(RESET)]
    story.happens(ContinueAsked(), now=NOW + timedelta(hours=1))
    assert (story.now.handoff.to_agent, story.effects) == ("bob", [StopLeg(story.leg)])


@WITH_LEG
def test_one_key_after_the_reset_goes_on(*, lives: bool) -> None:
    """Left at its prompt an agent would wait: it is handed its own work."""
    story = reset_window(_rest(lives=lives)).happens(ResetPassed(), now=RESET)
    story.happens(ContinueAsked(), now=RESET)
    assert (story.now.state, story.now.handoff.to_agent) == (State.HANDING_OFF, "ann")


def test_an_agent_that_works_again_is_offered_no_more() -> None:
    """The person typed on by themselves: a line that offers what was taken would be wrong."""
    story = reset_window(_rest()).happens(ResetPassed(), now=RESET).says("busy")
    assert story.now.offer == ""


def test_who_cannot_be_started_after_the_reset_is_told_why() -> None:
    """The key seemed to do something, and nothing happened."""
    story = reset_window(_rest()).happens(ResetPassed(), now=RESET)
    story.availability["ann"] = Availability(installed=True, fault="no space is left")
    with pytest.raises(NobodyAvailableError, match="no space is left"):
        story.happens(ContinueAsked(), now=RESET)


def test_nobody_goes_on_before_any_reset() -> None:
    """A key that cannot do what it says names who rests until when."""
    with pytest.raises(NobodyAvailableError, match="ann: rests until"):
        _rest().happens(ContinueAsked())


def test_an_agent_that_goes_on_by_itself_is_left_to_it() -> None:
    """Two that go on at once are two owners: where it may, the agent does, and relay looks later."""
    story = _rest().happens(ResumeAsked()).happens(ContinueAnnounced("L1", RESET))
    assert (story.now.continues_at, story.now.agent_may_continue) == (RESET.isoformat(), True)
    assert story.effects == [WakeAt(CHECK), ShowMessage("L1")]
    reset_window(story).happens(ResetPassed(), now=RESET)
    assert (story.now.state, story.effects) == (State.RESTING, [WakeAt(CHECK)])
    story.happens(StateSeen("L1", "busy"), now=RESET + timedelta(seconds=80))
    assert (story.now.state, story.now.agreed) == (State.BUSY, False)
    count = len(story.events)
    assert len(story.happens(ResetPassed(), now=CHECK).events) == count


def test_an_agent_that_does_not_go_on_as_it_said_is_gone_on_for_after_five_minutes() -> None:
    """Its own timer fails at times: what somebody agreed to happens all the same."""
    story = reset_window(_rest().happens(ContinueAnnounced("L1", RESET)))
    story.happens(ResetPassed(), now=CHECK, resume_at_reset=True)
    assert (story.now.state, story.effects) == (State.HANDING_OFF, [StopLeg("L1")])


def test_a_timer_is_decided_on_once() -> None:
    """A screen is read many times a minute; the person is told once."""
    story = _rest().happens(ContinueAnnounced("L1", RESET))
    count = len(story.events)
    story.happens(ContinueAnnounced("L1", RESET))
    assert (len(story.events), story.effects) == (count, [])


@pytest.mark.parametrize("wish", [{"agent_may_continue": False}, {"quiet": NIGHT}, {"quiet": ALWAYS}])
def test_a_timer_that_the_user_does_not_want_is_cancelled(wish: dict[str, object]) -> None:
    """Not while I am away is one setting: it holds for the agent's own timer as for relay."""
    story = _rest().happens(ContinueAnnounced("L1", RESET), **wish)
    assert (story.now.agent_may_continue, story.effects) == (
        False,
        [CancelContinue("L1", RESET), ShowMessage("L1")],
    )
    assert story.happens(ContinueAnnounced("L1", RESET), **wish).effects == [CancelContinue("L1", RESET)]
    story.happens(ContinueAnnounced("L1", None), **wish)
    assert (story.now.continues_at, story.effects) == ("", [WakeAt(RESET)])


def test_a_timer_whose_prompt_would_come_in_the_quiet_hours_is_cancelled() -> None:
    """It sends its prompt a minute or two after its reset."""
    at = NOW.replace(hour=19, minute=59)
    story = _rest().happens(ContinueAnnounced("L1", at), quiet=NIGHT)
    assert not story.now.agent_may_continue


def test_a_countdown_that_ends_at_its_moment_was_not_given_up() -> None:
    """It goes from the screen because its agent goes on."""
    story = _rest().happens(ContinueAnnounced("L1", RESET))
    story.happens(ContinueAnnounced("L1", None), now=RESET)
    assert (story.now.continues_at, story.effects) == (RESET.isoformat(), [])


def test_a_new_daemon_looks_after_the_agent_that_goes_on_by_itself() -> None:
    """Otherwise nobody would notice that it did not."""
    story = _rest().happens(ContinueAnnounced("L1", RESET))
    story.happens(Restarted(leg_lives=True), now=NOW + timedelta(minutes=5))
    assert story.effects == [WakeAt(RESET), WakeAt(CHECK)]


def test_an_agent_that_is_handed_over_has_no_timer_any_more() -> None:
    """Its leg is stopped before the next one starts: what its screen still says decides nothing."""
    story = Story().start().says("busy").limit()
    count = len(story.events)
    assert story.happens(ContinueAnnounced("L1", RESET)).effects == []
    assert len(story.events) == count
    story.gone().published()
    assert len(story.happens(ContinueAnnounced("L1", RESET)).events) == len(story.events)
    assert story.now.continues_at == ""


def test_work_before_the_moment_an_agent_named_is_not_its_going_on() -> None:
    """A person tried a prompt of their own, and met the limit again."""
    story = _rest().happens(ContinueAnnounced("L1", RESET))
    for state, now in (("busy", NOW), ("ready", RESET)):
        assert story.happens(StateSeen("L1", state), now=now).now.state is State.RESTING
    assert _rest().says("busy").now.state is State.RESTING


def test_an_answer_ends_the_rest_and_what_was_said_of_it() -> None:
    """What the agent's own records tell is believed at once."""
    story = (
        _rest()
        .happens(ResumeAsked())
        .happens(ContinueAnnounced("L1", RESET))
        .happens(Answered("L1"), now=RESET)
    )
    assert (story.now.state, story.now.agreed, story.now.continues_at) == (State.READY, False, "")


def test_a_limit_that_comes_again_is_waited_for_anew() -> None:
    """What was agreed to was that work goes on when it can; it still cannot."""
    story = _rest().happens(ResumeAsked())
    later = RESET + timedelta(hours=2)
    story.limit(resets_at=later)
    assert (story.now.agreed, story.now.rested_until) == (True, later.isoformat())
    assert story.effects[-1] == WakeAt(later)


def test_the_line_over_an_agents_screen_names_who_is_back_and_how_to_go_on() -> None:
    """Whoever looks at the agent's own screen at that moment is told there."""
    story = reset_window(_rest()).happens(ResetPassed(), now=RESET)
    own = (
        "→ ann is available again. Type your next prompt to continue,"
        " or press the relay key and type /use ann to hand its work to a new ann"
    )
    assert render_message(story.now, UTC) == own
    rested = _rest(lives=False)
    assert render_message(rested.now, UTC).startswith("→ ann hit its usage limit (resets 21:20). No agent")
    reset_window(rested).happens(ResetPassed(), now=RESET)
    assert render_message(rested.now, UTC).startswith("→ ann is available again")
