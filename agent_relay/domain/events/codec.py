"""Events as the JSON objects of journal lines, and back, for every kind of journal."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Protocol, TypeVar

import msgspec

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.session import KNOWN, Event, Unknown
from agent_relay.domain.moments import parse_moment

JOURNAL_VERSION = 1
_SESSION_KINDS = {kind.name: kind for kind in KNOWN}
_B = TypeVar("_B")


class EventBody(Protocol):
    """Hold the data of one event: a struct whose fields are the line's data."""

    @property
    def name(self) -> str:
        """The event's name in the journal."""
        ...


class JournalEvent(Protocol):
    """One line of any journal."""

    @property
    def number(self) -> int:
        """The line's number, from 1."""
        ...

    @property
    def at(self) -> datetime:
        """The moment it happened, with a time zone."""
        ...

    @property
    def body(self) -> EventBody:
        """The event's data."""
        ...


def render_event(event: JournalEvent) -> dict[str, object]:
    """Render the JSON object of one journal line; only a session's has a generation."""
    body = event.body
    # Every event is a struct.
    data = dict(body.data) if isinstance(body, Unknown) else msgspec.structs.asdict(body)  # type: ignore[arg-type]
    return {
        "v": JOURNAL_VERSION,
        "n": event.number,
        "at": event.at.isoformat(),
        **({"g": event.generation} if isinstance(event, Event) else {}),
        "event": body.name,
        "data": data,
    }


def parse_event(line: Mapping[str, object]) -> Event:
    """Parse the event of one line of a session's journal. Raise what `parse_parts` does."""
    number, at, body = parse_parts(line, _SESSION_KINDS)
    generation = line.get("g")
    if not isinstance(generation, int):
        raise UntrustedDataError("a journal line is not an event")
    return Event(number, at, generation, body)


def parse_parts(
    line: Mapping[str, object], kinds: Mapping[str, Callable[..., _B]]
) -> tuple[int, datetime, _B | Unknown]:
    """Parse number, moment and body of a line of any journal; one not among `kinds` becomes `Unknown`.

    Fields a newer version added to a known event are dropped on reading and stay in the file. Raises
    UntrustedDataError if the line is of a newer version, no event at all, or a known one lacks a field.
    """
    version = line.get("v")
    if type(version) is int and version > JOURNAL_VERSION:
        raise UntrustedDataError(
            f"it has version {version}, this agent-relay reads up to {JOURNAL_VERSION}",
            hint="Upgrade agent-relay.",
        )
    number, at, name, data = (line.get(key) for key in ("n", "at", "event", "data"))
    if not (
        isinstance(number, int) and isinstance(at, str) and isinstance(name, str) and isinstance(data, dict)
    ):
        raise UntrustedDataError("a journal line is not an event")
    moment = parse_moment(at)
    if moment is None:
        raise UntrustedDataError("a journal line carries no valid time with a zone")
    kind = kinds.get(name)
    return number, moment, Unknown(name, data) if kind is None else _build_body(kind, name, data)


def _build_body(kind: Callable[..., _B], name: str, data: Mapping[str, object]) -> _B:
    """Build the `kind` of event `data` describes.

    Raises UntrustedDataError if a field is missing or of the wrong type.
    """
    values: dict[str, object] = {}
    for field, wanted in _find_types(kind):
        if field not in data:
            continue
        value = data[field]
        value = tuple(value) if isinstance(value, list) else value
        if not isinstance(value, wanted) or (wanted is tuple and not _is_texts(value)):
            raise UntrustedDataError(f"the journal's {name} event has a {field} of the wrong type")
        values[field] = value
    try:
        return kind(**values)
    except TypeError:
        raise UntrustedDataError(f"the journal's {name} event lacks a field") from None


@cache
def _find_types(kind: Callable[..., object]) -> tuple[tuple[str, type], ...]:
    """Return the fields of a kind of event, and what their values are instances of."""
    fields = msgspec.structs.fields(kind)  # type: ignore[arg-type]  # every event is a struct
    return tuple((field.name, field.type if isinstance(field.type, type) else tuple) for field in fields)


def _is_texts(value: object) -> bool:
    """Return whether it is a list of nothing but texts, as every list in an event is."""
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)
