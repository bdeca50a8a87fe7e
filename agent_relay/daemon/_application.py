"""Compose what the daemon serves: sessions, races, their operations, and what is loaded after the start."""

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.agents.adapters import prepare_renderers
from agent_relay.agents.catalog import AdapterCatalog, read_catalog
from agent_relay.daemon._tool_server import build_mcp_handlers
from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.operations import OPERATIONS, Handler, NoticeSender, Peer
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.proxy_keeper import ProxyKeeper
from agent_relay.engine.services import Services
from agent_relay.engine.session_operations import build_handlers
from agent_relay.engine.sessions.commands import recover_sessions
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.sessions.verdicts import HandoffJudge
from agent_relay.sources.record_dispatch import RecordDispatcher
from agent_relay.store.tree_owner import read_owner
from agent_relay.system.clock import Clock, LocalZone, read_boot_moment
from agent_relay.system.config_file import ReloadingConfig
from agent_relay.system.disk.folders import Folders
from agent_relay.system.disk.removal import sweep_unfinished
from agent_relay.system.limited_process import end_server
from agent_relay.terminal.leg_folder import sweep_unmade
from agent_relay.terminal.waiting_holder import end_spare
from agent_relay.transcripts.usage_readers import USAGE_READERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_relay.engine.unmanaged_agents import UnmanagedAgents
    from agent_relay.race.registry import RaceRegistry

_log = logging.getLogger(__name__)

AFTER_S = 0.3
"""Seconds at the start that are left to whoever started the daemon."""

MODULES = (
    # The first prompt needs these two.
    "agent_relay.redact.text",
    "agent_relay.packet.extract.requests",
    "agent_relay.agents.adapters",
    "agent_relay.agents.catalog",
    "agent_relay.daemon._application",
    "agent_relay.daemon._watch_operations",
    "agent_relay.domain.documents.packet",
    "agent_relay.domain.documents.packet_json",
    "agent_relay.domain.facts",
    "agent_relay.domain.protocol.run_output",
    "agent_relay.domain.text.plain",
    "agent_relay.domain.moments",
    "agent_relay.engine.publishing.recall_building",
    "agent_relay.engine.legs.turn_stream",
    "agent_relay.engine.agent_operations",
    "agent_relay.engine.turn_operations",
    "agent_relay.engine.publishing.checkpoint_building",
    "agent_relay.engine.unmanaged_agents",
    "agent_relay.engine.publishing.packet_pipeline",
    "agent_relay.packet.airc",
    "agent_relay.packet.digest",
    "agent_relay.packet.extract.quotable",
    "agent_relay.packet.render",
    "agent_relay.race.registry",
    "agent_relay.race.runner",
    "agent_relay.session.fold",
    "agent_relay.sources.transcript_files",
    "agent_relay.sources.native_sessions",
    "agent_relay.sources.transcript_reader",
    "agent_relay.store.checkpoints",
    "agent_relay.store.journal",
    "agent_relay.store.packets",
    "agent_relay.system.crash_reports",
    "agent_relay.system.net.delivery_report",
    "agent_relay.system.net.webhook",
    "agent_relay.system.processes",
    "agent_relay.terminal.query_answers",
    "agent_relay.transcripts.fact_readers",
    "agent_relay.transcripts.fact_reading",
    "agent_relay.usage.native_usage",
    "agent_relay.usage._session_work_fold",
    "agent_relay.usage.index",
    "ctypes",
    "datetime",
    "encodings.unicode_escape",
    "filelock",
    "glob",
    "h11",
    "jinja2",
    "jinja2.sandbox",
    "json",
    "logging",
    "platformdirs",
    "pwd",
    "socket",
    "sqlite3",
    "tempfile",
    "threading",
    "urllib.parse",
    "watchdog.events",
    "watchdog.observers",
    "zlib",
)


_HALF_REPLACED = (
    ImportError,
    SyntaxError,
    ValueError,
    EOFError,
    OSError,
    AttributeError,
    NameError,
    TypeError,
)
"""Errors of an import whose file, or that of a module it uses, is being replaced."""


async def load_rest() -> None:
    """Load `MODULES`, every reader of usage and the template of packets, in a thread; log what fails."""
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(load_each, MODULES)
    await asyncio.to_thread(_compile_template)
    _log.info("preloaded modules=%d", len(MODULES))


def _compile_template() -> None:
    try:
        prepare_renderers()
    except (*_HALF_REPLACED, RelayError) as error:
        # Rendering a packet will report why.
        _log.warning("template-not-compiled why=%s", type(error).__name__)


def build_loaders(modules: "Iterable[str]" = MODULES) -> dict[str, Callable[[], object]]:
    """Return what loads each of the modules and every reader of usage, by their names."""
    return {**{name: partial(importlib.import_module, name) for name in modules}, **USAGE_READERS}


def load_each(modules: "Iterable[str]") -> None:
    """Load the modules and every reader of usage; log one that cannot be loaded, and go on."""
    for name, load in build_loaders(modules).items():
        try:
            load()
        except _HALF_REPLACED as error:
            _log.warning("not-preloaded module=%s why=%s", name, type(error).__name__)


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
        self._later: tuple[asyncio.Task[None], ...] = ()
        self._narrating = NarrativeWriter(services)
        self._sessions = SessionRegistry(services, self._narrating)
        self._judge = HandoffJudge(services)
        self._racing: RaceRegistry | None = None
        self._unmanaged: UnmanagedAgents | None = None

    async def start(self) -> None:
        """Recover what an earlier daemon left: adopt living legs, resume interrupted handoffs."""
        folders = self._services.folders
        for folder in (folders.state, folders.sessions, folders.crashes):
            await asyncio.to_thread(sweep_unfinished, folder)
        await asyncio.to_thread(sweep_unmade, folders)
        await recover_sessions(self._sessions)
        if await asyncio.to_thread(_has_races, folders):
            await self._get_racing().start()
        if await asyncio.to_thread(os.path.isdir, folders.hooks):
            await self._get_unmanaged().follow()
        self._later = (asyncio.create_task(load_rest()), asyncio.create_task(self._narrating.sweep()))

    async def stop(self) -> None:
        """Release everything; agents and their holders run on."""
        for task in self._later:
            task.cancel()
        await self._narrating.close()
        if self._unmanaged is not None:
            await self._unmanaged.close()
        if self._racing is not None:
            await self._racing.close()
        await self._sessions.stop()
        await self._services.evidence.close()
        if self._services.proxy is not None:
            await self._services.proxy.close()
        self._services.messengers.close()
        await asyncio.to_thread(end_server)
        await asyncio.to_thread(end_spare)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by name; what a start need not wait for is loaded at its first request."""
        return {
            **build_handlers(self._sessions, self._narrating, self._judge),
            **build_late_handlers("watch", self._build_watch),
            **build_late_handlers("run", self._build_turns),
            **build_late_handlers("chat", self._build_turns),
            **build_late_handlers("race", self._build_race),
            **build_late_handlers("agent", self._build_agent),
            **build_mcp_handlers(self._services.folders),
            **build_late_handlers("hooks", self._build_hooks),
        }

    def _build_watch(self) -> Mapping[str, Handler]:
        from agent_relay.daemon._watch_operations import build_watch_handlers

        return build_watch_handlers(self._sessions)

    def _build_turns(self) -> Mapping[str, Handler]:
        from agent_relay.engine.turn_operations import build_handlers as build_turn_handlers

        return build_turn_handlers(self._sessions, self._services)

    def _build_agent(self) -> Mapping[str, Handler]:
        from agent_relay.engine.agent_operations import build_agent_handlers

        return build_agent_handlers(self._sessions, self._judge)

    def _build_race(self) -> Mapping[str, Handler]:
        from agent_relay.race.registry import build_race_handlers

        return build_race_handlers(self._get_racing())

    def _build_hooks(self) -> Mapping[str, Handler]:
        from agent_relay.engine.unmanaged_agents import build_hook_handlers

        return build_hook_handlers(self._get_unmanaged())

    def _get_unmanaged(self) -> "UnmanagedAgents":
        from agent_relay.engine.unmanaged_agents import UnmanagedAgents

        if self._unmanaged is None:
            self._unmanaged = UnmanagedAgents(self._services, self._sessions.at_work)
        return self._unmanaged

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
        proxy=ProxyKeeper(folders),
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
