"""The proxy's process: `__main__.py PORT` serves this user's agents until no leg uses it any more."""

import importlib
import os
import sys

if not __package__:
    # Started by its path in isolated mode: run the very package this file belongs to, and let it hide
    # nothing else that lies beside it.
    _root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.path.insert(0, _root)
    importlib.import_module("agent_relay")
    sys.path.remove(_root)
    sys.path.append(_root)

import asyncio
import contextlib
import resource
import signal
import socket

import anyio._backends._asyncio  # noqa: F401 - an installation that goes must not stop a proxy at work
import httpcore2._async.http_proxy  # noqa: F401

from agent_relay.domain.errors import ExitCode, RelayError
from agent_relay.faces.proxy._server import KnownLegs, ProxyServer
from agent_relay.faces.proxy._upstream import has_roots
from agent_relay.store.proxied_legs import list_proxied
from agent_relay.system.disk.folders import Folders, ensure_private, get_folders
from agent_relay.system.net.reserved_port import READY, open_reserved, write_running

LOOK_S = 30.0
"""Seconds between checks whether any leg is left."""
_BACKLOG = 512


def main(words: list[str]) -> int:
    """Tell the starter the port, or why there is none; serve until no leg is left; return the exit code."""
    if len(words) != 1 or not words[0].isdigit():
        sys.stderr.write("usage: python -m agent_relay.faces.proxy PORT\n")
        return ExitCode.WRONG_USE
    folders = get_folders()
    try:
        ensure_private(folders.runtime)
        listening = _listen(folders, int(words[0]))
    except (RelayError, OSError) as error:
        _tell(str(error))
        return ExitCode.FAILED
    _open_many_files()
    asyncio.run(_serve(folders, listening))
    return ExitCode.DONE


def _listen(folders: Folders, port: int) -> socket.socket:
    """Return the listening socket, which makes this the user's one proxy. Raise RelayError, OSError."""
    if not has_roots():
        raise RelayError("this machine has no root certificates, so no provider could be verified")
    listening = open_reserved(port)
    # Held for life, by the descriptor that is never closed.
    if write_running(folders.proxy_lock, listening.getsockname()[1]) is None:
        raise RelayError("another proxy is running")
    listening.listen(_BACKLOG)
    return listening


async def _serve(folders: Folders, listening: socket.socket) -> None:
    """Serve until SIGTERM, or until no leg is left and nobody connected."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    port: int = listening.getsockname()[1]
    legs = KnownLegs(folders.legs)
    server = ProxyServer(legs, port)
    serving = await asyncio.start_server(server.serve, sock=listening)
    _tell(f"{READY} {port}")
    while not asked.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await asked.wait()
        alive = frozenset(await asyncio.to_thread(list_proxied, folders.legs))
        legs.forget(alive)
        if not alive and not server.is_used:
            break
    serving.close()
    await server.close()


def _tell(line: str) -> None:
    """Report to the starting process, which may be gone, and close the pipe."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.close(null)


def _open_many_files() -> None:
    """Allow as many open files as the system does: each request takes two."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
