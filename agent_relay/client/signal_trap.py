"""Unix signals while agents work for a command: the first is noted, the second ends the process.

What whoever started us has ignored stays ignored.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(Exception):  # noqa: N818 - no error: a Unix signal while something may be broken off
    """Somebody wants what is under way to end."""


class SignalTrap:
    """Unix signals are noted within it; `number` is the one that came, 0 for none.

    `heeds` are those meant: who works in another than the main thread can heed none. A second one ends
    this process at once. What whoever started us has ignored stays so: nohup, a script's background job.
    """

    def __init__(self, heeds: Sequence[int] = SIGNALS) -> None:
        self.number = 0
        self._heeds = heeds
        self._may_break = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        heeded = [number for number in self._heeds if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._hear) for number in heeded}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal.signal gave it

    def check(self) -> None:
        """Raises Told where a signal came already."""
        if self.number:
            raise Interrupted

    @contextlib.contextmanager
    def breaking(self) -> Iterator[None]:
        """The first signal raises Told here."""
        self._may_break = not self.number
        try:
            yield
        finally:
            self._may_break = False

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
        if self._may_break:
            raise Interrupted
