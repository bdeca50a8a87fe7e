"""How the numbers of a view are shown to people: clocks, tokens, usage windows, context, plan."""

from datetime import datetime, tzinfo

from agent_relay.domain.protocol.watch_output import (
    ContextUsed,
    RestingAgent,
    SessionTold,
    TokensUsed,
    WindowUsed,
)
from agent_relay.domain.text.limit_names import name_rest, name_window
from agent_relay.domain.values.moments import render_moment
from agent_relay.usage.number_format import draw_bar, render_count

_MINUTE_S, _HOUR_S = 60, 3600
_MARKS = {"completed": "✔", "in_progress": "▸", "pending": "○", "cancelled": "✘"}
_PLAIN_MARKS = {"completed": "x", "in_progress": ">", "pending": "-", "cancelled": "/"}


def render_clock(since: str, now: datetime) -> str:
    """Return how long ago `since` (ISO 8601) was: `0:07`, `12:30`, `3:05:00`; empty for none."""
    try:
        length = int((now - datetime.fromisoformat(since)).total_seconds()) if since else -1
    except (ValueError, TypeError):
        return ""
    return "" if length < 0 else _render_length(length)


def _render_length(seconds: int) -> str:
    minutes, rest = divmod(seconds, _MINUTE_S)
    if seconds < _HOUR_S:
        return f"{minutes}:{rest:02}"
    return f"{minutes // _MINUTE_S}:{minutes % _MINUTE_S:02}:{rest:02}"


def render_turn(now: SessionTold, at: datetime) -> str:
    """Return the running turn's clock, else how long the last one took; empty before the first."""
    clock = render_clock(now.turn_since, at)
    if clock:
        return f"turn {now.turns}, {clock}"
    return "" if now.turn_s is None else f"last turn {_render_length(int(now.turn_s))}"


def render_tokens(tokens: TokensUsed) -> str:
    """Return `1,234,567 tokens: 12,000 in, 1,200,000 cached, 3,000 written, 19,567 out · $1.23`."""
    parts = [
        (tokens.input, "in"),
        (tokens.cached, "cached"),
        (tokens.cache_write, "written"),
        (tokens.output, "out"),
    ]
    told = ", ".join(f"{render_count(count)} {name}" for count, name in parts if count)
    return f"{render_count(tokens.total)} tokens: {told or 'none'} · {render_money(tokens)}"


def render_money(tokens: TokensUsed) -> str:
    """Return `$1.23`, `>$1.23` if a part has no known price, `cost unknown` if nothing has one."""
    if not tokens.cost_usd:
        return "cost unknown"
    return f"{'' if tokens.cost_is_whole else '>'}${float(tokens.cost_usd):,.2f}"


def render_short(count: int) -> str:
    """Return `950`, `12k` or `1.2M`: a count for narrow places."""
    thousand, million = 1000, 1_000_000
    if count < thousand:
        return str(count)
    if count < 10 * million:
        return f"{count // thousand}k" if count < million else f"{count / million:.1f}M"
    return f"{count // million}M"


def render_context(context: ContextUsed, *, width: int, is_plain: bool) -> str:
    """Return `context ████▌ 61 % of 200,000 tokens`, or how long it is if its room is not known."""
    if context.percent is None:
        return f"context {render_count(context.used)} tokens"
    bar = draw_gauge(context.percent, width, is_plain=is_plain)
    return f"context {bar} {context.percent} % of {render_count(context.room)} tokens"


def render_window(window: WindowUsed, now: datetime, zone: tzinfo, *, width: int, is_plain: bool) -> str:
    """Return `5 h ██ 34 %, resets 21:00`."""
    bar = draw_gauge(round(window.used_percent), width, is_plain=is_plain)
    try:
        resets = f", resets {render_moment(datetime.fromisoformat(window.resets_at), now, zone)}"
    except ValueError:
        resets = ""
    return f"{name_window(window.name, window.minutes)} {bar} {window.used_percent:g} %{resets}"


def draw_gauge(percent: int, width: int, *, is_plain: bool) -> str:
    """Return a bar of `width` characters, filled as far as `percent` says."""
    full = draw_bar(min(percent, 100), 100, width, is_plain=is_plain)
    return full.ljust(width, "." if is_plain else "░")


def render_unknown_rests(why: str) -> str:
    """Return `who rests is unknown: cannot read …`; empty if it is known."""
    return f"who rests is unknown: {why}" if why else ""


def render_rest(rest: RestingAgent, now: datetime, zone: tzinfo) -> str:
    """Return `claude rests until 21:00 (usage limit)`."""
    try:
        until = (
            render_moment(datetime.fromisoformat(rest.until), now, zone)
            if rest.until
            else "you say otherwise"
        )
    except ValueError:
        until = rest.until
    return f"{rest.agent} rests until {until} ({name_rest(rest.scope, rest.model)})"


def get_mark(status: str, *, is_plain: bool) -> str:
    """Return the sign of a plan's step in that status."""
    return (_PLAIN_MARKS if is_plain else _MARKS)[status]
