"""Who wants into a room waits for that room's end alone: nobody else is kept from any other."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from agent_relay.domain.values import replace
from agent_relay.engine.services import LaunchEnvironment
from agent_relay.engine.sessions.commands import TurnStart, hold_session
from agent_relay.engine.sessions.creation import OpenRequest
from agent_relay.engine.sessions.host import Host
from agent_relay.session.fold import fold_events
from agent_relay.system.disk.folders import get_folders
from tests.session.turn_story import TurnStory
from tests.support.heard import in_loop, until
from tests.support.scripted_host import Scene

if TYPE_CHECKING:
    from agent_relay.domain.session import Session
    from agent_relay.engine.sessions.registry import SessionRegistry

LIMIT_S = 60


class Places:
    """A daemon's rooms: `slow` is between a turn's last line and its agent's end, `quick` is free."""

    def __init__(self, folder: Path, *, patience_s: float = 3600) -> None:
        story = TurnStory().take("paint it", ends=False).at_work().done("painted")
        told = fold_events(story.events[: story.find("turn.ended")])
        assert told is not None
        assert told.open_turn is None
        assert told.living_leg is not None
        self.rest = replace(story.now, id="slow")
        self.asked: list[str] = []
        both = replace(told, id="slow"), replace(story.now, id="quick")
        self._hosts = {one.id: _open(one) for one in both}
        self._patience_s = patience_s
        # An index without sessions: nothing was moved here from elsewhere.
        self.services = SimpleNamespace(folders=get_folders({"AGENT_RELAY_HOME": f"{folder}/relay"}))
        self.lock = asyncio.Lock()
        self._cwd = str(folder)

    def __contains__(self, session: object) -> bool:
        return session in self._hosts

    def get(self, session: str) -> Host:
        """The room, which somebody asked for."""
        self.asked.append(session)
        return self._hosts[session]

    async def follow_move(self, session: str, root: str) -> None:
        """None of them was moved here."""

    async def retire(self) -> None:
        """None of them has ended."""

    def offer(self, luggage: LaunchEnvironment, *, root: str, session: str = "") -> None:
        """None of them lost what its agents are started with."""

    def hold(self, session: str) -> AbstractAsyncContextManager[Host | TurnStart]:
        """The room, once it may be held."""
        request = OpenRequest("ann", self._cwd, {}, session=session)
        return hold_session(cast("SessionRegistry", self), request, patience_s=self._patience_s)

    async def visit(self, session: str) -> Host | TurnStart:
        """The room once it may be held, let go of again."""
        async with self.hold(session) as found:
            return found

    def end(self) -> None:
        """The agent of the slow one's last turn is gone, and everything of it is written."""
        room = self._hosts["slow"]
        room.session = self.rest
        room.changes.notify()


def _open(session: "Session") -> Host:
    host = Scene().host
    host.session = session
    return host


@in_loop
async def test_one_that_ends_slowly_keeps_nobody_from_another(tmp_path: Path) -> None:
    """One agent that takes its time to leave must not stop every terminal of its user."""
    places = Places(tmp_path)
    slow = asyncio.create_task(places.visit("slow"))
    await until(lambda: places.asked == ["slow"])
    async with asyncio.timeout(LIMIT_S):
        assert isinstance(await places.visit("quick"), Host)
    assert not slow.done()
    places.end()
    async with asyncio.timeout(LIMIT_S):
        assert await slow == places.get("slow")


@in_loop
async def test_the_next_turn_waits_for_the_rest_of_the_last_ones_end(tmp_path: Path) -> None:
    """It is told when its first line is written: who was quick was refused, beside an agent already gone."""
    places = Places(tmp_path)
    slow = asyncio.create_task(places.visit("slow"))
    await until(lambda: places.asked == ["slow"])
    places.end()
    async with asyncio.timeout(LIMIT_S):
        await slow
    # It is looked for again: while nobody held it, it may have gone.
    assert places.asked == ["slow", "slow"]


@in_loop
async def test_two_that_wait_for_one_room_come_in_one_after_the_other(tmp_path: Path) -> None:
    """Both see the last turn's end; what the first one begins the second one must see, too."""
    places = Places(tmp_path)
    inside: list[str] = []

    async def come(name: str) -> None:
        async with places.hold("slow"):
            inside.append(f"{name} in")
            await asyncio.sleep(0)
            inside.append(f"{name} out")

    both = asyncio.gather(come("one"), come("two"))
    await until(lambda: len(places.asked) == 2)
    assert inside == []
    places.end()
    async with asyncio.timeout(LIMIT_S):
        await both
    assert [word.split()[1] for word in inside] == ["in", "out", "in", "out"]
    assert inside[0].split()[0] == inside[1].split()[0]


@in_loop
async def test_who_comes_into_a_room_that_stays_as_it_is_waits_for_a_while_only(tmp_path: Path) -> None:
    """It is refused by what it finds there, and told why: better than no answer."""
    places = Places(tmp_path, patience_s=0.1)
    async with asyncio.timeout(LIMIT_S):
        found = await asyncio.gather(*(places.visit("slow") for _ in range(3)))
    assert [one == places.get("slow") for one in found] == [True] * 3
