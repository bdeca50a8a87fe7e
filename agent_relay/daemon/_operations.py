"""The daemon's operations on itself; the application's are added to them."""

import asyncio
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agent_relay import __version__
from agent_relay.domain.protocol.operations import (
    DAEMON_LOGS,
    DAEMON_STATUS,
    DAEMON_STOP,
    PING,
    Fields,
    Handler,
    Peer,
)
from agent_relay.system.disk.folders import Folders
from agent_relay.terminal.holder_client import HolderCheck


@dataclass(frozen=True, slots=True)
class Daemon:
    """What the daemon knows of itself. `count_*` are called at the time of the answer."""

    folders: Folders
    started_at: datetime
    count_connections: Callable[[], int]
    count_subscribers: Callable[[], int]
    stop: Callable[[], None]


def build_handlers(daemon: Daemon, app: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return every handler by name. Raise ValueError if one of the application's hides the daemon's own."""
    holders = HolderCheck()

    async def ping(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        return {}

    async def status(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        trouble = await asyncio.to_thread(holders.find_fault)
        return {
            **({"trouble": trouble} if trouble else {}),
            "pid": os.getpid(),
            "daemon": __version__,
            "python": platform.python_version(),
            "started_at": daemon.started_at.isoformat(),
            "connections": daemon.count_connections(),
            "subscribers": daemon.count_subscribers(),
            "socket": daemon.folders.daemon_socket,
            "log": daemon.folders.daemon_log,
            "crashes": daemon.folders.crashes,
        }

    async def stop(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        daemon.stop()
        return {"pid": os.getpid()}

    async def logs(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        return {"log": daemon.folders.daemon_log}

    own = dict(
        (
            PING.performed_by(ping),
            DAEMON_STATUS.performed_by(status),
            DAEMON_STOP.performed_by(stop),
            DAEMON_LOGS.performed_by(logs),
        )
    )
    twice = sorted(own.keys() & app.keys())
    if twice:
        raise ValueError(f"two handlers for {', '.join(twice)}")
    return own | dict(app)
