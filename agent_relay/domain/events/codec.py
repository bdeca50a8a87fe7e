"""Events as the JSON objects of journal lines, and back; the parts that any kind of journal shares."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import TypeVar

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.session import KNOWN, Body, Event, Unknown

JOURNAL_VERSION = 1
_BY_NAME = {kind.name: kind for kind in KNOWN}
_B = TypeVar("_B")


def render_event(event: Event) -> dict[str, object]:
    """Render the JSON object of one journal line."""
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
    """Parse the event of one journal line.

    Fields a newer version added to a known event are dropped on reading and stay in the file. Raises
    UntrustedDataError if the line is of a newer version, no event at all, or a known one lacks a field.
    """
    number, at, name, data = parse_head(line, version=JOURNAL_VERSION)
    generation = line.get("g")
    if not isinstance(generation, int):
        raise UntrustedDataError("a journal line is not an event")
    kind = _BY_NAME.get(name)
    body: Body = Unknown(name, data) if kind is None else build_body(kind, name, data)
    return Event(number, at, generation, body)


def parse_head(line: Mapping[str, object], *, version: int) -> tuple[int, datetime, str, dict[str, object]]:
    """Parse number, moment, name and data of a journal line of any kind of journal.

    Raises UntrustedDataError if its format is newer than `version`, or it is no event.
    """
    found = line.get("v")
    if type(found) is int and found > version:
        raise UntrustedDataError(
            f"it has version {found}, this agent-relay reads up to {version}",
            hint="Upgrade agent-relay.",
        )
    number, at, name, data = (line.get(key) for key in ("n", "at", "event", "data"))
    if not (
        isinstance(number, int) and isinstance(at, str) and isinstance(name, str) and isinstance(data, dict)
    ):
        raise UntrustedDataError("a journal line is not an event")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise UntrustedDataError("a journal line carries no valid time") from None
    return number, moment, name, data


def _is_texts(value: object) -> bool:
    """Return whether it is a list of nothing but texts, as every list in an event is."""
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def build_body(kind: Callable[..., _B], name: str, data: Mapping[str, object]) -> _B:
    """Build the `kind` of event `data` describes; unknown fields are dropped.

    Raises UntrustedDataError if a field is missing or of the wrong type.
    """
    values: dict[str, object] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every event is a dataclass
        if field.name not in data:
            continue
        value = data[field.name]
        value = tuple(value) if isinstance(value, list) else value
        wanted = field.type if isinstance(field.type, type) else tuple
        if not isinstance(value, wanted) or (wanted is tuple and not _is_texts(value)):
            raise UntrustedDataError(f"the journal's {name} event has a {field.name} of the wrong type")
        values[field.name] = value
    try:
        return kind(**values)
    except TypeError:
        raise UntrustedDataError(f"the journal's {name} event lacks a field") from None
