"""Print watched sessions as plain lines: everything once, or each event as a line."""

import os
import sys
from datetime import UTC, datetime, tzinfo

from agent_relay.domain.protocol.watch_output import DaemonTold, EventTold, RestsTold, SessionLeft
from agent_relay.domain.values.moments import render_day, render_moment
from agent_relay.faces.render.output import plain, print_lines
from agent_relay.faces.render.table import is_plain_output
from agent_relay.faces.watch.figures_text import (
    get_mark,
    render_context,
    render_rest,
    render_tokens,
    render_turn,
    render_unknown_rests,
    render_window,
)
from agent_relay.faces.watch.view import SessionView, View, list_changes
from agent_relay.session.views.summary import NO_TITLE

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
