"""Two threads that keep a view current: one follows sessions, one reads figures now and then."""

import os
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from agent_relay.faces.watch._figures import FiguresReader
from agent_relay.faces.watch.view import View
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.system.disk.folders import Folders
from agent_relay.system.failures import start_thread
from agent_relay.usage.gather import Wanted

MOST_OFTEN_S = 0.25
"""The shortest time between two views, however fast an agent paints."""
_VIEWS_SHARE = 10
"""Views take at most one part in this many of the time, however many sessions paint."""
_FIGURES_S = 2.0
_UNTOLD_S = 30.0
"""How often figures are read if no daemon reports that an agent did something."""
_FIGURES_SHARE = 50
"""Reading figures takes at most one part in this many of the time, whatever a reading costs."""


class LatestView:
    """The newest view, for one reader that waits with `select`; one not taken is replaced, not queued."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._heard, self._told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._view: View | None = None
        self._error: BaseException | None = None
        self._is_new = False

    def fileno(self) -> int:
        """Return a descriptor that is readable once there is something to take."""
        return self._heard

    def put(self, view: View) -> None:
        """Make `view` the newest."""
        with self._turn:
            self._view = view
            self._ring()

    def fail(self, error: BaseException) -> None:
        """Announce that no newer view will come: the next `take` raises `error`."""
        with self._turn:
            self._error = error
            self._ring()

    def take(self) -> View | None:
        """Return the newest view if it was not taken yet, else `None`. Raise the error passed to `fail`."""
        with self._turn:
            if not self._is_new:
                return None
            os.read(self._heard, 1)
            self._is_new = False
            if self._error is not None:
                raise self._error
            return self._view

    def _ring(self) -> None:
        if not self._is_new:
            self._is_new = True
            os.write(self._told, b"!")


class WatchLoop:
    """Keeps a view of `watched` current; the newest is in what `start` returns."""

    def __init__(
        self, folders: Folders, watcher: Watcher, watched: WatchedSessions, *, environ: Mapping[str, str]
    ) -> None:
        self._watcher = watcher
        self._figures = FiguresReader(folders, environ)
        # All of a working tree also for one of its sessions: the journal names some natives late.
        self._wanted = Wanted(is_all=not watched.root)
        self._cwd = watched.root or "/"
        self._latest = LatestView()
        self._turn = threading.Lock()
        self._told: View | None = None
        self._read_at = 0.0
        self._is_stale = threading.Event()
        self._is_over = threading.Event()

    def start(self) -> LatestView:
        """Start both threads; return where views come from until `stop`, or the end of the process.

        The end of the process does not wait for the threads.
        """
        start_thread("watch", self._follow, on_failure=self._fail)
        start_thread("figures", self._go_on_reading, on_failure=self._fail)
        return self._latest

    def stop(self) -> None:
        """Stop both threads; no view comes after this."""
        self._is_over.set()
        self._is_stale.set()

    def _fail(self, error: BaseException) -> None:
        if not self._is_over.is_set():
            self._latest.fail(error)

    def _follow(self) -> None:
        self._watcher.connect()
        while not self._is_over.is_set():
            began = time.monotonic()
            self._show()
            cost_s = time.monotonic() - began
            is_told = self._watcher.wait(self._pause)
            if is_told or began - self._read_at > _UNTOLD_S:
                self._is_stale.set()
            self._pause(max(MOST_OFTEN_S, _VIEWS_SHARE * cost_s) - (time.monotonic() - began))

    def _go_on_reading(self) -> None:
        while not self._is_over.is_set():
            self._is_stale.clear()
            self._read_at = began = time.monotonic()
            self.read_figures()
            self._show()
            cost_s = time.monotonic() - began
            self._pause(max(_FIGURES_S, _FIGURES_SHARE * cost_s))
            self._is_stale.wait()

    def read_figures(self) -> None:
        """Read what agents' own records say now, and give it to the watcher."""
        sessions = self._watcher.sessions()
        if sessions:
            now = datetime.now(UTC)
            self._watcher.give(self._figures.read(sessions, self._wanted, cwd=self._cwd, now=now))

    def _show(self) -> None:
        with self._turn:
            view = self._watcher.read()
            if not self._is_over.is_set() and view != self._told:
                self._told = view
                self._latest.put(view)

    def _pause(self, length_s: float) -> None:
        if length_s > 0:
            self._is_over.wait(length_s)
