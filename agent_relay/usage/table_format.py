"""Name the groupings of metrics, and format numbers for people: counts, money, durations, small bars.

The groupings are the values of `--by`; both are apart from `aggregation`, which loads slowly.
"""

from decimal import Decimal
from typing import Literal, get_args

Grouping = Literal["session", "leg", "handoff", "agent", "model", "day"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)


_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_BLOCKS = " ▏▎▍▌▋▊▉█"


def render_count(count: int) -> str:
    """Render a count: `1,234,567`."""
    return f"{count:,}"


def render_cost(cost: Decimal | None, *, is_whole: bool) -> str:
    """Render a cost: `$1.23`; `>$1.23` if the price of a part is not known, `unknown` for `None`."""
    if cost is None:
        return "unknown"
    shown = f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"
    return shown if is_whole else f">{shown}"


def render_span(length_ms: int | None) -> str:
    """Render a duration: `4.2 s`, `12 min`, `3 h 05`, `2 d 04 h`; `-` for `None`."""
    if length_ms is None:
        return "-"
    seconds = length_ms / 1000
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02}"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S:02} h"


def draw_bar(part: int, most: int, width: int, *, is_plain: bool = False) -> str:
    """Draw a bar of up to `width` characters for `part` of `most`; never empty for a part above 0."""
    if most <= 0 or part <= 0:
        return ""
    if is_plain:
        return "#" * max(1, round(part * width / most))
    eighths = max(1, round(part * width * 8 / most))
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
