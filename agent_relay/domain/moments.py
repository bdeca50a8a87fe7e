"""Parse and render moments, as our files hold them and people read them; tell when a rest is over."""

from datetime import datetime, timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

# In some zones a moment of these years lies in a year that Python does not know.
_FIRST_YEAR, _LAST_YEAR = 1, 9999
_NAMED_DAYS = {0: "today", 1: "yesterday"}


def parse_moment(text: object) -> datetime | None:
    """Parse an aware moment that every zone can show; `None` for anything else, as in a damaged file."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if moment is None or moment.tzinfo is None or not _FIRST_YEAR < moment.year < _LAST_YEAR:
        return None
    return moment


def render_moment_text(text: object, now: datetime, zone: "tzinfo | None") -> str:
    """Render the moment that `text` is, as `render_moment` does; empty if `parse_moment` finds none."""
    return render_reset_text(text, now, zone, assumed=False)


def render_reset(at: datetime, now: datetime, zone: "tzinfo | None", *, assumed: bool) -> str:
    """Render when a rest ends: `21:00`, or `about 21:00 (assumed)` if the agent did not say when."""
    moment = render_moment(at, now, zone)
    return f"about {moment} (assumed)" if assumed else moment


def render_reset_text(text: object, now: datetime, zone: "tzinfo | None", *, assumed: bool) -> str:
    """Render the reset that `text` is, as `render_reset` does; empty if `parse_moment` finds none."""
    at = parse_moment(text)
    return render_reset(at, now, zone, assumed=assumed) if at is not None else ""


def render_day(at: datetime, now: datetime, zone: "tzinfo | None") -> str:
    """Render when something was: `today 18:20`, `yesterday 09:10`, `Nov 21`, or `Nov 21, 2025`.

    `at` and `now` are aware. Without a `zone` the machine's own is used.
    """
    local, today = at.astimezone(zone), now.astimezone(zone)
    days = today.date().toordinal() - local.date().toordinal()
    if days in _NAMED_DAYS:
        return f"{_NAMED_DAYS[days]} {local:%H:%M}"
    return local.strftime("%b %-d" if local.year == today.year else "%b %-d, %Y")


def render_moment(at: datetime, now: datetime, zone: "tzinfo | None") -> str:
    """Render `21:00`, or `Nov 23, 21:00` if that is not the day of `now`; `at` and `now` are aware.

    Without a `zone` the machine's own is used.
    """
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return local.strftime("%H:%M" if is_today else "%b %-d, %H:%M")


def render_age(at: datetime, now: datetime) -> str:
    """Render how long before `now` that was: `5 min`, `3 h`, `12 days`; both are aware."""
    minutes = max(0, int((now - at).total_seconds() // 60))
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"  # noqa: PLR2004 - two days


_UNKNOWN_REST = timedelta(hours=1)
"""Time that a limit without a reset counts, unless it is about money: agents say "later", not "never"."""
_FARTHEST_AHEAD = timedelta(days=1)
"""Longest time a limit's sighting may be ahead of now; beyond it the clock and thus the reset is wrong."""


def find_end(until: datetime | None, scope: str, seen_at: datetime) -> tuple[datetime | None, bool]:
    """Return when the rest is believed to end, and whether that is assumed: the agent did not say.

    The end is `None` for a rest that lasts until the user says otherwise.
    """
    assumed = until is None and scope != "billing"
    return seen_at + _UNKNOWN_REST if assumed else until, assumed


def is_lasting(end: datetime | None, seen_at: datetime, now: datetime) -> bool:
    """Return whether a rest with that end lasts at `now`."""
    return end is None or (end > now and seen_at - now <= _FARTHEST_AHEAD)
