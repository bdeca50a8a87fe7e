"""Start the proxy that agents' requests pass through, and start it again where it ended before they did.

It is a process of its own: it outlives the daemon, and the next daemon finds it by its lock. Agents know its
port, so it is always the same one while any of them lives: the daemon and their holders keep a socket bound
to it, and another user's process cannot take it and be told what agents tell their providers.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys

from agent_relay.domain.errors import RelayError
from agent_relay.store.proxied_legs import list_proxied
from agent_relay.system.disk.folders import Folders
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.reserved_port import READY, open_reserved, read_running
from agent_relay.system.programs import start_and_hear

_log = logging.getLogger(__name__)

_START_S = 20.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_LINE_BYTES = 1000
_LOOK_S = 0.1


class ProxyKeeper:
    """Keeps the user's one proxy running while any leg needs it. Use it from the event loop only."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._starting = asyncio.Lock()
        self._handle = -1
        self._bound: socket.socket | None = None
        self._again: asyncio.Task[None] | None = None

    @property
    def port_fd(self) -> int:
        """The socket bound to the proxy's port, for holders; -1 before `start`."""
        return self._bound.fileno() if self._bound is not None else -1

    async def start(self) -> int:
        """Return the port of the proxy, which is started if none is running. Raise RelayError."""
        async with self._starting:
            if self._handle < 0:
                pid, self._bound = await asyncio.to_thread(find_or_start, self._folders, self._bound)
                self._watch(pid)
            return int(self._bound.getsockname()[1]) if self._bound is not None else 0

    def keep(self) -> None:
        """Have the proxy started as soon as it can be, if any leg needs it and none is running."""
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._start_again(), name="start the proxy again")

    async def close(self) -> None:
        """Leave the proxy to the next daemon."""
        if self._again is not None:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        self._forget()
        if self._bound is not None:
            self._bound.close()

    async def _start_again(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while await asyncio.to_thread(list_proxied, self._folders.legs):
            try:
                await self.start()
            except RelayError as error:
                _log.warning("proxy-not-started why=%r", error.sentence)
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    def _watch(self, pid: int) -> None:
        """Have it noticed when the process ends; one that has ended already is noticed at once."""
        try:
            self._handle = os.pidfd_open(pid)
        except OSError:
            self.keep()
            return
        _log.info("proxy-running pid=%d", pid)
        asyncio.get_running_loop().add_reader(self._handle, self._see_end, pid)

    def _see_end(self, pid: int) -> None:
        self._forget()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        _log.info("proxy-ended pid=%d", pid)
        self.keep()

    def _forget(self) -> None:
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1


def find_or_start(folders: Folders, bound: socket.socket | None) -> tuple[int, socket.socket]:
    """Return the process id of the proxy, started if none runs, and a socket bound to its port.

    `bound` is the one that was bound before. A new proxy gets the port of the one before it, unless somebody
    else has it. Raise RelayError if none can be started.
    """
    lock = take_lock(folders.proxy_lock, limit_s=_LOOK_S)
    pid, port = read_running(folders.proxy_lock)
    if lock is not None:
        os.close(lock)
    try:
        bound = bound if bound is not None and bound.getsockname()[1] == port else _reserve(port)
    except OSError as error:
        raise RelayError(f"no port of this machine can be had: {error.strerror}") from error
    if lock is None and pid:
        return pid, bound
    return _start(bound.getsockname()[1]), bound


def _reserve(port: int) -> socket.socket:
    try:
        return open_reserved(port)
    except OSError:
        return open_reserved(0)


def _start(port: int) -> int:
    """Start the proxy at `port` and return its process id once it listens. Raise RelayError."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    entry = os.path.join(package, "faces", "proxy", "__main__.py")
    command = [sys.executable, "-I", entry, str(port)]
    try:
        pid, line = start_and_hear(command, stream=1, until=b"\n", limit_bytes=_LINE_BYTES, limit_s=_START_S)
    except OSError as error:
        raise RelayError(f"the proxy cannot be started: {error.strerror}") from error
    said = line.decode("utf-8", "replace").strip()
    if not said.startswith(READY):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        raise RelayError(f"the proxy cannot be started: {said or 'it ended at once'}")
    return pid
