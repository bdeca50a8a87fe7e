"""Who wants into a room waits for that room's end alone: nobody else is kept from any other."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.change_notifier import ChangeNotifier
from agent_relay.engine.sessions.open_request import OpenRequest
from agent_relay.engine.sessions.opener import SessionOpener, TurnStart
from agent_relay.session.fold import fold_events
from agent_relay.system.disk.folders import get_folders
from tests.logic.turn_story import TurnStory
from tests.support.heard import until

if TYPE_CHECKING:
    from agent_relay.domain.session import Session
    from agent_relay.engine._effect_runner import EffectRunner
    from agent_relay.engine._host import Host
    from agent_relay.engine.services import Services
    from agent_relay.engine.sessions._notifications import SessionNotifier
    from agent_relay.engine.sessions._registry import SessionRegistry

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
        self._rooms = {one.id: _open(one, patience_s) for one in both}
        # An index without sessions: nothing was moved here from elsewhere.
        services = SimpleNamespace(folders=get_folders({"AGENT_RELAY_HOME": f"{folder}/relay"}))
        self.opener = SessionOpener(cast("Services", services), cast("SessionRegistry", self))
        self._cwd = str(folder)

    def __contains__(self, session: object) -> bool:
        return session in self._rooms

    def get(self, session: str) -> ActiveSession:
        """The room, which somebody asked for."""
        self.asked.append(session)
        return self._rooms[session]

    async def retire(self) -> None:
        """None of them has ended."""

    def offer(self, luggage: LaunchEnvironment, *, root: str, session: str = "") -> None:
        """None of them lost what its agents are started with."""

    async def hold(self, session: str) -> ActiveSession | TurnStart:
        """The room once it may be held, let go of again."""
        async with self.opener.hold(OpenRequest("ann", self._cwd, {}, session=session)) as found:
            return found

    def end(self) -> None:
        """The agent of the slow one's last turn is gone, and everything of it is written."""
        room = self._rooms["slow"]
        cast("SimpleNamespace", room.host).session = self.rest
        room.changes.notify()


def _open(session: "Session", patience_s: float) -> ActiveSession:
    host = SimpleNamespace(session=session, refusal="", is_idle=True)
    stage = SimpleNamespace(is_collecting=False)
    notifying = cast("SessionNotifier", SimpleNamespace())
    return ActiveSession(
        cast("Host", host), cast("EffectRunner", stage), ChangeNotifier(), notifying, patience_s=patience_s
    )


def test_one_that_ends_slowly_keeps_nobody_from_another(tmp_path: Path) -> None:
    """One agent that takes its time to leave must not stop every terminal of its user."""

    async def play() -> None:
        places = Places(tmp_path)
        slow = asyncio.create_task(places.hold("slow"))
        await until(lambda: places.asked == ["slow"])
        async with asyncio.timeout(LIMIT_S):
            assert isinstance(await places.hold("quick"), ActiveSession)
        assert not slow.done()
        places.end()
        async with asyncio.timeout(LIMIT_S):
            assert await slow == places.get("slow")

    asyncio.run(play())


def test_the_next_turn_waits_for_the_rest_of_the_last_ones_end(tmp_path: Path) -> None:
    """It is told when its first line is written: who was quick was refused, beside an agent already gone."""

    async def play() -> None:
        places = Places(tmp_path)
        slow = asyncio.create_task(places.hold("slow"))
        await until(lambda: places.asked == ["slow"])
        places.end()
        async with asyncio.timeout(LIMIT_S):
            await slow
        # It is looked for again: while nobody held it, it may have gone.
        assert places.asked == ["slow", "slow"]

    asyncio.run(play())


def test_two_that_wait_for_one_room_come_in_one_after_the_other(tmp_path: Path) -> None:
    """Both see the last turn's end; what the first one begins the second one must see, too."""

    async def play() -> None:
        places = Places(tmp_path)
        inside: list[str] = []

        async def come(name: str) -> None:
            wish = OpenRequest("ann", str(tmp_path), {}, session="slow")
            async with places.opener.hold(wish):
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

    asyncio.run(play())


def test_who_comes_into_a_room_that_stays_as_it_is_waits_for_a_while_only(tmp_path: Path) -> None:
    """It is refused by what it finds there, and told why: better than no answer."""

    async def play() -> None:
        places = Places(tmp_path, patience_s=0.1)
        async with asyncio.timeout(LIMIT_S):
            found = await asyncio.gather(*(places.hold("slow") for _ in range(3)))
        assert [one == places.get("slow") for one in found] == [True] * 3

    asyncio.run(play())
