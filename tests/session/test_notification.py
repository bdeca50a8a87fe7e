"""A person is called for what they would come back for, in words that give nothing away."""

from datetime import UTC

import pytest

from agent_relay.domain.events.session import (
    Body,
    Event,
    LegAsking,
    LegBusy,
    LegStarting,
    ReturnOffered,
    SessionCreated,
    SessionRested,
    SessionWoke,
)
from agent_relay.domain.events.work import HandoffBegun, HandoffConfirmed
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.engine.legs.terminal_messages import Notification, find_notification, is_due
from agent_relay.session.fold import fold_events
from tests.session.story import NOW

BEGUN = HandoffBegun("H", "L1", "ann", "bob", "rate_limit", "ann hit its usage limit")


def tell(*bodies: Body, root: str = "/home/dev/shop", state: State | None = None) -> Notification | None:
    """What is told of the last of `bodies`."""
    before: tuple[Body, ...] = (SessionCreated("S", root, root, ("ann", "bob")), LegStarting("L1", "ann", 1))
    events = [Event(number, NOW, 1, body) for number, body in enumerate((*before, *bodies), start=1)]
    session = fold_events(events[: len(before)])
    assert session is not None
    return find_notification(_stand(session, state), events, len(events), UTC)


def _stand(session: Session, state: State | None) -> Session:
    return session if state is None else replace(session, state=state)


@pytest.mark.parametrize(
    ("bodies", "told"),
    [
        (
            (BEGUN, HandoffConfirmed("H", "L2")),
            Notification("handoff", "shop: bob took over", "ann hit its usage limit."),
        ),
        (
            (replace(BEGUN, why=""), HandoffConfirmed("H", "L2")),
            Notification("handoff", "shop: bob took over", "ann handed over."),
        ),
        (
            (SessionWoke(),),
            Notification("reset", "shop: ann is available again", "Its limit has reset."),
        ),
        (
            (ReturnOffered("bob"),),
            Notification("reset", "shop: bob is available again", "To switch back: agent-relay bob"),
        ),
        (
            (ReturnOffered("bob", by_itself=True),),
            Notification("reset", "shop: bob is available again", "It takes over at the end of this turn."),
        ),
        ((LegAsking("L1"),), Notification("asking", "shop: ann asks", "It waits for your answer.")),
    ],
)
def test_a_person_is_told_who_and_why(bodies: tuple[Body, ...], told: Notification) -> None:
    """Two lines on a lock screen have to say whether to get up."""
    assert tell(*bodies) == told


def test_a_rest_is_told_with_its_first_reset() -> None:
    """Whoever is at dinner wants to know whether to come back at all today."""
    rested = SessionRested("ann hit its usage limit", "2026-11-21T21:00:00+00:00")
    assert tell(rested, state=State.RESTING) == Notification(
        "resting", "shop: every agent rests", "ann hit its usage limit. The first reset is at 21:00."
    )
    unknown = SessionRested("ann hit its credit limit")
    found = tell(unknown, state=State.RESTING)
    assert found is not None
    assert found.text == "ann hit its credit limit."
    silent = tell(SessionRested(""), state=State.RESTING)
    assert silent is not None
    assert silent.text == "No reset time is known."


def test_who_continues_the_work_on_the_resting_screen_is_not_told_of_it() -> None:
    """Their own Enter is no news to them."""
    assert tell(replace(BEGUN, why="asked for"), HandoffConfirmed("H", "L2")) is None


def test_a_rest_that_somebody_ends_at_once_is_not_told() -> None:
    """What is over before it can be read is no news."""
    assert tell(SessionRested("begun anew"), state=State.STARTING) is None


def test_what_a_person_asked_for_is_not_told() -> None:
    """They are there."""
    assert tell(replace(BEGUN, reason="manual"), HandoffConfirmed("H", "L2")) is None
    assert tell(HandoffConfirmed("unknown", "L2")) is None
    assert tell(LegBusy("L1")) is None


def test_the_name_of_a_folder_gives_no_secret_and_no_sequence_away() -> None:
    """What is told goes over lock screens and other people's servers."""
    secret = "ghp_" + "a1B2" * 9
    found = tell(LegAsking("L1"), root=f"/home/dev/{secret}\x1b]0;x\x07\n")
    assert found is not None
    assert secret not in found.title
    assert found.title.isprintable()


def test_two_of_a_kind_within_five_seconds_are_one() -> None:
    """An agent that asks ten times in a row rings once."""
    assert is_due(None, 100.0)
    assert not is_due(100.0, 104.9)
    assert is_due(100.0, 105.0)
