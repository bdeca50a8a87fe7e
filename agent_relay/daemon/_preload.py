"""Loads what the daemon otherwise loads where it is used: an upgrade may have removed it by then.

Loading it at the start would delay whoever waits for the daemon; loading it at a limit may be too late.
"""

import asyncio
import importlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.transcripts.usage.readers import USAGE_READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_preload_log = logging.getLogger(__name__)

AFTER_S = 2.0
"""The first seconds are left to whoever started the daemon."""

MODULES = (
    "agent_relay.agents.adapters",
    "agent_relay.agents.packet_template",
    "agent_relay.daemon._live_feed",
    "agent_relay.domain.facts",
    "agent_relay.domain.protocol.run_output",
    "agent_relay.domain.text.counts",
    "agent_relay.domain.text.plain",
    "agent_relay.domain.values.rest_end",
    "agent_relay.engine._turn_stream",
    "agent_relay.engine.operations.chats",
    "agent_relay.engine.operations.headless_turns",
    "agent_relay.engine.publishing.native_records",
    "agent_relay.engine.publishing.publish",
    "agent_relay.engine.publishing.waiting_packets",
    "agent_relay.race.operations",
    "agent_relay.race.registry",
    "agent_relay.race.runner",
    "agent_relay.redact.text",
    "agent_relay.session.fold",
    "agent_relay.sources._database_copy",
    "agent_relay.sources.native_programs",
    "agent_relay.sources.native_sessions",
    "agent_relay.sources.transcript_reader",
    "agent_relay.store.journal",
    "agent_relay.store.narratives",
    "agent_relay.system.crash_reports",
    "agent_relay.system.net.delivery_report",
    "agent_relay.system.net.webhook",
    "agent_relay.system.processes",
    "agent_relay.terminal.query_answers",
    "agent_relay.transcripts.facts.reader_types",
    "agent_relay.usage._scan_reader",
    "agent_relay.usage._session_work_fold",
    "agent_relay.usage.scan.index",
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
"""What importing a module raises while its file, or that of one it uses, is being replaced."""


async def load_rest() -> None:
    """Load all of `MODULES` and every reader of usage, in a thread; log what cannot be loaded."""
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(load_each, MODULES)
    _preload_log.info("preloaded modules=%d", len(MODULES))


def load_each(modules: "Iterable[str]") -> None:
    """Load the modules and every reader of usage; log one that cannot be loaded, and go on."""
    loaders: dict[str, Callable[[], object]] = {
        **{name: partial(importlib.import_module, name) for name in modules},
        **USAGE_READERS,
    }
    for name, load in loaders.items():
        try:
            load()
        except _HALF_REPLACED as error:
            _preload_log.warning("not-preloaded module=%s why=%s", name, type(error).__name__)
