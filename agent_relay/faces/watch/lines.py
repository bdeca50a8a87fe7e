"""Render watched sessions as lines: numbers, clocks and gauges, all at once or each event as it comes."""

import os
import sys
from datetime import UTC, datetime, tzinfo

from agent_relay.domain.moments import render_day, render_moment, render_moment_text, render_reset
from agent_relay.domain.protocol.watch_output import (
    ContextUsed,
    DaemonTold,
    EventTold,
    RestingAgent,
    RestsTold,
    SessionLeft,
    SessionTold,
    TokensUsed,
    WindowUsed,
)
from agent_relay.domain.text.names import name_rest, name_source, name_window
from agent_relay.faces.render.output import is_plain_output, plain, print_lines
from agent_relay.faces.watch.view import SessionView, View, list_changes
from agent_relay.session.views.summary import NO_TITLE
from agent_relay.usage.table_format import draw_bar, render_count

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
    """Return `5 h ██ 34 %, resets 21:00 (its status line, 18:20)`.

    The moment of the reading is told, not its age: a screen would be drawn again every minute for that.
    """
    bar = draw_gauge(round(window.used_percent), width, is_plain=is_plain)
    try:
        resets = f", resets {render_moment(datetime.fromisoformat(window.resets_at), now, zone)}"
    except ValueError:
        resets = ""
    read_at = render_moment_text(window.read_at, now, zone)
    origin = f" ({name_source(window.source)}, {read_at})" if window.source and read_at else ""
    name = name_window(window.name, window.minutes, window.model)
    return f"{name} {bar} {window.used_percent:g} %{resets}{origin}"


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
            render_reset(datetime.fromisoformat(rest.until), now, zone, assumed=rest.assumed)
            if rest.until
            else "you say otherwise"
        )
    except ValueError:
        until = rest.until
    return f"{rest.agent} rests until {until} ({name_rest(rest.scope, rest.model)})"


def get_mark(status: str, *, is_plain: bool) -> str:
    """Return the sign of a plan's step in that status."""
    return (_PLAIN_MARKS if is_plain else _MARKS)[status]


NO_SESSION_TEXT = "No session is running in this repository. Start one: agent-relay <agent>"
NO_DAEMON_TEXT = "No daemon is running: agents keep working, but only files are read."
_BAR = 20
_EVENTS = 10


def is_fancy_terminal() -> bool:
    """Return whether a screen can be drawn: keys and output are of a terminal that can place its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def print_view(view: View, zone: tzinfo) -> None:
    """Print everything as it is now, for people."""
    now = datetime.now(UTC)
    if not view.is_daemon_here:
        print_lines(NO_DAEMON_TEXT)
    unknown = [line for line in (render_unknown_rests(view.rests_unknown),) if line]
    print_lines(*view.problems, *unknown, *(render_rest(rest, now, zone) for rest in view.resting))
    if not view.sessions:
        print_lines(NO_SESSION_TEXT)
    for session in view.sessions:
        print_lines("", *list_lines(session, now, zone))


def list_lines(session: SessionView, now: datetime, zone: tzinfo) -> list[str]:
    """Return one session in lines, its newest events and its screen at the end."""
    told, is_plain = session.now, is_plain_output()
    since = f"since {render_day(datetime.fromisoformat(told.since), now, zone)}"
    head = [told.session, told.state, told.agent, told.model, render_turn(told, now) or since]
    lines = ["  ".join(word for word in head if word)]
    lines += [f"  {text}" for text in (told.task or told.title or NO_TITLE, told.about, told.trouble) if text]
    if told.tokens is not None:
        lines.append(f"  {render_tokens(told.tokens)}")
    if told.context is not None:
        lines.append(f"  {render_context(told.context, width=_BAR, is_plain=is_plain)}")
    lines += [f"  {render_window(one, now, zone, width=_BAR, is_plain=is_plain)}" for one in told.windows]
    lines += [f"  {get_mark(step.status, is_plain=is_plain)} {step.text}" for step in told.plan]
    lines += [f"  {render_told(event, now, zone)}" for event in session.told[-_EVENTS:]]
    if session.screen is not None:
        lines += ["  its screen:", *(f"  | {row}" for row in session.screen.rows)]
    return lines


def render_told(event: EventTold, now: datetime, zone: tzinfo) -> str:
    """Return `14:03  codex works`."""
    return f"{render_moment(datetime.fromisoformat(event.at), now, zone)}  {event.text}"


class LineLog:
    """Prints events, a line each; a session's id comes before its first line and after another session's."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._session = ""

    def show(self, before: View | None, after: View) -> None:
        """Print what is new in `after`."""
        now = datetime.now(UTC)
        for event in list_changes(before, after):
            match event:
                case DaemonTold(state="away"):
                    print_lines(NO_DAEMON_TEXT)
                case DaemonTold() if before is not None:
                    print_lines("The daemon is running again.")
                case RestsTold(unknown=why) if why:
                    print_lines(render_unknown_rests(why))
                case EventTold():
                    self._print(event, now)
                case SessionLeft(session=session):
                    print_lines(f"{session} is no longer watched")
                case _:
                    pass
        sys.stdout.flush()

    def _print(self, event: EventTold, now: datetime) -> None:
        if event.session != self._session:
            self._session = event.session
            print_lines(event.session)
        print_lines(f"  {plain(render_told(event, now, self._zone))}")
