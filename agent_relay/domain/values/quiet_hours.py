"""The hours of the day in which nothing goes on by itself, as the user writes them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

_SPAN = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])\s*-\s*([01]?[0-9]|2[0-3]):([0-5][0-9])")
_ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `begin` up to `end` of every day, by the clock on the wall; over midnight where `end` is earlier.

    `always` is every hour. Without a beginning there are none.
    """

    begin: time | None = None
    end: time = time()
    always: bool = False

    def contains(self, at: datetime, zone: tzinfo) -> bool:
        """Return whether `at` is within them, for a user who lives in `zone`."""
        if self.begin is None:
            return self.always
        now = at.astimezone(zone).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def find_next_allowed(self, at: datetime, zone: tzinfo) -> datetime | None:
        """Return the first moment from `at` on outside them; `None` if every hour is quiet."""
        if self.always:
            return None
        if not self.contains(at, zone):
            return at
        today = at.astimezone(zone).date()
        # Compared in one zone: two moments with the same zone are compared by their clocks alone.
        ends = (datetime.combine(today + timedelta(days), self.end, zone).astimezone(UTC) for days in (0, 1))
        return next(end for end in ends if end > at)


NO_QUIET_HOURS = QuietHours()


def parse_quiet_hours(text: str) -> QuietHours:
    """Parse the hours `text` names: `HH:MM-HH:MM`, `always`, or none if it is empty.

    Raises ValueError.
    """
    plain = text.strip()
    if plain in {"", _ALWAYS}:
        return QuietHours(always=bool(plain))
    found = _SPAN.fullmatch(plain)
    if found is None:
        raise ValueError(
            f'{text[:40]!r} is not a time range; write it like "22:00-07:00", or "always", or leave it empty'
        )
    hours = [int(part) for part in found.groups()]
    begin, end = time(hours[0], hours[1]), time(hours[2], hours[3])
    if begin == end:
        raise ValueError(f'{text[:40]!r} begins and ends at the same time; for every hour, write "always"')
    return QuietHours(begin, end)
