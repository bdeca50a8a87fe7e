"""Mistakes of ours that come back with every round: each kind is reported once."""

import traceback
from collections.abc import Callable

_MOST_KINDS = 20
"""As many crash reports are kept; a mistake that never comes twice the same way must not push others out."""


class Mistakes:
    """What one task that goes on in rounds got wrong; `report` is told of every kind once."""

    def __init__(self, report: Callable[[BaseException], None]) -> None:
        self._report = report
        self._known: set[tuple[object, ...]] = set()

    def note(self, error: Exception) -> None:
        """`error` was reported, now or before: those of one type, raised on the same way, are of one kind."""
        way = traceback.walk_tb(error.__traceback__)
        kind = (type(error), *((frame.f_code, line) for frame, line in way))
        if kind not in self._known and len(self._known) < _MOST_KINDS:
            self._known.add(kind)
            self._report(error)
