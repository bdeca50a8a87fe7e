"""What may leave this machine: label values and webhook bodies of names, codes and moments.

No path and no text that anybody wrote leaves; a model that is a local file becomes the file's own name.
"""

import re

from agent_relay.domain.protocol.watch_output import EventTold

OTHER = "other"
"""Replaces a name that has none of the shapes."""
_UNKNOWN = "unknown"
_MOST = 80
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:+()-]*[A-Za-z0-9)])?")
_PARTS = re.compile(r"[/\\]|%2f|%5c", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z0-9-](?:[A-Za-z0-9._:+-]{0,79})")


def shorten_path(name: str) -> str:
    r"""Return the last part of a name that may be a path, as that of a local model is; else the name itself.

    `/home/ann/models/llama.gguf` and `C:\models\llama.gguf` become `llama.gguf`, `maker/model` `model`. An
    address with nothing behind its host becomes empty.
    """
    scheme, mark, rest = name.partition("://")
    parts = _PARTS.split(rest if mark else scheme)
    return "" if mark and len(parts) == 1 else parts[-1]


def label(name: str) -> str:
    """Return the first 80 characters if they have the shape of a name, else `other`; `unknown` for none."""
    cut = name[:_MOST].rstrip()
    if not cut:
        return _UNKNOWN
    return cut if _NAME.fullmatch(cut) else OTHER


def is_code(text: str) -> bool:
    """Return whether it is a code, a name or a moment: no free text, and no path."""
    return _CODE.fullmatch(text) is not None


SENT_EVENTS = frozenset(
    {
        "session.created", "session.rested", "session.woke", "session.ended", "leg.starting", "leg.ready",
        "leg.asking", "leg.ended", "signal.seen", "handoff.begun", "handoff.confirmed", "handoff.failed",
        "handoff.cancelled", "return.offered", "turn.ended",
    }
)  # fmt: skip
"""The events that are sent."""


def build_hook_event(told: EventTold) -> dict[str, object] | None:
    """Build the body to send; `None` for an event that is not sent.

    Details are codes, names and moments; anything else does not leave this machine, whoever wrote it. Of a
    model that is a local file only the file's own name does.
    """
    if told.name not in SENT_EVENTS or not is_code(told.session):
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
