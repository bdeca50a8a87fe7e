"""Events as the JSON objects of journal lines, and back."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.event import KNOWN, Body, Event, Unknown

JOURNAL_VERSION = 1
_BY_NAME = {kind.name: kind for kind in KNOWN}


def render_event(event: Event) -> dict[str, object]:
    """The JSON object of one journal line."""
    body = event.body
    if isinstance(body, Unknown):
        data = dict(body.data)
    else:
        data = {field.name: getattr(body, field.name) for field in fields(body)}
    return {
        "v": JOURNAL_VERSION,
        "n": event.number,
        "at": event.at.isoformat(),
        "g": event.generation,
        "event": body.name,
        "data": data,
    }


def parse_event(line: Mapping[str, object]) -> Event:
    """The event of one journal line.

    Fields a newer version added to a known event are dropped on reading and stay in the file. Raises
    UntrustedDataError where the line is of a newer version, no event at all, or a known one lacks a field.
    """
    version = line.get("v")
    if type(version) is int and version > JOURNAL_VERSION:
        raise UntrustedDataError(
            f"it has version {version}, this agent-relay reads up to {JOURNAL_VERSION}",
            hint="Upgrade agent-relay.",
        )
    number, at, generation, name, data = (line.get(key) for key in ("n", "at", "g", "event", "data"))
    if not (
        isinstance(number, int)
        and isinstance(at, str)
        and isinstance(generation, int)
        and isinstance(name, str)
        and isinstance(data, dict)
    ):
        raise UntrustedDataError("a journal line is not an event")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise UntrustedDataError("a journal line carries no valid time") from None
    return Event(number, moment, generation, _parse_body(name, data))


def _is_texts(value: object) -> bool:
    """Whether it is a list of nothing but texts, as every list in an event is."""
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def _parse_body(name: str, data: Mapping[str, object]) -> Body:
    kind = _BY_NAME.get(name)
    if kind is None:
        return Unknown(name, dict(data))
    values: dict[str, object] = {}
    for field in fields(kind):
        if field.name not in data:
            continue
        value = data[field.name]
        value = tuple(value) if isinstance(value, list) else value
        wanted = field.type if isinstance(field.type, type) else tuple
        if not isinstance(value, wanted) or (wanted is tuple and not _is_texts(value)):
            raise UntrustedDataError(f"the journal's {name} event has a {field.name} of the wrong type")
        values[field.name] = value
    build: Callable[..., Body] = kind
    try:
        return build(**values)
    except TypeError:
        raise UntrustedDataError(f"the journal's {name} event lacks a field") from None
