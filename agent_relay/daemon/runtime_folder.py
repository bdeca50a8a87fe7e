"""Keeps the daemon's socket and lock where clients look: the folder may be removed while sessions live."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.folder_alarm import FolderAlarm, identify, identify_open
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.unix_sockets import listen

_folder_log = logging.getLogger(__name__)

_SETTLES_S = 0.2
"""The folder's removal is over by then: a folder made at once would get in its way."""
_AGAIN_S = 2.0
_SELDOM_S = 60.0
_UNTOLD_S = 5.0
"""How often the folder is checked if the kernel reports no changes."""

ListenAgain = Callable[[socket.socket], Awaitable[None]]


class RuntimeKeeper:
    """Keeps the socket and `lock` of a daemon where its folders say; makes again what was deleted.

    `leave` is called if another daemon has taken over meanwhile. After a first check, nothing is checked
    before something was deleted or moved, if the kernel reports that. Use it from the event loop.
    """

    def __init__(self, folders: Folders, lock: int, *, leave: Callable[[], None]) -> None:
        self._folders = folders
        self._lock = lock
        self._leave = leave
        self._named = identify(folders.daemon_socket)
        # Something may have been deleted while the application started.
        self._changed = asyncio.Event()
        self._changed.set()
        self._alarm: FolderAlarm | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_found(self) -> bool:
        """Whether the socket that clients find is this daemon's."""
        return identify(self._folders.daemon_socket) == self._named

    def start(self, listen_again: ListenAgain) -> None:
        """Begin to keep socket and lock; `listen_again` gets each new socket."""
        self._set_alarm()
        self._task = asyncio.create_task(self._keep(listen_again), name="keep the runtime folder")

    async def stop(self) -> None:
        """Stop keeping socket and lock."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._drop_alarm()

    async def _keep(self, listen_again: ListenAgain) -> None:
        wait_s = _SELDOM_S
        while True:
            is_told = self._alarm is not None and self._alarm.fd >= 0
            limit_s = wait_s if wait_s < _SELDOM_S else None if is_told else _UNTOLD_S
            try:
                async with asyncio.timeout(limit_s):
                    await self._changed.wait()
                await asyncio.sleep(_SETTLES_S)
            except TimeoutError:
                wait_s *= 2
            self._changed.clear()
            try:
                if await self._restore(listen_again):
                    # What was just made may go with the rest of what is removed, or be hidden by a mount.
                    wait_s = _AGAIN_S
                    self._set_alarm()
                    _folder_log.warning("runtime-folder-made-again pid=%d", os.getpid())
            except (RelayError, OSError) as error:
                # There may be no place for it before the user's next login.
                wait_s = _AGAIN_S
                _folder_log.info("runtime-folder-missing why=%s", type(error).__name__)

    async def _restore(self, listen_again: ListenAgain) -> bool:
        """Make again what is gone; return whether anything was. Raise RelayError or OSError on failure."""
        if self.is_found and identify(self._folders.daemon_lock) == identify_open(self._lock):
            return False
        ensure_private(self._folders.runtime)
        start = take_lock(self._folders.start_lock)
        if start is None:
            raise RelayError("another daemon is starting")
        try:
            if identify(self._folders.daemon_lock) != identify_open(self._lock):
                fresh = take_lock(self._folders.daemon_lock)
                if fresh is None:
                    _folder_log.warning("another-daemon-serves pid=%d", os.getpid())
                    self._leave()
                    return False
                os.dup2(fresh, self._lock, inheritable=False)
                os.close(fresh)
            if not self.is_found:
                listening = listen(self._folders.daemon_socket)
                self._named = identify(self._folders.daemon_socket)
                await listen_again(listening)
        finally:
            os.close(start)
        return True

    def _set_alarm(self) -> None:
        self._drop_alarm()
        self._alarm = FolderAlarm(self._folders.runtime)
        if self._alarm.fd >= 0:
            asyncio.get_running_loop().add_reader(self._alarm.fd, self._wake)

    def _drop_alarm(self) -> None:
        if self._alarm is not None and self._alarm.fd >= 0:
            asyncio.get_running_loop().remove_reader(self._alarm.fd)
            self._alarm.close()

    def _wake(self) -> None:
        if self._alarm is not None:
            self._alarm.take()
        self._changed.set()
