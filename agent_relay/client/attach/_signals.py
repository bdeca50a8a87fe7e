"""The Unix signals of an attached terminal: ending ones end the program, the others wake its loop."""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Self

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_TELLING = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Unix signals while attached: ending ones raise SystemExit, the others wake the loop by `fd`."""

    __slots__ = ("_before", "_write", "fd", "seen")

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
