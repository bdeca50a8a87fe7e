"""The user's terminal while an agent has it: in raw mode, and restored at the end whatever happens.

It can be lent to another program (an editor) while the agent's screen is covered, and messages of relay are
painted over its bottom rows. Unix signals meanwhile end this program or wake its loop.
"""

import fcntl
import os
import select
import signal
import struct
import termios

from agent_relay.terminal.restore import GIVE_BACK, REMEMBER, RESTORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Self


_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_TELLING = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Unix signals while attached: ending ones raise SystemExit, the others wake the loop by `fd`."""

    def __enter__(self) -> "Self":
        self.fd, self._write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        self.seen: set[int] = set()
        self._before = {number: signal.signal(number, self._end) for number in _ENDING}
        self._before |= {number: signal.signal(number, self._tell) for number in _TELLING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write)

    def _end(self, number: int, _frame: "FrameType | None") -> None:
        # The way out must not be interrupted by a second one.
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise SystemExit(128 + number)

    def _tell(self, number: int, _frame: "FrameType | None") -> None:
        self.seen.add(number)
        try:
            os.write(self._write, b"!")
        except BlockingIOError:
            return

    def take(self) -> set[int]:
        """Return the signals since the last call."""
        try:
            os.read(self.fd, 4096)
        except BlockingIOError:
            return set()
        seen, self.seen = self.seen, set()
        return seen


# A terminal that takes nothing for this long will not be restored by waiting longer.
_STALLED_MS = 1000
_PIECE_BYTES = 512
_BELOW = b"\x1b[9999B\r\n"


class UserTerminal:
    """Standard input and output of this process; use as a context manager around everything that may raise.

    With `over` the screen's contents are not scrolled away: something is shown over them. `is_tty` is whether
    keys come from a terminal, `is_single` whether input and output are one and the same.
    """

    def __init__(self, source: int = 0, target: int = 1, *, over: bool = False) -> None:
        self.source = source
        self.target = target
        self.is_tty = os.isatty(source)
        self.is_single = (
            self.is_tty and os.isatty(target) and os.fstat(source).st_rdev == os.fstat(target).st_rdev
        )
        self._saved: list[int | list[bytes | int]] | None = None
        self._entered = False
        self._over = over

    def __enter__(self) -> "Self":
        if self.is_tty:
            self._saved, is_taken = termios.tcgetattr(self.source), False
            try:
                self._take()
                is_taken = True
            finally:
                # A Unix signal in the middle: who never got in is not asked to leave.
                if not is_taken:
                    self.__exit__()
        return self

    def _take(self) -> None:
        self.enter()
        if os.isatty(self.target):
            # What the person had on the screen moves into the scrollback instead of being painted over.
            rows, cols = self.cells()
            away = b"\x1b[%d;%dH" % (rows, cols) + b"\n" * rows + b"\x1b[H"
            self.write(REMEMBER if self._over else REMEMBER + away)

    def __exit__(self, *_: object) -> None:
        self.leave()
        if self._saved is not None and os.isatty(self.target):
            self.write(GIVE_BACK)

    def hold(self) -> None:
        """Take the terminal as it is; scroll only to make a free row at the bottom."""
        if not self.is_tty:
            return
        self._saved, is_held = termios.tcgetattr(self.source), False
        try:
            self.enter()
            rows, _ = self.cells()
            self.write(REMEMBER + b"\x1b[%d;1H\n" % rows)
            is_held = True
        finally:
            if not is_held:
                self.__exit__()

    def enter(self) -> None:
        """Set raw mode: keys arrive one by one and unchanged, and nothing is echoed."""
        if self._saved is None:
            return
        modes = termios.tcgetattr(self.source)
        modes[0] &= ~(
            termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON | termios.IGNBRK
            | termios.PARMRK | termios.INLCR | termios.IGNCR
        )  # fmt: skip
        modes[1] &= ~termios.OPOST
        modes[2] = (modes[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        modes[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        # Before it is so: who is interrupted in between has something to give back.
        self._entered = True
        termios.tcsetattr(self.source, termios.TCSANOW, modes)

    def leave(self, *, drops_unread: bool = True) -> None:
        """Turn off every mode an agent can have set, and restore the line discipline. Harmless twice.

        Without `drops_unread`, whoever reads the terminal next gets the keys that nobody has read.
        """
        if not self._entered or self._saved is None:
            return
        self.write(RESTORE)
        try:
            if drops_unread:
                # Late answers of the terminal to an agent's questions must not become words at a prompt.
                termios.tcflush(self.source, termios.TCIFLUSH)
            termios.tcsetattr(self.source, termios.TCSANOW, self._saved)
        except termios.error:
            pass
        # After it is so: who is interrupted before leaves once more.
        self._entered = False

    def pause(self) -> None:
        """Turn off every mode an agent can have set, but leave keys unread and unechoed; `leave` ends it.

        What is printed meanwhile may use plain line feeds, and Ctrl-C interrupts.
        """
        if not self._entered:
            return
        self.write(RESTORE)
        try:
            modes = termios.tcgetattr(self.source)
            modes[1] |= termios.OPOST
            modes[3] |= termios.ISIG
            # These two would stop nobody, and the kernel would drop the keys that are unread.
            unused = bytes((os.fpathconf(self.source, "PC_VDISABLE"),))
            modes[6][termios.VSUSP] = modes[6][termios.VQUIT] = unused
            termios.tcsetattr(self.source, termios.TCSANOW, modes)
        except termios.error:
            return

    def move_below(self) -> None:
        """Move the cursor to a new row at the bottom, below all that an agent left on the screen."""
        if os.isatty(self.target):
            self.write(_BELOW)

    def line_modes(self) -> list[object] | None:
        """Return the line discipline as it was, for JSON (characters as numbers); `None` without a tty."""
        if self._saved is None:
            return None
        signs = [part for part in self._saved if isinstance(part, list)]
        numbers = [sign[0] if isinstance(sign, bytes) else sign for part in signs for sign in part]
        return [*self._saved[:6], numbers]

    def size(self) -> tuple[int, int, int, int] | None:
        """Return rows, columns, and pixels of width and height; `None` if no terminal knows them."""
        for fd in (self.target, self.source):
            try:
                rows, cols, width_px, height_px = struct.unpack(
                    "HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
                )
            except OSError:
                continue
            if rows and cols:
                return rows, cols, width_px, height_px
        return None

    def cells(self) -> tuple[int, int]:
        """Return rows and columns; 24 and 80 if no terminal knows them."""
        rows, cols, _, _ = self.size() or (24, 80, 0, 0)
        return rows, cols

    def suspend(self) -> None:
        """Give the terminal back and stop this process; return when the shell continues it."""
        self.leave()
        # SIGSTOP, not SIGTSTP: that one is handled here and cannot stop us.
        os.kill(os.getpid(), signal.SIGSTOP)

    def write(self, data: bytes) -> bool:
        """Write `data`; return whether all was written. A gone or stalled terminal is not waited for."""
        fd = self.target if os.isatty(self.target) else self.source
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        while data:
            ready = poll.poll(_STALLED_MS)
            if not ready or ready[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                return False
            try:
                data = data[os.write(fd, data[:_PIECE_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True


def read_modes() -> list[object]:
    """Return the line discipline of standard input, as `LentTerminal` takes it; empty without a terminal."""
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return []


class LentTerminal:
    """Lends the terminal to a started program, with `modes`, those it had before the agent's.

    Ctrl-C is that program's. Ctrl-Z stops it and this process together, so that the shell which started this
    one has the terminal until `fg`. Raises nothing: if the terminal is gone, its next reader notices that.
    """

    def __init__(self, modes: list[object]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        self._agents = read_modes()
        keys = (signal.SIGINT, signal.SIGQUIT)
        self._before = {number: signal.signal(number, _leave_to_program) for number in keys}
        self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        UserTerminal().write(RESTORE)
        _set(self._modes)

    def __exit__(self, *_: object) -> None:
        _set(self._agents)
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _leave_to_program(number: int, frame: "FrameType | None") -> None:
    """Do nothing; a handler, because the program would inherit an ignored signal."""
    del number, frame


def _set(modes: list[object]) -> None:
    if not modes or not os.isatty(0):
        return
    try:
        termios.tcsetattr(0, termios.TCSAFLUSH, modes)  # type: ignore[arg-type]  # as `tcgetattr` gave them
    except termios.error:
        return


LABEL = " relay "
SHORTEST_S = 2.0
"""Shortest time a message stays, in seconds, so that a person who is typing sees it; keys reach the agent."""
LONGEST_S = 10.0
"""Longest time a message stays, in seconds: it must not cover the agent's screen when nobody is there."""
# The screen's state is put aside for painting; input modes stay, since keys are the agent's all the time.
_PAINTING = b"\x18\x1b[?2026l\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[?25l"


def render_line(text: str, rows: int, cols: int) -> bytes:
    """Return what paints `text` over the lowest of `rows`, cut to what they hold.

    A repaint afterwards brings back what was covered.
    """
    parts = split_line(text, rows, cols)
    first = rows - len(parts) + 1
    painted = "".join(
        f"\x1b[{first + at};1H\x1b[2K\x1b[7m{' ' * len(LABEL) if at else LABEL}\x1b[0m {part}"
        for at, part in enumerate(parts)
    )
    return _PAINTING + painted.encode()


def erase_rows(count: int, rows: int) -> bytes:
    """Return what clears the lowest `count` of `rows` and puts the cursor into the first of those."""
    return b"\x1b[0m" + b"".join(b"\x1b[%d;1H\x1b[2K" % row for row in range(rows, rows - count, -1))


def split_line(text: str, rows: int, cols: int) -> list[str]:
    """Return `text` in as many pieces as it takes rows, at most all rows but one."""
    # Loaded where something is said: attaching must not pay for it.
    from agent_relay.domain.text.plain import split_columns

    room = max(1, cols - len(LABEL) - 2)
    return split_columns(clean(text), room)[: max(1, rows - 1)]


def clean(text: str) -> str:
    """Return the text without control characters, which could move the cursor or worse."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
