"""A turn or chat is found again by its asker's id, and whether asking again would ask an agent twice."""

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events.work import ChatBegun, TurnBegun, TurnEnded
from agent_relay.session.transitions import find_turn_by_message
from tests.session.turn_story import TurnStory

LEG = words.LegStarting("L", "ann", 1, headless=True)
MINE = TurnBegun("ann", "paint it", message="M")
OTHER = TurnBegun("ann", "and dry it", message="N")
CHAT = ChatBegun(("ann", "bob"), "talk of it", message="M")
OTHER_CHAT = ChatBegun(("ann", "bob"), "talk of it", message="N")
TURN = TurnBegun("ann", "talk of it", seat="ann")
STOPPED = TurnEnded("", "stopped", "the daemon was killed")


@pytest.mark.parametrize(
    ("bodies", "found"),
    [
        ((), None),
        ((OTHER, LEG, STOPPED), None),
        ((MINE,), (2, False)),
        ((MINE, LEG, STOPPED), (2, True)),
        ((MINE, LEG, TurnEnded("L", "stopped", "by hand")), (2, False)),
        ((MINE, STOPPED), (2, True)),
        ((MINE, TurnEnded("", "resting", "everybody rests")), (2, False)),
        ((MINE, STOPPED, MINE), (4, False)),
        ((MINE, STOPPED, MINE, LEG, OTHER, STOPPED), (4, False)),
        ((MINE, LEG, OTHER, STOPPED), (2, False)),
        ((CHAT,), (2, False)),
        ((CHAT, TURN, STOPPED, OTHER_CHAT), (2, False)),
        ((OTHER_CHAT, TURN, LEG, CHAT), (5, False)),
        ((OTHER_CHAT,), None),
    ],
)
def test_a_turn_is_found_by_its_askers_id(
    bodies: tuple[words.Body, ...], found: tuple[int, bool] | None
) -> None:
    """Only one that was given up before any agent was asked may be begun again; a chat goes on."""
    events = TurnStory().events[:1]
    for body in bodies:
        events = (*events, words.Event(len(events) + 1, events[0].at, 0, body))
    assert find_turn_by_message(events, "M") == found
