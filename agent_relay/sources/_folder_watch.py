"""Notify the event loop which watched folders changed, without polling."""

import asyncio
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

OnChange = Callable[[set[str]], None]

_log = logging.getLogger(__name__)

_LIBRARY = "watchdog.observers"
_LOADS_AFTER_S = 0.2
"""The first folder is wanted when the first agent starts, which is not to wait for the library."""


class FolderWatch:
    """One observer for all folders any owner wants; each is watched once, and only while wanted.

    `on_change` is called in the event loop with the paths that changed, many events as one call; a
    watched folder that vanished is itself among them. A folder that cannot be watched (the system's
    limit is reached, it has just been removed) is not watched, without an error: readers must look on other
    occasions too. Paths are given as they were asked for, links in the folder's own name included. Nothing is
    watched before the library is loaded, a moment after the first wish: `on_loaded` is called then, and has
    to look at everything and to wish again.
    """

    def __init__(self, on_change: OnChange, on_loaded: Callable[[], None]) -> None:
        self._on_change = on_change
        self._on_loaded = on_loaded
        self._loop = asyncio.get_running_loop()
        self._observer: BaseObserver | None = None
        self._wanted: dict[Hashable, set[str]] = {}
        self._watches: dict[str, ObservedWatch] = {}
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._gone: set[str] = set()
        self._loading: asyncio.Task[None] | None = None

    @property
    def folders(self) -> set[str]:
        """The folders watched now."""
        return set(self._watches)

    def want(self, owner: Hashable, folders: set[str]) -> None:
        """Watch exactly these folders for `owner` from now on; an empty set ends its watches."""
        if folders and _LIBRARY not in sys.modules:
            self._load_later()
            return
        if self._wanted.get(owner, set()) == folders and folders <= self._watches.keys():
            return
        self._wanted.pop(owner, None)
        if folders:
            self._wanted[owner] = set(folders)
        for folder in folders - self._watches.keys():
            self._watch(folder)
        for folder in self._watches.keys() - set().union(*self._wanted.values()):
            self._unwatch(folder)

    def _load_later(self) -> None:
        if self._loading is None or self._loading.done():
            self._loading = self._loop.create_task(self._load(), name="load what watches folders")

    async def _load(self) -> None:
        await asyncio.sleep(_LOADS_AFTER_S)
        try:
            await asyncio.to_thread(importlib.import_module, _LIBRARY)
        except ImportError:
            _log.warning("folders-not-watched")
            return
        self._on_loaded()

    def close(self) -> None:
        """Stop watching all folders."""
        if self._loading is not None:
            self._loading.cancel()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
        self._observer = None
        self._watches.clear()
        self._wanted.clear()

    def _watch(self, folder: str) -> None:
        from watchdog import events

        wanted: list[type[FileSystemEvent]] = [
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            events.FileMovedEvent,
            events.DirCreatedEvent,
            events.DirMovedEvent,
            events.DirDeletedEvent,
        ]
        real = os.path.realpath(folder)
        handler = _build_handler(real, lambda path: self._notice(folder, path))
        try:
            self._watches[folder] = self._observe().schedule(handler, real, event_filter=wanted)
        except (OSError, RuntimeError):
            return

    def _unwatch(self, folder: str) -> None:
        watch = self._watches.pop(folder)
        if self._observer is not None and watch not in self._watches.values():
            self._observer.unschedule(watch)

    def _observe(self) -> "BaseObserver":
        if self._observer is None:
            from watchdog.observers import Observer

            self._observer = Observer()
            self._observer.start()
        return self._observer

    def _notice(self, folder: str, name: str) -> None:
        """Note, in the observer's thread, what changed, and wake the loop once for all of it."""
        with self._lock:
            is_first = not self._changed
            self._changed.add(os.path.join(folder, name) if name else folder)
            if not name:
                self._gone.add(folder)
        if is_first:
            try:
                self._loop.call_soon_threadsafe(self._tell)
            except RuntimeError:
                return  # the loop is closed: nobody is interested any more

    def _tell(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, set()
            gone, self._gone = self._gone, set()
        for folder in gone & self._watches.keys():
            self._unwatch(folder)
        self._on_change(changed)


def _build_handler(real: str, notice: Callable[[str], None]) -> "FileSystemEventHandler":
    """Build a handler that calls `notice` with each event's names in the folder `real`; its own is ""."""
    from watchdog.events import FileSystemEventHandler

    class Relay(FileSystemEventHandler):
        def on_any_event(self, event: "FileSystemEvent") -> None:
            for path in (event.src_path, event.dest_path):
                if path:
                    notice(os.path.relpath(os.fsdecode(path), real).removeprefix("."))

    return Relay()
