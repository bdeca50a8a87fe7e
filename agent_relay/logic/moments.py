"""The one form in which people read a moment: the time today, the day too where it is another."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, tzinfo


def render_moment(at: "datetime", now: "datetime", zone: "tzinfo | None") -> str:
    """`21:00`, or `Nov 23, 21:00` where that is not the day of `now`; `at` and `now` are aware.

    Without a `zone` the machine's own is meant.
    """
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return local.strftime("%H:%M" if is_today else "%b %-d, %H:%M")
