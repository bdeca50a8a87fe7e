"""Decide when a rest is over, from plain values.

A module of its own, because `status` must start fast and imports no more for it.
"""

from datetime import datetime, timedelta

_UNKNOWN_REST = timedelta(hours=1)
"""How long a limit without a reset counts, unless it is about money: agents say "later", not "never"."""
_FARTHEST_AHEAD = timedelta(days=1)
"""What was seen later than this from now was dated by a clock that was wrong, and its reset with it."""


def find_end(until: datetime | None, scope: str, seen_at: datetime) -> datetime | None:
    """Return when the rest is believed to end; `None` for one that lasts until the user says otherwise."""
    return seen_at + _UNKNOWN_REST if until is None and scope != "billing" else until


def is_lasting(end: datetime | None, seen_at: datetime, now: datetime) -> bool:
    """Return whether a rest with that end lasts at `now`."""
    return end is None or (end > now and seen_at - now <= _FARTHEST_AHEAD)
