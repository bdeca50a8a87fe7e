"""Anything may happen to a session, in any order: it is never impossible, never stuck, never owned by two."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.effects import DeliverPacket, DeliverTask, Effect, PublishPacket, SpawnLeg, StopLeg
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import (
    Answered,
    CancelAsked,
    CloseAsked,
    Delivered,
    DeliverFailed,
    HandoffAsked,
    Input,
    LegGone,
    PromptTaken,
    Published,
    PublishFailed,
    ResetPassed,
    Restarted,
    RetryAsked,
    Spawned,
    StateSeen,
    StopAsked,
)
from agent_relay.domain.limits import Scope
from agent_relay.domain.session import NO_TERMS, Terms
from agent_relay.domain.state import LIVE, State
from agent_relay.session.decision import Availability
from tests.session.story import HERE, NOW, Story

SETTLED = {*LIVE, State.RESTING, State.ENDED}
MOVES = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 4), st.booleans()),
    st.tuples(st.just("says"), st.sampled_from(["ready", "busy", "asking"]), st.booleans()),
    st.tuples(st.just("limit"), st.sampled_from([Scope.ACCOUNT, Scope.BILLING, Scope.MODEL]), st.booleans()),
    st.tuples(st.just("gone"), st.sampled_from(["exited", "lost"]), st.booleans()),
    st.tuples(st.just("ask"), st.sampled_from(["ann", "bob", "cas", ""]), st.booleans()),
    st.tuples(st.just("handoff"), st.sampled_from(["cancel", "retry", "completed", "failed"]), st.booleans()),
    st.tuples(
        st.sampled_from(["stop", "reset", "crash", "prompt", "answers", "rested"]), st.none(), st.booleans()
    ),
)


class Walk:
    """A session with a machine around it: effects wait until they are performed, well or badly."""

    def __init__(self) -> None:
        self.story = Story(task="paint it").start()
        self.pending: list[Effect] = []
        self.alive = {self.story.leg}

    def happens(self, happened: Input, **world: object) -> None:
        try:
            self.story.happens(happened, **world)
        except RelayError:
            return  # a person was told why it cannot be
        self.pending += self.story.effects
        living = [leg for leg in self.story.now.legs if not leg.is_over]
        assert len(living) <= 1
        assert self.story.now.living_leg in (None, *living)

    def leg_of(self, *, newest: bool) -> str:
        legs = self.story.now.legs
        return legs[-1].id if newest else legs[0].id

    def answer(self, index: int, *, well: bool) -> None:
        if not self.pending:
            return
        match self.pending.pop(index % len(self.pending)):
            case StopLeg(leg):
                self.end(leg, "stopped")
            case SpawnLeg(leg) if well:
                self.alive.add(leg)
                self.happens(Spawned(leg, 10, 11, 12))
            case SpawnLeg(leg):
                self.happens(LegGone(leg, "unstarted", why="not installed"))
            case PublishPacket(handoff) if well:
                number = self.story.now.packets + 1
                self.happens(Published(handoff, "P", number, "1.json", "1.md", "f"))
            case PublishPacket(handoff):
                self.happens(PublishFailed(handoff, "the disk is full"))
            case DeliverPacket(handoff, leg):
                self.happens(Delivered(handoff, leg) if well else DeliverFailed(handoff, leg, "typing"))
            case DeliverTask(leg):
                self.happens(StateSeen(leg, "busy"))
            case _:
                pass

    def end(self, leg: str, how: str) -> None:
        self.alive.discard(leg)
        self.happens(LegGone(leg, how))

    def intervene(self, how: str, *, newest: bool) -> None:
        begun = [event.body.handoff for event in self.story.events if isinstance(event.body, HandoffBegun)]
        handoff = "none" if not begun else begun[-1] if newest else begun[0]
        match how:
            case "cancel":
                self.happens(CancelAsked(handoff))
            case "retry":
                self.happens(RetryAsked(handoff, force=newest))
            case _:
                self.happens(CloseAsked(handoff, how, "as seen"))

    def move(self, kind: str, what: object, *, well: bool) -> None:  # noqa: C901, PLR0912 - one arm a move
        leg = self.leg_of(newest=well)
        match kind, what:
            case "answer", int():
                self.answer(what, well=well)
            case "says", str() if leg in self.alive:
                self.happens(StateSeen(leg, what))
            case "limit", Scope() if self.story.leg in self.alive:
                self.story.limit(what)
                self.pending += self.story.effects
            case "gone", str() if leg in self.alive:
                self.end(leg, what)
            case "ask", str():
                terms = Terms(("a door",), rollback="ann", questions=("why?",)) if well else NO_TERMS
                self.happens(HandoffAsked(what, force=well, terms=terms))
            case "handoff", str():
                self.intervene(what, newest=well)
            case "stop", _:
                self.happens(StopAsked("by hand"))
            case "reset", _:
                self.happens(ResetPassed(), resume_at_reset=well, return_mode="auto")
            case "rested", _:
                rest = Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=1))
                self.story.availability[self.story.now.agent] = HERE if well else rest
            case "crash", _:
                self.pending.clear()
                self.happens(Restarted(self.story.leg in self.alive))
            case "prompt", _:
                self.happens(PromptTaken(leg))
            case "answers", _:
                self.happens(Answered(leg))
            case _:
                pass


@settings(max_examples=300)
@given(st.lists(MOVES, max_size=40))
def test_whatever_happens_the_session_can_go_on(moves: list[tuple[str, object, bool]]) -> None:
    """A late answer, a second opinion, a crash in between: no order of them strands a user."""
    walk = Walk()
    for kind, what, well in moves:
        walk.move(kind, what, well=well)
    for _ in range(60):
        if not walk.pending:
            break
        walk.answer(0, well=True)
    assert walk.story.now.state in SETTLED
    assert walk.story.now.handoff is None or walk.story.now.living_leg is not None
    known = [event.body.handoff for event in walk.story.events if isinstance(event.body, HandoffBegun)]
    assert len(walk.story.now.closed) == len(set(walk.story.now.closed))
    assert set(walk.story.now.closed) <= set(known)
