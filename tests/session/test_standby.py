"""The next agent started ahead of a limit: who is, when it takes over, and when it is not wanted any more."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import DraftPacket, PublishPacket, ShowMessage, SpawnLeg, StopLeg, WakeAt
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.inputs import (
    ClockSetBack,
    Delivered,
    HandoffAsked,
    Input,
    LegGone,
    NearLimitOver,
    ResetPassed,
    Restarted,
    SignalFound,
    Spawned,
    StateSeen,
    StopAsked,
)
from agent_relay.domain.limits import Kind, Scope, Signal
from agent_relay.domain.session import Handoff, Step, Turn
from agent_relay.domain.state import State
from agent_relay.domain.values import AgentName, replace
from agent_relay.session.decision import Availability, Outcome, find_standby, is_wanted
from agent_relay.session.fold import fold_event
from agent_relay.session.limits.standbys import LONGEST, settle
from tests.session.story import HERE, NEAR, NOW, RESET, Story, begin_warm, warm
from tests.session.turn_story import TurnStory


def test_the_agent_that_would_take_over_is_started_ahead() -> None:
    """It has no task and no lease: the agent at work stays the only owner."""
    story = begin_warm().says("busy").near()
    ahead = story.ahead
    assert story.effects == [
        ShowMessage("L1"),
        DraftPacket("L1", "bob"),
        SpawnLeg(ahead),
        WakeAt(NOW + LONGEST),
    ]
    assert (story.leg, story.now.generation, story.now.state) == ("L1", 1, State.BUSY)
    assert [leg.id for leg in story.now.all_legs] == ["L1", ahead]
    story.happens(Spawned(ahead, 20, 21, 22)).happens(Spawned(ahead, 30, 31, 32))
    for state in ("busy", "ready", "ready"):
        story.happens(StateSeen(ahead, state))
    assert story.now.standby is not None
    assert story.now.standby.leg.child_pid == 21
    assert story.names(last=3) == ["standby.starting", "standby.started", "standby.ready"]


@pytest.mark.parametrize("unfit", ["unwanted", "other-agent", "unprompted"])
def test_nobody_is_started_ahead_in_vain(unfit: str) -> None:
    """Off by default, only agents that take their packet once they are ready, only for an agent at work."""
    story = begin_warm() if unfit == "unprompted" else begin_warm().says("busy")
    story.given["standbys"] = {"unwanted": {}, "other-agent": {"cas": "x"}}.get(
        unfit, story.given["standbys"]
    )
    story.near()
    assert story.now.standby is None
    assert story.now.prepared is not None


def test_nobody_is_started_ahead_of_a_turn_without_a_screen() -> None:
    """Nobody waits there: a packet is drafted."""
    story = TurnStory().take().at_work()
    signal = Signal(AgentName("ann"), Kind.NEAR_LIMIT, Scope.WARNING, NEAR, decides=True, resets_at=RESET)
    story.happens(SignalFound(story.leg, signal), standbys={"bob": "as it is"})
    assert story.now.standby is None
    assert story.effects[-1] == DraftPacket(story.leg, "bob")


def test_a_turn_without_a_screen_ends_it() -> None:
    """It was started with a screen."""
    story = warm()
    body = TurnBegun("ann", "paint it")
    assert settle(story.now, Outcome((body,)), story.world()).effects == (StopLeg(story.ahead),)
    turn = replace(story.now, turn=Turn("bob", "paint it"))
    handoff = Handoff("H", "L1", "ann", "bob", "manual", NOW)
    assert find_standby(turn, handoff, "", story.world()) is None
    assert find_standby(story.now, replace(handoff, model="small"), "", story.world()) is None


def test_there_is_one_at_most() -> None:
    """The weekly window comes near its limit, too: the agent that is ready is still the next one."""
    story = warm()
    ahead = story.ahead
    story.near(resets_at=RESET + timedelta(days=5))
    assert story.effects == [ShowMessage("L1"), DraftPacket("L1", "bob")]
    assert story.ahead == ahead


def test_at_the_limit_it_becomes_the_next_leg_as_it_is() -> None:
    """The lease begins with the handoff, and the packet is delivered like to any other."""
    story = warm()
    ahead = story.ahead
    story.limit().gone().published()
    assert story.effects == [SpawnLeg(ahead)]
    assert (story.leg, story.now.generation, story.now.standby) == (ahead, 2, None)
    story.spawned().says("ready").happens(Delivered(story.now.handoff.id, ahead)).says("busy")
    assert [done.leg for done in story.now.done] == [ahead]
    assert [name for name in story.names(last=20) if name.startswith("standby.")][-1] == "standby.ready"


def test_a_person_who_hands_over_to_it_gets_it_as_it_is() -> None:
    """It is the same handoff, only sooner."""
    story = warm()
    ahead = story.ahead
    story.happens(HandoffAsked("bob")).gone().published()
    assert story.leg == ahead


def test_its_own_conversation_is_gone_on_with() -> None:
    """A cold start would resume it, too."""
    story = begin_warm().says("busy").happens(HandoffAsked("bob")).take_over()
    story.near(resets_at=RESET + timedelta(days=1))
    standby = story.now.standby
    assert standby is not None
    assert (standby.leg.agent, standby.leg.resumes, standby.leg.native_id) == ("ann", True, "native-1")
    story.happens(Spawned(standby.leg.id, 20, 21, 22))
    story.happens(HandoffAsked("ann")).gone().published()
    leg = story.now.leg
    assert leg is not None
    assert (leg.id, leg.resumes, leg.native_id) == (standby.leg.id, True, "native-1")


@pytest.mark.parametrize(
    ("why", "happened"),
    [
        ("cas takes over", HandoffAsked("cas")),
        ("the session ends", StopAsked()),
        ("ann is no longer near a limit", NearLimitOver("L1")),
    ],
)
def test_it_is_dropped_where_it_is_not_wanted_any_more(why: str, happened: Input) -> None:
    """It is ended politely, and nothing else is done twice for it."""
    story = warm()
    ahead = story.ahead
    story.happens(happened)
    assert story.effects[-1] == StopLeg(ahead)
    assert story.now.standby is not None
    assert story.now.standby.is_dropped
    assert story.events[-1].body.why == why
    story.happens(NearLimitOver("L1")).happens(StateSeen(ahead, "asking")).happens(StateSeen(ahead, "ready"))
    assert StopLeg(ahead) not in story.effects
    story.happens(LegGone(ahead, "stopped"))
    assert story.now.standby is None
    assert (story.names(last=1), story.events[-1].body.why) == (["standby.ended"], "")


def test_the_window_of_an_agent_that_is_gone_says_nothing() -> None:
    """A late record of the predecessor must not end the successor's."""
    story = warm()
    assert story.happens(NearLimitOver("L9")).effects == []
    assert Story().start().happens(NearLimitOver("L1")).effects == []


def of_bob(**changes: object) -> Story:
    """What the standby's screen or records say."""
    story = warm()
    signal = Signal(AgentName("bob"), Kind.LIMIT, Scope.ACCOUNT, NEAR, decides=True)
    return story.happens(SignalFound(story.ahead, replace(signal, **changes)))


def test_one_that_asks_or_cannot_work_is_none() -> None:
    """A person has to answer: whether the folder is trusted, or by signing in."""
    story = warm().happens(StateSeen(warm().ahead, "asking"))
    assert story.events[-1].body.why == "it asks something before it can work"
    refused = of_bob(scope=Scope.AUTH, kind=Kind.FAILURE).events[-1].body
    assert refused.why == "it is signed out or its key is refused"
    assert of_bob().events[-1].body.why == "it is at a limit of its own"
    assert of_bob(kind=Kind.NEAR_LIMIT, scope=Scope.WARNING).effects == []
    assert of_bob(decides=False).effects == []


def test_one_that_dies_is_told_of_in_the_journal_and_replaced_at_the_limit() -> None:
    """Nothing was lost with it: the successor is started cold."""
    story = warm()
    ahead = story.ahead
    story.happens(LegGone(ahead, "exited", 1))
    assert (story.effects, story.events[-1].body.why) == ([], "it ended")
    story.limit().gone().published()
    assert story.leg != ahead
    assert story.effects == [SpawnLeg(story.leg)]


def test_one_that_dies_as_it_takes_over_is_followed_by_another_start() -> None:
    """By then it is the session's leg."""
    story = warm()
    ahead = story.ahead
    story.limit().gone().published().happens(LegGone(ahead, "lost"))
    assert story.effects == [PublishPacket(story.now.handoff.id)]


def test_it_does_not_wait_for_ever() -> None:
    """An idle agent takes as much memory as one at work."""
    story = warm()
    assert story.happens(ResetPassed(), now=NOW + LONGEST - timedelta(seconds=1)).effects == []
    story.happens(ResetPassed(), now=NOW + LONGEST)
    assert story.events[-1].body.why == "it was not needed for an hour"


def test_another_configuration_or_a_rest_of_its_own_end_it() -> None:
    """What would be started cold is started another way, or not at all."""
    story = warm()
    story.given["standbys"] = {"bob": "another model"}
    assert story.says("ready").events[-1].body.why == "the configuration has changed"
    story = warm()
    story.availability["bob"] = Availability(installed=True, resting=True, rests_until=RESET)
    assert story.says("ready").events[-1].body.why == f"rests until {RESET:%H:%M}"


def test_a_configuration_that_changed_during_the_handoff_means_a_cold_start() -> None:
    """The packet is built meanwhile."""
    story = warm()
    ahead = story.ahead
    story.limit().gone()
    story.given["standbys"] = {}
    story.published()
    assert story.leg != ahead
    assert story.effects == [SpawnLeg(story.leg), StopLeg(ahead)]


def test_an_agent_that_ends_takes_it_along_and_a_rest_too() -> None:
    """The session is over, or waits for hours."""
    story = warm().happens(LegGone("L1", "exited", 0))
    assert (story.now.state, story.events[-1].body.why) == (State.ENDED, "the session ends")
    story = warm()
    story.availability = {"ann": HERE}
    assert story.limit().events[-1].body.why == "the session rests"


def test_a_new_choice_ends_it() -> None:
    """Who was installed meanwhile may come before it in the order; it is not started as well."""
    story = warm()
    story.availability["bob"] = Availability(installed=False)
    story.near(resets_at=RESET + timedelta(days=5))
    assert story.events[-1].body.why == "cas takes over"


def test_its_clock_and_what_it_plans_are_nobodys() -> None:
    """Only what it shows counts."""
    story = warm()
    assert story.happens(ClockSetBack(story.ahead, NOW)).effects == []
    assert story.names(last=1) == ["standby.ready"]


def test_a_new_daemon_keeps_it_and_ends_a_dropped_one() -> None:
    """Its deadline is the same, and a kill between two lines leaves nothing."""
    story = warm()
    story.refold(story.events).happens(Restarted(leg_lives=True))
    assert story.effects[-1] == WakeAt(NOW + LONGEST)
    story.happens(NearLimitOver("L1"))
    story.refold(story.events).happens(Restarted(leg_lives=True))
    assert story.effects[-1] == StopLeg(story.ahead)


@pytest.mark.parametrize("kept", range(6, 20))
def test_a_crash_after_any_line_leads_to_one_successor(kept: int) -> None:
    """Kill -9 between any two writes: nobody owns the tree beside the session's leg."""
    whole = warm()
    whole.to_step(Step.DELIVERED)
    story = whole.cut(kept).happens(Restarted(leg_lives=True))
    living = [leg for leg in story.now.all_legs if not leg.is_over]
    assert len([leg for leg in living if not story.now.is_standby(leg.id)]) <= 1
    assert len(living) <= 2


def test_effects_are_tried_again_as_long_as_it_is_wanted() -> None:
    """The machine may be short of memory; what is dropped is not started any more."""
    story = warm()
    assert is_wanted(story.now, SpawnLeg(story.ahead))
    assert is_wanted(story.now, StopLeg(story.ahead))
    story.happens(NearLimitOver("L1"))
    assert not is_wanted(story.now, SpawnLeg(story.ahead))
    assert is_wanted(story.now, StopLeg(story.ahead))


def test_a_line_about_another_one_changes_nothing() -> None:
    """A journal may be edited or torn."""
    story = warm()
    ended = replace(story.events[-1], body=replace(story.events[-1].body, leg="L9"))
    assert fold_event(story.now, ended).standby == story.now.standby


def test_what_a_person_may_not_do_leaves_it_alone() -> None:
    """A refused wish changes nothing."""
    story = warm()
    with pytest.raises(RelayError):
        story.happens(HandoffAsked("ann"))
    assert story.names(last=1) == ["standby.ready"]
