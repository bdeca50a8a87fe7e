"""Following a headless turn: what is told of it is one moment of it, whatever happens meanwhile."""

import asyncio
from collections.abc import Sequence
from datetime import UTC
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.protocol.run_output import LegBegan, LegOver
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine.legs.turn_stream import StreamCursor, StreamPart
from agent_relay.engine.threads import TurnFollowers
from agent_relay.engine.turn_operations import HeadlessTurns
from agent_relay.session.fold import fold_events
from agent_relay.store.session_journals import SessionJournal
from tests.session.story import NOW
from tests.session.turn_story import TurnStory
from tests.support.at_work import working_world

if TYPE_CHECKING:
    from agent_relay.engine.services import Services
    from agent_relay.engine.sessions.registry import SessionRegistry


NOW_CLOCK = SimpleNamespace(now=lambda: NOW, monotonic=lambda: 0.0)


class Room:
    """A room whose session goes on after every look at it, as it does while another thread reads disk.

    `numbers` are the lines its session stands at, look by look; its journal is `ahead` lines further.
    """

    def __init__(self, events: Sequence[Event], numbers: list[int], *, ahead: int = 0) -> None:
        self.changes = self
        self.followers = TurnFollowers()
        self.refusal = ""
        self.events = events[: numbers[0] + ahead]
        self._all, self._numbers, self._ahead = events, numbers, ahead

    @property
    def session(self) -> Session:
        """The session now; the last one stays."""
        number = self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]
        self.events = self._all[: number + self._ahead]
        found = fold_events(self._all[:number])
        assert found is not None
        return found

    def listen(self) -> "asyncio.Future[None]":
        """It beats at once."""
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heard.set_result(None)
        return heard


def follow(room: Room, told: StreamCursor) -> tuple[StreamPart, Session]:
    """What is told of the room's session from `told` on."""
    sessions = cast(
        "SessionRegistry", SimpleNamespace(get=lambda _: room, services=SimpleNamespace(zone=UTC))
    )
    services = cast(
        "Services",
        SimpleNamespace(
            zone=UTC, folders=SimpleNamespace(legs="/nowhere"), get_adapter=_know, clock=NOW_CLOCK
        ),
    )
    return asyncio.run(HeadlessTurns(sessions, services).follow("S", told))


def _know(_agent: str) -> SimpleNamespace:
    return SimpleNamespace(adapter=SimpleNamespace(headless=None))


def test_an_end_is_told_only_with_everything_before_it() -> None:
    """A turn that ends while its stream is read would else be over before its last words."""
    story = TurnStory().take().at_work()
    before = len(story.events)
    story.done()
    assert story.now.state is State.ENDED
    room = Room(story.events, [before, len(story.events)])
    part, session = follow(room, StreamCursor(before, "L1"))
    assert session.state is State.ENDED
    assert [type(event) for event in part.events] == [LegOver]


def test_a_leg_whose_line_is_being_written_is_told_of_later() -> None:
    """Its stream is found by the session: a line told too early would be passed over, stream and all."""
    story = TurnStory().take()
    number = story.find("leg.starting")
    part, _ = follow(Room(story.events, [number - 1, number], ahead=1), StreamCursor(number - 1))
    assert [type(event) for event in part.events] == [LegBegan]
    assert part.cursor.leg == story.leg


@pytest.mark.size("every")
def test_a_turn_that_cannot_be_taken_up_is_said_to_be_so() -> None:
    """Its follower would else ask in circles, as fast as it can, for an end that does not come."""
    with working_world(demo=[{"do": [{"wait_s": 60}]}]) as world:
        begun = world.ask("run.begin", agent="demo", task="hello", cwd=world.project, env=world.environ)
        session = str(begun["session"])
        world.wait_state(session, State.BUSY)
        world.kill_daemons()
        held = SessionJournal(f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl")
        world.start_daemon()
        with pytest.raises(WrongUseError, match="is not at work"):
            world.ask("run.follow", session=session, told=begun["told"])
        held.close()


@pytest.mark.size("test")
def test_a_turn_that_has_just_ended_is_not_passed_on() -> None:
    """The shell asks within moments of the end: an agent begun then would work outside of it."""
    with working_world(demo=[{"do": [{"say": "hello"}]}]) as world:
        begun = world.ask("run.begin", agent="demo", task="hello", cwd=world.project, env=world.environ)
        session = str(begun["session"])
        world.wait_state(session, State.ENDED)
        answer = world.ask("use", session=session, agent="understudy", turn=True)
        assert (answer["passed"], answer["state"]) == (False, "ended")
        assert world.ask("use", session=session, agent="understudy")["passed"] is True
