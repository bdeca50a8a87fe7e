"""The watched sessions on a whole terminal: only changed lines are drawn.

The terminal is restored whatever happens.
"""

import io
import os
import select
import signal
import termios
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.text import Text

from agent_relay.client.attach.tty import Signals, UserTerminal
from agent_relay.faces.render.output import is_fancy, is_plain_output
from agent_relay.faces.watch._layout import Frame, choose_next, draw, find_chosen
from agent_relay.faces.watch._watch_loop import LatestView, WatchLoop

if TYPE_CHECKING:
    from agent_relay.faces.watch.view import View

_ENTER = b"\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
_LEAVE = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
# What is between these two is shown at once by terminals that know them, and ignored by the others.
_BEGIN, _END = b"\x1b[?2026h", b"\x1b[?2026l"
_TICK_S = 1.0
"""Seconds between two redraws of the clocks."""
_QUIT = frozenset({"q", "Q"})
_STEPS = {"\x1b[A": -1, "\x1bOA": -1, "k": -1, "\x1b[B": 1, "\x1bOB": 1, "j": 1, "\t": 1}


def show(loop: WatchLoop, zone: tzinfo) -> int:
    """Show the sessions until a key ends it; return the status.

    The terminal is restored on every way out. Raises SystemExit with 128 + number if a Unix signal ends it.
    """
    latest = loop.start()
    try:
        terminal = UserTerminal()
        with Signals() as signals, FullScreen(terminal) as whole:
            return _WatchScreen(latest, terminal, whole, signals, zone).run()
    finally:
        loop.stop()


class _WatchScreen:
    """The contents of the terminal now, and the session chosen."""

    def __init__(
        self, latest: LatestView, terminal: UserTerminal, whole: "FullScreen", signals: Signals, zone: tzinfo
    ) -> None:
        self._latest = latest
        self._terminal = terminal
        self._whole = whole
        self._signals = signals
        self._zone = zone
        self._view: View | None = None
        self._chosen = ""
        self._is_plain = is_plain_output()

    def run(self) -> int:
        poll = select.poll()
        for source in (0, self._signals.fd, self._latest.fileno()):
            poll.register(source, select.POLLIN)
        while True:
            self._draw()
            ready = dict(poll.poll(int(self._find_tick_s() * 1000)))
            if self._signals.fd in ready:
                self._handle_signals(self._signals.take())
            if 0 in ready and self._is_ended_by(_read_keys()):
                return 0
            if self._latest.fileno() in ready:
                self._view = self._latest.take() or self._view

    def _find_tick_s(self) -> float:
        """Return how long the screen stays right by itself: a second of a turn's clock, else the minute."""
        runs = self._view is not None and any(one.now.turn_since for one in self._view.sessions)
        return _TICK_S if runs else 60.0 - datetime.now(UTC).second

    def _handle_signals(self, seen: set[int]) -> None:
        if signal.SIGTSTP in seen:
            self._whole.suspend()
        elif signal.SIGCONT in seen:
            self._whole.take()

    def _is_ended_by(self, keys: str | None) -> bool:
        if keys is None:
            # The terminal is gone.
            return True
        if keys in _STEPS and self._view is not None:
            found = find_chosen(self._view, self._chosen)
            self._chosen = choose_next(self._view, found.now.session if found else "", _STEPS[keys])
        return bool(_QUIT & set(keys)) and not keys.startswith("\x1b")

    def _draw(self) -> None:
        rows, cols = self._terminal.cells()
        now = datetime.now(UTC)
        frame = Frame(rows, cols, self._chosen, now, self._zone, is_plain=self._is_plain)
        lines = draw(self._view, frame) if self._view is not None else [Text("Loading …")]
        self._whole.paint(lines)


class FullScreen:
    """Takes the whole terminal while this context is entered; only lines that changed are written."""

    def __init__(self, terminal: UserTerminal) -> None:
        self._terminal = terminal
        self._saved = termios.tcgetattr(0)
        self._shown: list[Text] = []
        self._size = (0, 0)
        self._console = Console(
            file=io.StringIO(), force_terminal=True, no_color=not is_fancy(), highlight=False, soft_wrap=True
        )

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing may come between this and the end: a second Ctrl-C would leave a terminal without echo.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._give_back()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def paint(self, lines: Sequence[Text]) -> None:
        """Show `lines` on the terminal; write only those that changed."""
        size = self._terminal.cells()
        if size != self._size:
            self._size, self._shown = size, []
        is_anew = not self._shown
        parts = [b"\x1b[0m\x1b[2J"] if is_anew else []
        for row, line in enumerate(lines, 1):
            before = self._shown[row - 1] if row <= len(self._shown) else None
            if before is None or before != line:
                parts.append(b"\x1b[%d;1H%s\x1b[0m\x1b[K" % (row, self._render(line)))
        self._shown = list(lines)
        # A terminal that takes nothing is painted anew once it does.
        if parts and not self._terminal.write(_BEGIN + b"".join(parts) + _END):
            self._shown = []

    def suspend(self) -> None:
        """Stop this process, the terminal given back; return when the shell continues it."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.take()

    def take(self) -> None:
        """Take the terminal, whoever had it meanwhile; draw nothing on it yet."""
        modes = termios.tcgetattr(0)
        modes[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, modes)
        self._terminal.write(_ENTER)
        self._shown = []

    def _give_back(self) -> None:
        self._terminal.write(_LEAVE)
        try:
            termios.tcsetattr(0, termios.TCSAFLUSH, self._saved)
        except termios.error:
            return

    def _render(self, line: Text) -> bytes:
        with self._console.capture() as captured:
            self._console.print(line, end="", overflow="ignore", no_wrap=True, crop=False)
        return captured.get().encode("utf-8", "replace")


def _read_keys() -> str | None:
    """Return what was typed; `None` if the terminal is gone."""
    try:
        data = os.read(0, 1024)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if data else None
