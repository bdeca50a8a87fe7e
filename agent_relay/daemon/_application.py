"""The application the daemon serves: every session and race at work, and the operations on them.

Operations that only a run, a chat, a race or `watch` needs are loaded when one of them is first asked for:
they are a third of the modules, and a person waits for the daemon's start.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.agents.catalog import AdapterCatalog, read_catalog
from agent_relay.daemon._preload import load_rest
from agent_relay.domain.protocol.operations import OPERATIONS
from agent_relay.domain.protocol.requests import Handler, NoticeSender, Peer
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.operations.handoffs import build_narrate_handlers
from agent_relay.engine.operations.sessions import build_handlers
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.lifecycle import recover_sessions
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.sources.live.record_dispatch import RecordDispatcher
from agent_relay.system.clock import Clock, LocalZone
from agent_relay.system.config.config_file import ReloadingConfig
from agent_relay.system.disk.folders import Folders
from agent_relay.system.disk.removal import sweep_unfinished
from agent_relay.system.limited_process import end_server
from agent_relay.system.machine_identity import read_boot_moment, read_owner
from agent_relay.terminal.holder_start import end_spare
from agent_relay.terminal.leg_folder import sweep_unmade

if TYPE_CHECKING:
    from agent_relay.race.registry import RaceRegistry

_log = logging.getLogger(__name__)


def build_late_handlers(kind: str, build: Callable[[], Mapping[str, Handler]]) -> Mapping[str, Handler]:
    """Return handlers of the operations `kind.*`, which `build` imports and makes at the first request."""
    built: dict[str, Handler] = {}

    async def handle(name: str, sent: Mapping[str, object], peer: Peer) -> Mapping[str, object]:
        if not built:
            built.update(build())
        return await built[name](sent, peer)

    return {name: partial(handle, name) for name in OPERATIONS if name.startswith(f"{kind}.")}


class Application:
    """The sessions and races of one user. Make it in the event loop, and use it only there."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._loading: asyncio.Task[None] | None = None
        self._narrating = NarrativeWriter(services)
        self._sessions = SessionRegistry(services, self._narrating)
        self._racing: RaceRegistry | None = None

    async def start(self) -> None:
        """Recover what an earlier daemon left: adopt living legs, resume interrupted handoffs."""
        folders = self._services.folders
        for folder in (folders.state, folders.sessions, folders.crashes):
            await asyncio.to_thread(sweep_unfinished, folder)
        await asyncio.to_thread(sweep_unmade, folders)
        await recover_sessions(self._sessions)
        if await asyncio.to_thread(_has_races, folders):
            await self._get_racing().start()
        self._loading = asyncio.create_task(load_rest())

    async def stop(self) -> None:
        """Release everything; agents and their holders run on."""
        if self._loading is not None:
            self._loading.cancel()
        await self._narrating.close()
        if self._racing is not None:
            await self._racing.close()
        await self._sessions.stop()
        await self._services.evidence.close()
        self._services.messengers.close()
        await asyncio.to_thread(end_server)
        await asyncio.to_thread(end_spare)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by name; what a start need not wait for is loaded at its first request."""
        return {
            **build_handlers(self._sessions),
            **build_narrate_handlers(self._sessions, self._narrating),
            **build_late_handlers("run", self._build_run),
            **build_late_handlers("chat", self._build_chat),
            **build_late_handlers("watch", self._build_watch),
            **build_late_handlers("race", self._build_race),
        }

    def _build_run(self) -> Mapping[str, Handler]:
        from agent_relay.engine.operations.headless_turns import build_run_handlers

        return build_run_handlers(self._sessions, self._services)

    def _build_chat(self) -> Mapping[str, Handler]:
        from agent_relay.engine.operations.chats import build_chat_handlers

        return build_chat_handlers(self._sessions, self._services)

    def _build_watch(self) -> Mapping[str, Handler]:
        from agent_relay.daemon._live_feed import build_watch_handlers

        return build_watch_handlers(self._sessions)

    def _build_race(self) -> Mapping[str, Handler]:
        from agent_relay.race.operations import build_race_handlers

        return build_race_handlers(self._get_racing())

    def _get_racing(self) -> "RaceRegistry":
        from agent_relay.race.registry import RaceRegistry
        from agent_relay.race.runner import SessionRunners

        if self._racing is None:
            self._racing = RaceRegistry(self._services, SessionRunners(self._sessions, self._services))
        return self._racing


def _has_races(folders: Folders) -> bool:
    """Tell whether there may be a race to recover."""
    return os.path.isdir(folders.races)


def open_app(folders: Folders, clock: Clock, teller: NoticeSender) -> Application:
    """Return the application on this user's folders. Raise ConfigurationError for a file with a mistake."""
    services = Services(
        folders=folders,
        clock=clock,
        teller=teller,
        catalog=_read_catalog(folders),
        followed_config=ReloadingConfig(folders.config),
        zone=LocalZone(),
        evidence=RecordDispatcher(_report, clock),
        report=_report,
        owner=read_owner(folders.runtime),
        booted_at=read_boot_moment(),
    )
    return Application(services)


def _read_catalog(folders: Folders) -> AdapterCatalog:
    """Return the adapters that can be used; log the others, for users who see no start."""
    catalog = read_catalog(folders)
    for one in catalog.broken:
        _log.warning("adapter-left-out agent=%s", one.name)
    return catalog


def _report(error: BaseException) -> None:
    """Have the daemon's handler for uncaught errors write a crash report."""
    asyncio.get_running_loop().call_exception_handler({"message": "session", "exception": error})
