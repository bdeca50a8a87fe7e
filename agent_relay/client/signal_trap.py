"""Unix signals while agents work for a command: the first is noted, the second ends the process.

A signal that was ignored when this process started stays ignored.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(Exception):  # noqa: N818 - no error: a Unix signal while something may be broken off
    """A Unix signal asks for the current work to end."""


class SignalTrap:
    """Notes Unix signals while it is entered; `number` is the one that came, 0 for none.

    `signals` are those to note; outside the main thread it must be empty. A second one ends this process at
    once. A signal that was ignored when this process started stays so: nohup, a script's background job.
    """

    def __init__(self, signals: Sequence[int] = SIGNALS) -> None:
        self.number = 0
        self._numbers = signals
        self._may_break = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        numbers = [number for number in self._numbers if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal.signal gave it

    def check(self) -> None:
        """Raise Interrupted if a signal has already come."""
        if self.number:
            raise Interrupted

    @contextlib.contextmanager
    def breaking(self) -> Iterator[None]:
        """Let the first signal raise Interrupted within this context."""
        self._may_break = not self.number
        try:
            yield
        finally:
            self._may_break = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
        if self._may_break:
            raise Interrupted
