"""Loads what the daemon else loads where it is used: an upgrade may have taken it away by then.

To load it at the start would be felt by whoever waits for the daemon; to load it at a limit may be too late.
"""

import asyncio
import importlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.logic.transcripts.usage.registry import USAGE_READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_log = logging.getLogger(__name__)

AFTER_S = 2.0
"""The first seconds belong to whoever started the daemon."""

MODULES = (
    "agent_relay.app.chatting",
    "agent_relay.app.onlooking",
    "agent_relay.app.own_records",
    "agent_relay.app.publishing",
    "agent_relay.app.race.handlers",
    "agent_relay.app.race.racing",
    "agent_relay.app.race.runner",
    "agent_relay.app.running",
    "agent_relay.app.telling",
    "agent_relay.app.waiting",
    "agent_relay.domain.facts",
    "agent_relay.domain.run_event",
    "agent_relay.logic.answers",
    "agent_relay.logic.columns",
    "agent_relay.logic.exporting.delivering",
    "agent_relay.logic.fold",
    "agent_relay.logic.metrics.chain",
    "agent_relay.logic.metrics.work",
    "agent_relay.logic.plain",
    "agent_relay.logic.redact.text",
    "agent_relay.logic.rest_rules",
    "agent_relay.logic.transcripts.shape",
    "agent_relay.system.adapters",
    "agent_relay.system.crashes",
    "agent_relay.system.database_copies",
    "agent_relay.system.deliveries",
    "agent_relay.system.journal",
    "agent_relay.system.narratives",
    "agent_relay.system.native_programs",
    "agent_relay.system.native_sessions",
    "agent_relay.system.processes",
    "agent_relay.system.templates",
    "agent_relay.system.transcripts",
    "agent_relay.system.usage_index",
    "agent_relay.system.usage_reading",
    "agent_relay.system.webhook",
    "ctypes",
    "datetime",
    "encodings.unicode_escape",
    "filelock",
    "glob",
    "jinja2",
    "jinja2.sandbox",
    "json",
    "logging",
    "platformdirs",
    "pwd",
    "socket",
    "sqlite3",
    "tempfile",
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
"""What a module raises whose file, or that of one it uses, is just being written anew."""


async def load_rest() -> None:
    """Load all of `MODULES` and every reader of usage, in a thread; what is missing by then is logged."""
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(load_each, MODULES)
    _log.info("preloaded modules=%d", len(MODULES))


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
            _log.warning("not-preloaded module=%s why=%s", name, type(error).__name__)
