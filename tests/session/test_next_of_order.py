from datetime import UTC, datetime

import pytest

from agent_relay.domain.effects import StopLeg
from agent_relay.domain.errors import NobodyAvailableError
from agent_relay.domain.events.session import Body, Event, LegReady, LegStarted, LegStarting, SessionCreated
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import HandoffAsked
from agent_relay.domain.session import Session
from agent_relay.session.decision import Availability, DecisionContext
from agent_relay.session.fold import fold_events
from agent_relay.session.machine import step

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)


def _at_work(*roster: str) -> Session:
    """A session of `roster` whose first agent waits for a prompt."""
    bodies: tuple[Body, ...] = (
        SessionCreated("S", "/r", "/r", roster),
        LegStarting("L1", roster[0], 1),
        LegStarted("L1", 1, 2, 3),
        LegReady("L1"),
    )
    session = fold_events([Event(number, NOW, 1, body) for number, body in enumerate(bodies, 1)])
    assert session is not None
    return session


def _world(**availability: Availability) -> DecisionContext:
    return DecisionContext(NOW, availability, "H1", "L2")


def test_no_name_means_the_next_of_the_order_who_can() -> None:
    """`/handoff` alone is what people type when it has to go quickly."""
    world = _world(
        ann=Availability(installed=True), bob=Availability(installed=False), cas=Availability(installed=True)
    )
    outcome = step(_at_work("ann", "bob", "cas"), HandoffAsked(""), world)
    begun = outcome.bodies[0]
    assert isinstance(begun, HandoffBegun)
    assert (begun.from_agent, begun.to_agent, begun.reason) == ("ann", "cas", "manual")
    assert outcome.effects == (StopLeg("L1"),)


def test_nobody_else_is_said_with_every_reason() -> None:
    """The person decides what to do about it: install, sign in, or wait."""
    world = _world(ann=Availability(installed=True), bob=Availability(installed=False))
    with pytest.raises(NobodyAvailableError, match="bob: not installed"):
        step(_at_work("ann", "bob"), HandoffAsked(""), world)
    with pytest.raises(NobodyAvailableError, match="there is nobody else in the order"):
        step(_at_work("ann"), HandoffAsked(""), world)
