"""How the terminal takes keys while the shell has it, and the way back to how it was."""

import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

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
