"""A session's history in a few lines: handoffs, limits, rests and returns, with their times."""

from collections import deque
from collections.abc import Iterable
from datetime import tzinfo

from agent_relay.domain.events.handoff import (
    HandoffCancelled,
    HandoffClosed,
    HandoffConfirmed,
    HandoffFailed,
    HandoffRetried,
)
from agent_relay.domain.events.session import (
    Event,
    ReturnOffered,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SessionWoke,
    SignalSeen,
)
from agent_relay.domain.session import Limit, Session
from agent_relay.domain.text.plain import clean_text
from agent_relay.session.fold import fold_event, is_limit, is_refusal
from agent_relay.session.views.event_lines import name_step, render_event_line
from agent_relay.session.views.messages import render_handoff_line, render_limit

_MOST_LINES = 500
_LONGEST = 400
_AS_WATCHED = (SessionCreated, HandoffClosed, ReturnOffered, SessionEnded, SessionRested, SessionWoke)
"""Events that are told in the words of who watches."""


def list_history(events: Iterable[Event], zone: tzinfo) -> list[str]:
    """Return the lines of whole journals, oldest first; times in `zone`.

    `Nov 24, 18:20  claude hit its session limit (resets 21:00)`. Of a long history the newest 500.
    """
    told: deque[tuple[Event, str]] = deque(maxlen=_MOST_LINES)
    session: Session | None = None
    for event in events:
        session = fold_event(session, event)
        line = _render(session, event, zone) if session is not None else ""
        if not line:
            continue
        if session is not None and told and _says_why(session, event, told[-1][0]):
            told.pop()
        told.append((event, " ".join(clean_text(line).split())[:_LONGEST]))
    return [f"{event.at.astimezone(zone):%b %-d, %H:%M}  {line}" for event, line in told]


def _says_why(session: Session, event: Event, before: Event) -> bool:
    """Return whether the line of `event` names the limit that the line before it reports."""
    is_made = isinstance(event.body, HandoffConfirmed) and bool(session.done)
    is_its = is_made and isinstance(before.body, SignalSeen) and session.done[-1].reason == "rate_limit"
    return is_its and isinstance(before.body, SignalSeen) and before.body.agent == session.done[-1].from_agent


def _render(session: Session, event: Event, zone: tzinfo) -> str:  # noqa: PLR0911 - one arm an event
    """Return what the event means for whoever works in the session; empty if it is no news to them."""
    match event.body:
        case SignalSeen() as body if body.decides and is_limit(body):
            limit = Limit(body.agent, body.scope, body.until, body.text, body.source, event.at, body.model)
            return render_limit(limit, event.at, zone)
        case SignalSeen() as body if is_refusal(body):
            return render_event_line(session, event, zone)
        case HandoffConfirmed() if session.done:
            line = render_handoff_line(session, session.done[-1], zone)
            return line.removeprefix("→ ").replace("Continuing with", "Continued with", 1)
        case HandoffFailed(_, step, why) if session.retriable is not None:
            return f"the handoff to {session.retriable.to_agent} failed {name_step(step)}: {why}"
        case HandoffCancelled() if session.handoff is not None:
            return f"the handoff to {session.handoff.to_agent} was cancelled"
        case HandoffRetried() if session.handoff is not None:
            return f"the handoff to {session.handoff.to_agent} was tried again"
        case body if isinstance(body, _AS_WATCHED):
            return render_event_line(session, event, zone)
        case _:
            return ""
