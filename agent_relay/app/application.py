"""The application the daemon serves: every session at work, and the operations on them."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_relay.app.evidence import Evidence
from agent_relay.app.ground import Ground
from agent_relay.app.handlers import build_handlers
from agent_relay.app.late_handlers import build_late_handlers
from agent_relay.app.narrate_handlers import build_narrate_handlers
from agent_relay.app.narrating import Narrating
from agent_relay.app.preload import load_rest
from agent_relay.app.sessions import Sessions
from agent_relay.domain.serving import Handler, Teller
from agent_relay.system.adapter_catalog import AdapterCatalog, read_catalog
from agent_relay.system.clock import Clock
from agent_relay.system.folders import Folders
from agent_relay.system.followed_config import FollowedConfig
from agent_relay.system.holder_start import end_spare
from agent_relay.system.legs import sweep_unmade
from agent_relay.system.limited_process import end_server
from agent_relay.system.local_zone import LocalZone
from agent_relay.system.owner_facts import read_boot_moment, read_owner
from agent_relay.system.removing import sweep_unfinished

if TYPE_CHECKING:
    from agent_relay.app.race.racing import Racing

_log = logging.getLogger(__name__)


_RACE = ("race.begin", "race.resume", "race.stop", "race.apply", "race.clean", "race.show")


class Application:
    """Sessions of one user. Made in the event loop, which it never leaves."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._loading: asyncio.Task[None] | None = None
        self._narrating = Narrating(ground)
        self._sessions = Sessions(ground, self._narrating)
        self._racing: Racing | None = None

    async def start(self) -> None:
        """What an earlier daemon left is taken up: living legs adopted, interrupted handoffs resumed."""
        folders = self._ground.folders
        for folder in (folders.state, folders.sessions, folders.crashes):
            await asyncio.to_thread(sweep_unfinished, folder)
        await asyncio.to_thread(sweep_unmade, folders)
        await self._sessions.start()
        if await asyncio.to_thread(_has_races, folders):
            await self._get_racing().start()
        self._loading = asyncio.create_task(load_rest())

    async def stop(self) -> None:
        """Everything is let go of; agents and their holders run on."""
        if self._loading is not None:
            self._loading.cancel()
        await self._narrating.close()
        if self._racing is not None:
            await self._racing.close()
        await self._sessions.stop()
        await self._ground.evidence.close()
        self._ground.messengers.close()
        await asyncio.to_thread(end_server)
        await asyncio.to_thread(end_spare)

    def handlers(self) -> Mapping[str, Handler]:
        """The operations by name; what a start need not wait for is loaded when it is asked for."""
        return {
            **build_handlers(self._sessions),
            **build_narrate_handlers(self._sessions, self._narrating),
            **build_late_handlers(("run.begin", "run.follow", "run.forget"), self._build_run),
            **build_late_handlers(("chat.begin", "chat.next"), self._build_chat),
            **build_late_handlers(("watch.follow",), self._build_watch),
            **build_late_handlers(_RACE, self._build_race),
        }

    def _build_run(self) -> Mapping[str, Handler]:
        from agent_relay.app.running import build_run_handlers

        return build_run_handlers(self._sessions, self._ground)

    def _build_chat(self) -> Mapping[str, Handler]:
        from agent_relay.app.chatting import build_chat_handlers

        return build_chat_handlers(self._sessions, self._ground)

    def _build_watch(self) -> Mapping[str, Handler]:
        from agent_relay.app.onlooking import build_watch_handlers

        return build_watch_handlers(self._sessions)

    def _build_race(self) -> Mapping[str, Handler]:
        from agent_relay.app.race.handlers import build_race_handlers

        return build_race_handlers(self._get_racing())

    def _get_racing(self) -> "Racing":
        from agent_relay.app.race.racing import Racing
        from agent_relay.app.race.runner import SessionRunners

        if self._racing is None:
            self._racing = Racing(self._ground, SessionRunners(self._sessions, self._ground))
        return self._racing


def _has_races(folders: Folders) -> bool:
    """Whether there may be a race to be taken up."""
    return os.path.isdir(folders.races)


def open_app(folders: Folders, clock: Clock, teller: Teller) -> Application:
    """The application on this user's folders. Raises ConfigurationError for a file that cannot be meant."""
    ground = Ground(
        folders=folders,
        clock=clock,
        teller=teller,
        catalog=_read_catalog(folders),
        followed_config=FollowedConfig(folders.config),
        zone=LocalZone(),
        evidence=Evidence(_report, clock),
        report=_report,
        owner=read_owner(folders.runtime),
        booted_at=read_boot_moment(),
    )
    return Application(ground)


def _read_catalog(folders: Folders) -> AdapterCatalog:
    """Return what can be used; the log names what is left out, for those who see no start."""
    catalog = read_catalog(folders)
    for one in catalog.broken:
        _log.warning("adapter-left-out agent=%s", one.name)
    return catalog


def _report(error: BaseException) -> None:
    """The daemon's handler for errors nobody caught writes the crash report."""
    asyncio.get_running_loop().call_exception_handler({"message": "session", "exception": error})
