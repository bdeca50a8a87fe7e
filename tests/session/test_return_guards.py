"""What keeps a preferred agent from being given its session back, and what leads on once it may be."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import AwaitQuiet, StopLeg, WakeAt
from agent_relay.domain.events.session import ConsentUsed, ReturnOffered, ReturnPutOff
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import (
    HandoffAsked,
    ResetPassed,
    Restarted,
    ResumeAsked,
)
from agent_relay.domain.limits import FullWindow, Scope, parse_quiet_hours
from agent_relay.domain.session import Step
from agent_relay.domain.state import State
from agent_relay.domain.values import Asker, replace
from tests.session.story import HERE, NOW, RESET, Story, reset_window

GRACE = timedelta(seconds=30)
AUTO = {"return_mode": "auto", "now": RESET + GRACE, "reset_grace": GRACE}


def lose_window(*, state: str = "ready") -> Story:
    """The preferred agent left at its limit, and its reset has come while the second one is in `state`."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    return reset_window(story if state == "busy" else story.says(state))


def go_back(story: Story, **changes: object) -> Story:
    """The reset passes, and nobody types at the prompt."""
    world = {**AUTO, **changes}
    story.happens(ResetPassed(), **world)
    return story.quiet(**world)


def end_turn(story: Story) -> None:
    """The agent waits for its next prompt, and nobody types one."""
    story.says("ready", **AUTO)
    effects = list(story.effects)
    story.quiet(**AUTO)
    story.effects = effects + story.effects


def list_begun(story: Story) -> list[tuple[str, str]]:
    return [
        (one.body.to_agent, one.body.reason) for one in story.events if isinstance(one.body, HandoffBegun)
    ]


def test_a_return_at_the_prompt_waits_until_nobody_types() -> None:
    """A line half typed would be lost with the agent that is stopped."""
    story = lose_window().happens(ResetPassed(), **AUTO)
    assert (story.names(last=1), story.effects[-1]) == (["return.offered"], AwaitQuiet(story.leg))
    story.quiet(**AUTO)
    assert (story.names(last=2), story.effects) == (["consent.used", "handoff.begun"], [StopLeg(story.leg)])


def test_a_return_comes_a_grace_after_the_reset() -> None:
    """Agents name the minute, and their clocks are not ours: at the very moment it would be limited again."""
    story = lose_window()
    count = len(story.events)
    story.happens(ResetPassed(), **{**AUTO, "now": RESET + GRACE / 2})
    assert (len(story.events), story.effects) == (count, [WakeAt(RESET + GRACE)])
    go_back(story)
    assert list_begun(story)[-1] == ("ann", "command")


def test_unattended_work_goes_on_a_grace_after_the_reset() -> None:
    """A rest ends by the same clock as a return."""
    story = reset_window(Story(("ann",)).start().says("busy").limit())
    agreed = {**AUTO, "resume_at_reset": True}
    story.happens(ResetPassed(), **{**agreed, "now": RESET})
    assert (story.now.state, story.effects) == (State.RESTING, [WakeAt(RESET + GRACE)])
    story.happens(ResetPassed(), **agreed)
    assert story.now.state is State.HANDING_OFF


def test_nobody_returns_while_its_window_reads_full_again() -> None:
    """Its reset has passed and yet it says itself that nothing is left: the next limit would come at once."""
    story, until = lose_window(), RESET + timedelta(hours=2)
    story.availability["ann"] = replace(HERE, full=FullWindow("5 h window", until))
    go_back(story)
    put_off = ReturnPutOff("ann", "its 5 h window reads full again", (until + GRACE).isoformat())
    assert [event.body for event in story.events[-1:]] == [put_off]
    assert list_begun(story) == [("bob", "rate_limit")]
    count = len(story.events)
    story.happens(ResetPassed(), **AUTO)
    assert (len(story.events), story.effects) == (count, [WakeAt(until + GRACE)])
    story.availability["ann"] = HERE
    go_back(story, now=until + GRACE)
    assert list_begun(story)[-1] == ("ann", "command")


def test_readings_that_flap_do_not_bring_anybody_back_before_the_moment_that_was_named() -> None:
    """A lagging reading says full, the next one not, the next one full: one decision, at the reset."""
    story, until = lose_window(state="busy"), RESET + timedelta(hours=2)
    story.happens(ResetPassed(), **AUTO)
    for full in (FullWindow("5 h window", until), None) * 4:
        story.availability["ann"] = replace(HERE, full=full)
        end_turn(story)
        story.says("busy")
    assert [event.body.name for event in story.events].count("return.put-off") == 1
    assert list_begun(story) == [("bob", "rate_limit")]


def test_a_reset_that_moved_puts_the_return_off_until_the_new_one() -> None:
    """Another session met the limit again: the ledger knows, and the offer that stands is withdrawn."""
    story, later = lose_window(state="busy"), RESET + timedelta(hours=5)
    story.happens(ResetPassed(), **AUTO)
    assert (story.now.offer, story.now.returns) == ("ann", True)
    story.availability["ann"] = replace(HERE, resting=True, rests_until=later, scope="account")
    end_turn(story)
    assert story.names(last=1) == ["return.put-off"]
    assert (story.now.offer, story.now.returns) == ("", False)
    assert WakeAt(later + GRACE) in story.effects
    reset_window(story)
    go_back(story, now=later + GRACE)
    assert list_begun(story)[-1] == ("ann", "command")


def test_who_hits_its_limit_again_at_once_is_returned_to_twice_and_then_offered() -> None:
    """A limit that names a reset that has passed would go to and fro all night."""
    story = lose_window()
    for minute in range(5):
        go_back(story, now=RESET + GRACE + timedelta(minutes=minute))
        if story.now.handoff is None:
            break
        story.take_over()
        story.limit(resets_at=RESET)
        reset_window(story).take_over().says("ready")
    assert [to for to, reason in list_begun(story) if reason == "command"] == ["ann", "ann"]
    last = story.events[-1].body
    assert isinstance(last, ReturnOffered)
    assert (last.agent, last.by_itself) == ("ann", False)
    assert last.why == "ann went on unasked 2 times within 5 hours"
    story.happens(ResetPassed(), **AUTO)
    assert story.effects == [WakeAt(NOW + timedelta(hours=5))]


def test_unattended_work_that_is_limited_again_at_once_waits_for_a_person() -> None:
    """An agent alone that names a reset of the past would be started again and again."""
    story = reset_window(Story(("ann",)).start().says("busy").limit())
    agreed = {**AUTO, "resume_at_reset": True}
    for _ in range(5):
        story.happens(ResetPassed(), **agreed)
        if story.now.handoff is None:
            break
        story.take_over()
        reset_window(story.limit(resets_at=RESET))
    assert [event.body.name for event in story.events].count("consent.used") == 2
    assert story.now.offer == "ann"


def test_what_a_person_chose_since_is_not_undone() -> None:
    """They handed over by hand after the return: the agent they left is not gone back to by itself."""
    story = lose_window()
    go_back(story).take_over().says("ready")
    story.happens(HandoffAsked("bob")).take_over()
    count = len(list_begun(story))
    end_turn(story)
    go_back(story)
    assert len(list_begun(story)) == count


def test_who_a_person_chose_meanwhile_keeps_the_session_and_the_return_is_offered() -> None:
    """The offer costs nothing; taking the session from whom they asked for would."""
    story = lose_window().happens(HandoffAsked("cas")).take_over().says("ready")
    go_back(story)
    last = story.events[-1].body
    assert isinstance(last, ReturnOffered)
    assert (last.by_itself, last.why) == (False, "cas was chosen by hand")


def test_a_return_that_was_announced_survives_its_daemon() -> None:
    """Killed between the announcement and the handoff: the next one begins it, once."""
    story = lose_window().happens(ResetPassed(), **AUTO)
    story.happens(Restarted(leg_lives=True), **AUTO)
    assert WakeAt(RESET + GRACE) in story.effects
    go_back(story)
    assert list_begun(story)[1:] == [("ann", "command")]


def test_a_return_after_the_quiet_hours_is_waited_for() -> None:
    """An offer in the night, and the return in the morning though nobody is at the prompt then."""
    story, quiet = lose_window(), parse_quiet_hours("20:30-07:00")
    go_back(story, quiet=quiet)
    assert (story.now.offer, story.now.returns) == ("ann", False)
    morning = (RESET + timedelta(days=1)).replace(hour=7, minute=0)
    story.happens(ResetPassed(), quiet=quiet, **AUTO)
    assert story.effects == [WakeAt(morning)]
    go_back(story, quiet=quiet, now=morning)
    assert list_begun(story)[-1] == ("ann", "command")


def test_consent_is_in_the_journal_before_what_it_allows() -> None:
    """Who asks in the morning why an agent worked finds who agreed to it."""
    story = Story(("ann",)).start().says("busy").limit()
    story.happens(ResumeAsked(asker=Asker("dan", "terminal")))
    reset_window(story).happens(ResetPassed(), **AUTO)
    used = ConsentUsed("ann", "once", RESET.isoformat(), "dan", "terminal")
    assert (story.events[-2].body, story.names(last=1)) == (used, ["handoff.begun"])
    always = reset_window(Story(("ann",)).start().says("busy").limit())
    always.happens(ResetPassed(), resume_at_reset=True)
    assert [one.body.consent for one in always.events if isinstance(one.body, ConsentUsed)] == ["always"]
    back = lose_window()
    go_back(back)
    assert ConsentUsed("ann", "return", RESET.isoformat(), via="config") in [
        event.body for event in back.events
    ]


def test_a_rest_survives_a_reboot() -> None:
    """No holder is left: the rest goes on, and its reset is waited for."""
    story = Story(("ann",)).start().says("busy").limit().happens(ResumeAsked())
    story.happens(Restarted(leg_lives=False))
    assert (story.now.state, story.now.agreed) == (State.RESTING, True)
    assert WakeAt(RESET) in story.effects
    reset_window(story).happens(ResetPassed(), **AUTO)
    assert list_begun(story) == [("ann", "rate_limit")]


def test_the_reset_of_every_agent_that_left_is_waited_for_by_a_new_daemon() -> None:
    """The second agent was limited as well: the first one's reset is not forgotten for that."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    later = RESET + timedelta(hours=1)
    story.limit(resets_at=later).take_over()
    story.happens(Restarted(leg_lives=True))
    assert story.effects == [WakeAt(RESET), WakeAt(later)]


@pytest.mark.parametrize("kept", range(10))
def test_a_crash_after_any_line_of_a_return_leads_to_one_return(kept: int) -> None:
    """Kill -9 between any two lines: the agent comes back once, whatever had been written."""
    whole = lose_window()
    begun = len(whole.events)
    go_back(whole).take_over()
    story = whole.cut(begun + kept)
    story.happens(Restarted(leg_lives=story.now.living_leg is not None), **AUTO).perform(**AUTO)
    assert (story.now.agent, story.now.handoff) == ("ann", None)
    assert [to for to, _ in list_begun(story)] == ["bob", "ann"]


def test_a_limit_of_money_is_not_returned_from() -> None:
    """Without a reset nobody but its user knows when it is over."""
    story = Story().start().says("busy").limit(Scope.BILLING, resets_at=None).take_over().says("ready")
    count = len(story.events)
    go_back(story)
    assert (len(story.events), story.effects) == (count, [])
