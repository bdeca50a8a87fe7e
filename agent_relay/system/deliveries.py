"""Counts what a receiver takes and what not, tells people when it does not, and figures always."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from agent_relay.logic.exporting.delivering import NOTHING_SAID, Count, Receiver, render, say


class Deliveries:
    """One receiver's, noted by any thread; `tell` is given the lines people have to read."""

    def __init__(
        self, receiver: Receiver, tell: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.receiver = receiver
        self._tell = tell
        self._clock = clock
        self._turn = threading.Lock()
        self._said = NOTHING_SAID
        self.count = Count()

    def note(self, *, taken: int = 0, lost: int = 0, trouble: str | None = None) -> None:
        """So many more were taken or given up; `trouble` is how the newest try went, `None` for as before."""
        with self._turn:
            before = self.count
            self.count = replace(
                before,
                taken=before.taken + taken,
                lost=before.lost + lost,
                trouble=before.trouble if trouble is None else trouble,
            )
            line, self._said = say(self.receiver, self.count, self._said, self._clock())
            if line:
                self._tell(line)

    def end(self) -> None:
        """What was lost is told, however lately something was said; nothing where all arrived."""
        with self._turn:
            if self.count.lost > self._said.lost:
                self._tell(render(self.receiver, self.count, is_losing=True))
                self._said = replace(self._said, lost=self.count.lost)
