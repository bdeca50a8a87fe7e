"""What a webhook is told: that something happened, to whom, by names, codes and moments; nobody's words."""

from agent_relay.domain.watch_event import EventTold
from agent_relay.logic.exporting.names import is_code, shorten_path

NAMES = frozenset(
    {
        "session.created", "session.rested", "session.woke", "session.ended", "leg.starting", "leg.ready",
        "leg.asking", "leg.ended", "signal.seen", "handoff.begun", "handoff.confirmed", "handoff.failed",
        "handoff.cancelled", "return.offered", "turn.ended",
    }
)  # fmt: skip
"""The events that are sent."""


def build_hook_event(told: EventTold) -> dict[str, object] | None:
    """The body that is sent, `None` for an event nobody needs to be told of.

    Details are codes, names and moments; anything else does not leave this machine, whoever wrote it. Of a
    model that is a file here only the file's own name does.
    """
    if told.name not in NAMES or not is_code(told.session):
        return None
    if told.name == "signal.seen" and told.details.get("decides") != "true":
        return None
    told_of = {**told.details, "model": shorten_path(told.details.get("model", ""))}
    details = {name: text for name, text in told_of.items() if is_code(text)}
    return {
        "schema": "agent-relay/webhook",
        "version": 1,
        "id": f"{told.session}:{told.number}",
        "session": told.session,
        "event": told.name,
        "at": told.at,
        **{name: text for name, text in details.items() if name != "decides"},
    }
