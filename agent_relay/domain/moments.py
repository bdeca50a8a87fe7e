"""Parse and render moments, as our files hold them and people read them; tell when a rest is over."""

from datetime import datetime, timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

_NAMED_DAYS = {0: "today", 1: "yesterday"}


def parse_moment(text: object) -> "datetime | None":
    """Parse an aware moment; `None` for no moment, one without a zone, or what a damaged file holds."""
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def render_moment_text(text: object, now: "datetime", zone: "tzinfo | None") -> str:
    """Render the moment that `text` is, as `render_moment` does; empty if `parse_moment` finds none."""
    at = parse_moment(text)
    return render_moment(at, now, zone) if at is not None else ""


def render_day(at: "datetime", now: "datetime", zone: "tzinfo | None") -> str:
    """Render when something was: `today 18:20`, `yesterday 09:10`, `Nov 21`, or `Nov 21, 2025`.

    `at` and `now` are aware. Without a `zone` the machine's own is used.
    """
    local, today = at.astimezone(zone), now.astimezone(zone)
    days = today.date().toordinal() - local.date().toordinal()
    if days in _NAMED_DAYS:
        return f"{_NAMED_DAYS[days]} {local:%H:%M}"
    return local.strftime("%b %-d" if local.year == today.year else "%b %-d, %Y")


def render_moment(at: "datetime", now: "datetime", zone: "tzinfo | None") -> str:
    """Render `21:00`, or `Nov 23, 21:00` if that is not the day of `now`; `at` and `now` are aware.

    Without a `zone` the machine's own is used.
    """
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return local.strftime("%H:%M" if is_today else "%b %-d, %H:%M")


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
