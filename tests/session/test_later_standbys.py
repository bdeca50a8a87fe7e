"""After a standby there is another one, as long as the limit is near and not too many were in vain."""

from datetime import timedelta

from agent_relay.domain.effects import SpawnLeg
from agent_relay.domain.inputs import HandoffAsked, LegGone, NearLimitOver, ResetPassed, StateSeen
from agent_relay.session.limits.standbys import LONGEST, MOST_UNUSED, UNUSED_SPAN
from tests.session.story import NOW, RESET, Story, warm


def end_it(story: Story, **changes: object) -> Story:
    """An hour passes, nobody needs the standby, and its process ends."""
    story.happens(ResetPassed(), **({"now": NOW + LONGEST} | changes))
    return story.happens(LegGone(story.ahead, "stopped"))


def test_another_one_is_started_with_the_next_turn() -> None:
    """The limit is as near as before, whatever the first one waited for."""
    story = end_it(warm())
    assert story.now.standby is None
    story.says("ready")
    assert story.now.standby is None, "nobody works: no limit is met"
    story.says("busy")
    assert story.names(last=3) == ["leg.busy", "successor.chosen", "standby.starting"]
    assert SpawnLeg(story.ahead) in story.effects


def test_one_that_was_used_is_followed_by_another_where_its_agent_is_back() -> None:
    """The same window is still nearly used up, and its user was told of it already."""
    story = warm().happens(HandoffAsked("bob"))
    story.take_over().happens(HandoffAsked("ann"))
    story.take_over()
    story.near()
    assert story.now.standby is not None
    assert story.now.standby.leg.agent == "bob"
    assert story.now.unused_standbys == ()


def test_a_window_that_began_anew_needs_none() -> None:
    """Its agent said so, or its reset has passed."""
    story = warm().happens(NearLimitOver("L1"))
    story.happens(LegGone(story.ahead, "stopped")).says("ready").says("busy")
    assert (story.now.standby, story.now.near) == (None, None)
    story.near()
    assert story.now.standby is not None, "it is near its limit again"
    late = end_it(warm()).says("ready")
    late.happens(StateSeen("L1", "busy"), now=RESET)
    assert late.now.standby is None


def test_not_more_than_three_are_started_in_vain() -> None:
    """Whoever thinks for hours near a limit does not pay for an idle agent all the time."""
    story = warm()
    for _ in range(MOST_UNUSED - 1):
        end_it(story).says("ready").says("busy")
    assert story.now.standby is not None
    end_it(story).says("ready").says("busy")
    assert story.now.standby is None
    story.says("ready").happens(StateSeen("L1", "busy"), now=NOW + UNUSED_SPAN)
    assert story.now.standby is None, "the window has been reset meanwhile"
    story.near(resets_at=RESET + timedelta(days=1))
    assert story.now.standby is None
    story.says("ready").happens(StateSeen("L1", "busy"), now=NOW + UNUSED_SPAN)
    assert story.now.standby is not None


def test_one_that_could_not_have_taken_over_is_not_started_again_in_the_same_way() -> None:
    """It would ask the same question; with another configuration it may not."""
    story = warm()
    story.happens(StateSeen(story.ahead, "asking")).happens(LegGone(story.ahead, "stopped"))
    story.says("ready").says("busy")
    assert story.now.standby is None
    story.given["standbys"] = {"bob": "another way"}
    story.says("ready").says("busy")
    assert story.now.standby is not None


def test_one_that_died_is_replaced_with_the_next_turn() -> None:
    """It may have been killed, with its holder, by a machine short of memory."""
    story = warm()
    story.happens(LegGone(story.ahead, "lost")).says("ready").says("busy")
    assert story.now.standby is not None
