"""The session's state machine: what follows from what happens, and from a crash between any two lines."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.effect import (
    Asked,
    Delivered,
    DeliverPacket,
    DeliverTask,
    Effect,
    Happened,
    Heard,
    LegGone,
    NoteRest,
    Published,
    PublishFailed,
    PublishPacket,
    ResetPassed,
    Restarted,
    ScreenSays,
    Spawned,
    SpawnLeg,
    StopAsked,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.event import Event, SessionCreated
from agent_relay.domain.ids import AgentName
from agent_relay.domain.session import Session, State, Step
from agent_relay.domain.signal import Evidence, Kind, Scope, Signal, Source
from agent_relay.logic.fold import ImpossibleEventError, fold_event, fold_events
from agent_relay.logic.machine import step
from agent_relay.logic.outcome import Outcome, World
from agent_relay.logic.policy import Availability
from agent_relay.logic.succession import begin_leg

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
HERE = Availability(installed=True)


class Story:
    """A session driven by hand: every event numbered and folded, every effect kept."""

    def __init__(self, roster: tuple[str, ...] = ("ann", "bob", "cas"), task: str = "") -> None:
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.session: Session | None = None
        self.ids = 0
        self.availability = dict.fromkeys(roster, HERE)
        self._journal(Outcome((SessionCreated("S", "/r", "/r", roster, task),)))

    def world(self, **changes: object) -> World:
        self.ids += 1
        world = World(NOW, self.availability, f"H{self.ids}", f"L{self.ids}", {"ann": f"native-{self.ids}"})
        return replace(world, **changes)

    def _journal(self, outcome: Outcome) -> None:
        for body in outcome.bodies:
            event = Event(len(self.events) + 1, NOW, self.session.generation if self.session else 0, body)
            self.events.append(event)
            self.session = fold_event(self.session, event)
        self.effects = list(outcome.effects)

    def start(self, agent: str = "ann") -> "Story":
        self._journal(begin_leg(self.now, agent, self.world()))
        return self.spawned().says("ready")

    @property
    def now(self) -> Session:
        assert self.session is not None
        return self.session

    @property
    def leg(self) -> str:
        assert self.now.leg is not None
        return self.now.leg.id

    def happens(self, happened: Happened, **changes: object) -> "Story":
        self._journal(step(self.now, happened, self.world(**changes)))
        return self

    def spawned(self) -> "Story":
        return self.happens(Spawned(self.leg, 10, 11, 12))

    def says(self, state: str) -> "Story":
        return self.happens(ScreenSays(self.leg, state))

    def limit(self, scope: Scope = Scope.ACCOUNT, **changes: object) -> "Story":
        agent = AgentName(self.now.agent)
        signal = Signal(
            agent, Kind.LIMIT, scope, Evidence(Source.HOOK, "You've hit it"), decides=True, resets_at=RESET
        )
        signal = replace(signal, **changes)
        if signal.decides and scope in (Scope.ACCOUNT, Scope.MODEL, Scope.BILLING):
            rest = Availability(installed=True, resting=True, rests_until=signal.resets_at, scope=scope)
            self.availability[agent] = rest
        return self.happens(Heard(self.leg, signal))

    def gone(self, how: str = "stopped", status: int = 0) -> "Story":
        return self.happens(LegGone(self.leg, how, status))

    def published(self) -> "Story":
        assert self.now.handoff is not None
        return self.happens(Published(self.now.handoff.id, "P1", 1, "1.json", "1.md", "f"))

    def to_step(self, wanted: Step) -> "Story":
        """Walk a failover up to `wanted`."""
        self.limit()
        walk = {
            Step.BEGUN: lambda: self,
            Step.STOPPED: self.gone,
            Step.SPAWNING: self.published,
            Step.SPAWNED: self.spawned,
            Step.DELIVERED: lambda: self.says("ready").happens(Delivered(self.now.handoff.id, self.leg)),
        }
        for at, go in walk.items():
            go()
            if at is wanted:
                break
        return self

    def names(self, *, last: int) -> list[str]:
        return [event.body.name for event in self.events[-last:]]


def test_a_limit_walks_the_whole_saga_to_a_working_successor() -> None:
    """The main job: each step is journalled before the next effect is asked for."""
    story = Story().start().says("busy").limit()
    assert story.now.state is State.HANDING_OFF
    assert story.effects == [NoteRest("ann", "account", RESET, "You've hit it"), WakeAt(RESET), StopLeg("L1")]
    story.gone()
    assert story.effects == [PublishPacket(story.now.handoff.id)]
    story.published()
    assert story.names(last=2) == ["packet.published", "leg.starting"]
    assert story.effects == [SpawnLeg(story.leg)]
    assert (story.now.agent, story.now.generation, story.now.state) == ("bob", 2, State.STARTING)
    story.spawned().says("ready")
    assert story.effects == [DeliverPacket(story.now.handoff.id, story.leg)]
    story.happens(Delivered(story.now.handoff.id, story.leg)).says("busy")
    assert story.now.handoff is None
    assert [handoff.to_agent for handoff in story.now.done] == ["bob"]


@pytest.mark.parametrize("scope", [Scope.TRANSIENT, Scope.AUTH, Scope.WARNING])
def test_only_limits_that_last_hand_the_session_over(scope: Scope) -> None:
    """A retry, a warning or a logged-out agent must never start another agent by itself."""
    story = Story().start().says("busy").limit(scope)
    assert story.now.state is State.BUSY
    assert story.effects == []


def test_a_signal_that_does_not_decide_is_journalled_and_nothing_else() -> None:
    """Screen text can be forged by the agent: it is evidence, not an order."""
    story = Story().start().says("busy").limit(decides=False)
    assert story.names(last=1) == ["signal.seen"]
    assert story.effects == []


def test_late_signals_of_an_old_leg_change_nothing() -> None:
    """A hook of the predecessor may arrive after the successor started."""
    story = Story().start().to_step(Step.SPAWNED)
    before = len(story.events)
    signal = Signal(AgentName("ann"), Kind.LIMIT, Scope.ACCOUNT, Evidence(Source.HOOK, "late"), decides=True)
    story.happens(Heard("L1", signal)).happens(LegGone("L1", "exited"))
    assert len(story.events) == before


def test_the_same_limit_heard_twice_begins_one_handoff() -> None:
    """The hook and the transcript both tell; one saga follows."""
    story = Story().start().limit()
    before = len(story.events)
    story.limit()
    assert len(story.events) == before


def test_nobody_available_rests_the_session_and_leaves_the_agent_in_charge() -> None:
    """Stopping the only agent would help nobody; the user is told who rests until when."""
    story = Story(("ann", "bob"))
    story.availability["bob"] = Availability(
        installed=True, resting=True, rests_until=NOW + timedelta(hours=1)
    )
    story.start().limit()
    assert story.now.state is State.RESTING
    assert story.now.rested_until == "2026-11-21T19:20:00+00:00"
    assert story.now.skipped == ("bob: rests until 2026-11-21T19:20+00:00",)
    assert story.effects[-1] == WakeAt(NOW + timedelta(hours=1))
    story.happens(ResetPassed())
    assert story.now.state is State.READY


def test_a_session_whose_agent_left_while_resting_goes_on_at_the_reset_only_when_told_to() -> None:
    """`resume_at_reset` is consent to work unattended."""
    story = Story(("ann", "bob"))
    story.availability["bob"] = Availability(installed=True, resting=True, rests_until=RESET)
    story.start().limit().gone("exited")
    assert story.now.state is State.RESTING
    story.availability["bob"] = HERE
    assert story.happens(ResetPassed()).effects == []
    story.happens(ResetPassed(), resume_at_reset=True)
    assert story.now.handoff.to_agent == "bob"
    assert story.effects == [PublishPacket(story.now.handoff.id)]


def test_a_successor_that_ends_before_it_is_ready_gets_a_second_try_then_gives_way() -> None:
    """One crash is bad luck; a broken installation must not strand the user."""
    story = Story().start().to_step(Step.SPAWNED).gone("exited", 127)
    assert story.names(last=4) == ["leg.ended", "handoff.failed", "handoff.begun", "handoff.stopped"]
    assert story.now.handoff.to_agent == "bob"
    story.published().gone("unstarted")
    assert story.now.handoff.to_agent == "cas"
    assert story.effects == [PublishPacket(story.now.handoff.id)]
    story.published().gone("unstarted").published().gone("unstarted")
    assert story.now.state is State.RESTING
    assert story.now.skipped == (
        "cas: could not take over just now",
        "ann: rests until 2026-11-21T21:20+00:00",
        "bob: could not take over just now",
    )


def test_a_successor_that_hits_its_own_limit_at_once_is_replaced() -> None:
    """All windows may be nearly empty; the packet travels on."""
    story = Story().start().to_step(Step.DELIVERED).limit()
    assert story.now.handoff.to_agent == "cas"
    assert story.effects[-1] == StopLeg(story.now.handoff.from_leg)


def test_a_user_who_quits_a_ready_successor_ends_the_session() -> None:
    """Quitting is not failing."""
    story = Story().start().to_step(Step.SPAWNED).says("ready").gone("exited", 0)
    assert story.now.state is State.ENDED


def test_asking_by_hand_refuses_a_resting_agent_unless_forced() -> None:
    """The reason names the rest; a person may know better."""
    story = Story().start()
    story.availability["bob"] = Availability(installed=True, resting=True, rests_until=RESET)
    with pytest.raises(NobodyAvailableError, match="bob: rests until 2026-11-21T21:20"):
        story.happens(Asked("bob"))
    story.happens(Asked("bob", force=True, focus="the parser"))
    assert (story.now.handoff.to_agent, story.now.handoff.focus) == ("bob", "the parser")


def test_asking_for_the_agent_at_work_or_during_a_handoff_is_wrong_use() -> None:
    """Two successors at once must be impossible."""
    story = Story().start()
    with pytest.raises(WrongUseError, match="already at work"):
        story.happens(Asked("ann"))
    story.limit()
    with pytest.raises(WrongUseError, match="under way"):
        story.happens(Asked("cas"))


def test_an_ended_session_goes_on_with_another_agent_without_anyone_to_stop() -> None:
    """Sessions survive their agents."""
    story = Story().start().gone("exited", 0)
    assert story.now.state is State.ENDED
    story.happens(Asked("bob"))
    assert story.effects == [PublishPacket(story.now.handoff.id)]


def test_a_returning_agent_resumes_its_own_native_session() -> None:
    """Its history and prompt cache are still there."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    story.availability["ann"] = HERE
    story.happens(Asked("ann")).gone().published()
    assert (story.now.leg.native_id, story.now.leg.resumes) == ("native-1", True)


def back(story: Story) -> Story:
    """The reset of the preferred agent has come."""
    story.availability["ann"] = HERE
    return story


def test_a_preferred_agent_is_offered_back_once_when_its_window_resets() -> None:
    """The user decides; being asked twice for the same reset would be nagging."""
    story = back(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    story.happens(ResetPassed())
    assert story.names(last=1) == ["return.offered"]
    assert story.now.offered == "ann"
    count = len(story.events)
    assert len(story.happens(ResetPassed()).says("ready").events) == count + 1
    assert story.effects == []


def test_an_automatic_return_waits_for_the_end_of_the_turn() -> None:
    """An agent at work is not interrupted."""
    story = back(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    story.happens(ResetPassed(), return_mode="auto")
    assert story.now.state is State.BUSY
    story.happens(ScreenSays(story.leg, "ready"), return_mode="auto")
    assert (story.now.handoff.to_agent, story.now.handoff.reason) == ("ann", "command")


def test_no_return_is_offered_while_the_agent_rests_or_the_user_wants_none() -> None:
    """A window that moved on, or a user who said off."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    count = len(story.events)
    assert len(story.happens(ResetPassed(), return_mode="auto").events) == count
    assert len(back(story).happens(ResetPassed(), return_mode="off").events) == count


def test_a_new_daemon_waits_for_the_reset_again() -> None:
    """The offer must not be lost with the daemon that would have made it."""
    story = (
        Story().start().says("busy").to_step(Step.DELIVERED).says("busy").happens(Restarted(leg_lives=True))
    )
    assert story.effects == [WakeAt(RESET)]


def test_a_packet_that_cannot_be_published_ends_the_session_saying_why() -> None:
    """The predecessor is gone; the journal keeps everything needed to go on later."""
    story = Story().start().to_step(Step.STOPPED)
    story.happens(PublishFailed(story.now.handoff.id, "the disk is full"))
    assert (story.now.state, story.now.why) == (State.ENDED, "the disk is full")


def test_stopping_ends_the_leg_and_then_the_session() -> None:
    """No orphan agent."""
    story = Story().start().happens(StopAsked("by hand"))
    assert story.effects == [StopLeg("L1")]
    assert story.gone().now.state is State.ENDED


@pytest.mark.parametrize("leg_lives", [True, False])
@pytest.mark.parametrize("kept", range(2, 19))
def test_a_crash_after_any_journal_line_leads_on_to_one_successor(kept: int, *, leg_lives: bool) -> None:
    """Kill -9 between any two writes: the next daemon finishes the saga or leaves the source in charge."""
    whole = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    story = Story()
    story.availability = whole.availability
    story.events = whole.events[:kept]
    story.session = fold_events(story.events)
    story.ids = 100
    story.happens(Restarted(leg_lives))
    for _ in range(12):
        match story.effects[-1:]:
            case [StopLeg(leg)]:
                story.happens(LegGone(leg, "stopped"))
            case [PublishPacket(handoff)]:
                story.happens(Published(handoff, "P", 1, "1.json", "1.md", "f"))
            case [SpawnLeg(leg)]:
                story.happens(Spawned(leg, 20, 21, 22)).says("ready")
            case [DeliverPacket(handoff, leg)]:
                story.happens(Delivered(handoff, leg)).says("busy")
            case _:
                break
    assert story.now.state in (State.STARTING, State.READY, State.BUSY, State.ENDED)
    living = [leg for leg in story.now.legs if not leg.is_over]
    assert len(living) <= 1
    if story.now.handoff is not None:
        assert story.now.handoff.step is Step.SPAWNED
        assert living


def test_a_successor_seen_ready_before_it_is_said_to_live_still_gets_its_packet() -> None:
    """The screen and the spawn are told by different tasks, in either order."""
    story = Story().start().to_step(Step.SPAWNING).says("ready")
    assert story.effects == []
    assert story.spawned().effects == [DeliverPacket(story.now.handoff.id, story.leg)]


def test_the_task_is_given_once_to_the_first_leg_when_it_is_ready() -> None:
    """`--task` must reach the agent exactly once, also when the daemon dies in between."""
    story = Story(task="fix it")
    story.start()
    assert story.effects == [DeliverTask("L1")]
    assert story.happens(Restarted(leg_lives=True)).effects == [DeliverTask("L1")]
    assert story.says("busy").says("ready").effects == []


def test_an_event_no_arrow_allows_is_a_loud_bug() -> None:
    """States, not flags: there is one table and nothing slips past it."""
    story = Story()
    event = Event(2, NOW, 0, SessionCreated("S", "/r", "/r"))
    with pytest.raises(ImpossibleEventError, match=r"session\.created while starting"):
        fold_event(story.session, event)
