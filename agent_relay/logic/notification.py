"""What a person who looks elsewhere is told, and when: of a handover, a rest, a reset, and of who asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agent_relay.domain.event import Event, LegAsking, ReturnOffered, SessionRested, SessionWoke
from agent_relay.domain.handoff_event import HandoffBegun, HandoffConfirmed
from agent_relay.domain.session import Session, State
from agent_relay.logic.hints import agent_command
from agent_relay.logic.moments import parse_moment, render_moment
from agent_relay.logic.notification_bytes import clean

OFTEN_S = 5.0
"""Two of the same kind within so many seconds are one: whoever is there saw the first."""
_BY_HAND = "manual"
_ASKED_FOR = "asked for"
"""Why work goes on that a person continued themselves, on the resting screen."""


@dataclass(frozen=True, slots=True)
class Notification:
    """`kind` is `handoff`, `resting`, `reset` or `asking`; both texts are one line without secrets."""

    kind: str
    title: str
    text: str


def find_notification(
    session: Session, events: Sequence[Event], number: int, zone: tzinfo
) -> Notification | None:
    """Return what is told of the journal's line `number`, `None` for a line nobody has to be called for.

    `session` is as of the newest of `events`. A handoff that a person asked for needs no telling.
    """
    event = events[number - 1]
    match event.body:
        case HandoffConfirmed(handoff):
            begun = _find_begun(events, handoff)
            if begun is None or begun.reason == _BY_HAND or begun.why == _ASKED_FOR:
                return None
            said = (
                "handoff",
                f"{begun.to_agent} took over",
                f"{begun.why or begun.from_agent + ' handed over'}.",
            )
        case SessionRested(why, until) if session.state is State.RESTING and not session.is_held:
            reset = parse_moment(until)
            when = f" The first reset is at {render_moment(reset, event.at, zone)}." if reset else ""
            said = (
                "resting",
                "every agent rests",
                f"{why}.{when}" if why else when.strip() or "No reset time is known.",
            )
        case SessionWoke():
            said = "reset", f"{session.agent} is available again", "Its limit has reset."
        case ReturnOffered(agent, by_itself):
            follows = (
                "It takes over at the end of this turn."
                if by_itself
                else f"To switch back: {agent_command(agent)}"
            )
            said = "reset", f"{agent} is available again", follows
        case LegAsking(leg):
            asking = next((one.agent for one in session.legs if one.id == leg), session.agent)
            said = "asking", f"{asking} asks", "It waits for your answer."
        case _:
            return None
    kind, title, text = said
    place = session.root.rpartition("/")[2]
    return Notification(kind, _tell(f"{place}: {title}" if place else title), _tell(text))


def is_due(last_at_s: float | None, now_s: float) -> bool:
    """Return whether one may be told now, when the last of its kind was at `last_at_s`, `None` for never."""
    return last_at_s is None or now_s - last_at_s >= OFTEN_S


def _find_begun(events: Sequence[Event], handoff: str) -> HandoffBegun | None:
    for event in reversed(events):
        if isinstance(event.body, HandoffBegun) and event.body.handoff == handoff:
            return event.body
    return None


def _tell(text: str) -> str:
    # The daemon loads this at its start, and has nobody to notify then.
    from agent_relay.logic.redact.text import redact_text

    return clean(redact_text(text).text)
