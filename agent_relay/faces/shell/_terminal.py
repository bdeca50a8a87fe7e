"""The shell's terminal: its modes, what is printed above the prompt, and work for threads and the loop."""

import asyncio
import errno
import fcntl
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from prompt_toolkit.application import get_app_or_none

_RESTORE = b"\x1b[?2004l\x1b[?25h\x1b[0m"
_IFLAG = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
_NO_KEY = b"\0"  # Linux' _POSIX_VDISABLE
_LFLAG = termios.ECHO | termios.ICANON | termios.IEXTEN


class Modes:
    """The line discipline of one terminal.

    Between two prompts it stays as it is at the prompt: otherwise an Enter typed then would arrive as another
    key, and typed text would be painted over.
    """

    def __init__(self, source: int = 0, target: int = 1) -> None:
        self._source = source
        self._target = target
        self._before = termios.tcgetattr(source)

    def take_over(self) -> int:
        """Take keys from now on as they are, without echo; return how many bytes were typed before.

        Those have Enter as a line feed and Ctrl-D as a NUL, as the line discipline keeps them. Ctrl-C still
        interrupts.
        """
        self.quieten(signals=True)
        return self.count_waiting()

    def count_waiting(self) -> int:
        """Return how many typed bytes wait to be read."""
        try:
            found = fcntl.ioctl(self._source, termios.FIONREAD, bytes(4))
        except OSError:
            return 0
        return int.from_bytes(found, sys.byteorder)

    def quieten(self, *, signals: bool = False) -> None:
        """Keep typed keys without echo until they are read; with `signals`, Ctrl-C still interrupts."""
        try:
            modes = termios.tcgetattr(self._source)
        except termios.error:
            # The terminal is gone; whoever reads from it learns that.
            return
        modes[0] &= ~_IFLAG
        modes[3] &= ~(_LFLAG | (0 if signals else termios.ISIG))
        if signals:
            modes[3] |= termios.ISIG
            # Ctrl-C only: what else ends or stops this process from a key is not for who waits for an answer.
            modes[6][termios.VQUIT] = modes[6][termios.VSUSP] = _NO_KEY
        else:
            modes[6][termios.VQUIT] = self._before[6][termios.VQUIT]
            modes[6][termios.VSUSP] = self._before[6][termios.VSUSP]
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        with suppress(termios.error):
            termios.tcsetattr(self._source, termios.TCSANOW, modes)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C interrupt within this context."""
        self.quieten(signals=True)
        try:
            yield
        finally:
            self.quieten()

    @contextmanager
    def given_away(self) -> Iterator[None]:
        """Give another program the terminal as it was before the shell; Ctrl-Z stops both."""
        stops = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        self.restore()
        try:
            yield
        finally:
            self.quieten()
            signal.signal(signal.SIGTSTP, stops)

    def suspend(self) -> None:
        """Stop this process, the terminal restored; return when it is continued."""
        self.restore()
        # SIGSTOP, not SIGTSTP: that one is handled by the shell and cannot stop it.
        os.kill(os.getpid(), signal.SIGSTOP)
        self.quieten()

    def restore(self) -> None:
        """Restore the terminal's modes, if it still exists."""
        with suppress(termios.error, OSError):
            termios.tcsetattr(self._source, termios.TCSANOW, self._before)
            os.write(self._target, _RESTORE)


_Found = TypeVar("_Found")


class Scrollback:
    """The terminal above the prompt; `loop` is the one that draws the prompt."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: int = 1) -> None:
        self._loop = loop
        self._target = target

    def write(self, lines: str) -> None:
        """Print the lines; for other threads than the loop's. Raise OSError if the terminal is gone."""
        self.work(partial(self.paint, lines))

    def work(self, job: Callable[[], _Found]) -> _Found:
        """Have the loop do `job` between two keys and return its result; beside the loop it would delay keys.

        For other threads than the loop's; raises what `job` raises, OSError if the loop is closed.
        """
        done: Future[_Found] = Future()
        try:
            self._loop.call_soon_threadsafe(settle, done, job)
        except RuntimeError:
            raise OSError(errno.EIO, "the shell is over") from None
        return done.result()

    def paint(self, lines: str) -> None:
        """Print all of the lines, the prompt below them. Raise OSError if there is no terminal."""
        app = get_app_or_none()
        is_drawn = app is not None and app.is_running
        if app is not None and is_drawn:
            # Not in_terminal, which gives the keys away meanwhile: what is typed then would be echoed.
            app.renderer.erase()
        try:
            data = lines.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8", "backslashreplace")
            while data:
                data = data[self._write_some(data) :]
        finally:
            if app is not None and is_drawn:
                app.renderer.reset()
                app.render_counter += 1
                # At once, not with the next turn of the loop: the prompt must not flicker.
                app.renderer.render(app, app.layout)

    def _write_some(self, data: bytes) -> int:
        """Write to the terminal; return how many bytes it took."""
        try:
            return os.write(self._target, data)
        except BlockingIOError:
            # A program that had the terminal before has left it so that it refuses instead of waiting.
            select.select([], [self._target], [])
            return 0


def run_in_background(work: Callable[[], _Found]) -> "asyncio.Future[_Found]":
    """Run `work` on a thread that a leaving process does not wait for; return the future of its result."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[_Found] = loop.create_future()
    done: Future[_Found] = Future()
    done.add_done_callback(lambda _: call_in_loop(loop, partial(_hand_over, done, over)))
    threading.Thread(target=settle, args=(done, work), name="turn", daemon=True).start()
    return over


def settle(done: "Future[_Found]", work: Callable[[], _Found]) -> None:
    """Do the work and give its outcome, a result or an exception, to whoever waits for `done`."""
    try:
        found = work()
    except Exception as error:  # noqa: BLE001 - a task's root: raised again by whoever waits for it
        done.set_exception(error)
    else:
        done.set_result(found)


def _hand_over(done: "Future[_Found]", over: "asyncio.Future[_Found]") -> None:
    if over.cancelled():
        return
    error = done.exception()
    if error is None:
        over.set_result(done.result())
    else:
        over.set_exception(error)


def call_in_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Have the loop call `what`, if it still runs."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return
