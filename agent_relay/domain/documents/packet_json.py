"""Write the resume packet as JSON, with its fingerprint, and read it again."""

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import cast

from pydantic import BaseModel, ValidationError

from agent_relay.domain.documents.packet import SCHEMA, VERSION, ResumePacket
from agent_relay.domain.errors import UntrustedDataError

# No field of ours is deeper than 5; the functions that walk a packet are recursive.
_DEEPEST = 100
_REMEDY = "Undo the change to it, or hand over again, which writes a new one."
_HALF = re.compile("[\ud800-\udfff]")


def render_document(packet: ResumePacket) -> dict[str, object]:
    """Return the packet's JSON object. Unknown or empty values are left out; unknown fields stay in."""
    data = packet.model_dump(by_alias=True)
    _leave_out_unknown(packet, data)
    return {key: _plain(value) for key, value in data.items()}


def render_json(document: dict[str, object]) -> str:
    """Render the document for people to read and edit: indented, fields in order, a final line feed."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def fingerprint(document: dict[str, object]) -> str:
    """Return the SHA-256 of the document's canonical bytes, the same for any indentation and order."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def parse_document(data: bytes | str, *, name: str = "the packet") -> dict[str, object]:
    """Parse the JSON object in `data`, unchecked except for being one.

    `name` describes the source in errors. Raises UntrustedDataError.
    """
    try:
        document: object = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise UntrustedDataError(f"{name} is not valid JSON", hint=_REMEDY) from problem
    if not isinstance(document, dict):
        raise UntrustedDataError(f"{name} is not a JSON object", hint=_REMEDY)
    return document


def parse_packet(document: dict[str, object], *, name: str = "the packet") -> ResumePacket:
    """Parse the packet in a JSON object of version 1 to ours.

    Raises UntrustedDataError if the object is something else, of a newer version, incomplete, or nested
    absurdly deep. The message names the field, never its contents.
    """
    if document.get("schema") != SCHEMA:
        raise UntrustedDataError(f"{name} is not a resume packet: its schema is not {SCHEMA}", hint=_REMEDY)
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise UntrustedDataError(
            f"{name} has version {version}, this agent-relay reads up to {VERSION}",
            hint="Upgrade agent-relay.",
        )
    if _is_absurdly_deep(document):
        raise UntrustedDataError(f"{name} has fields nested too deeply", hint=_REMEDY)
    try:
        return ResumePacket.model_validate(document)
    except ValidationError as problem:
        raise UntrustedDataError(
            f"{name} is not a valid resume packet: {_where(problem)}", hint=_REMEDY
        ) from None


def _is_absurdly_deep(document: dict[str, object]) -> bool:
    level: list[object] = [document]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _list_inner(one)]
        if not level:
            return False
    return True


def _list_inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _where(problem: ValidationError) -> str:
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _plain(value: object) -> object:
    r"""Return `value` as JSON has it. Half characters, which torn transcripts hold, become `\uNNNN`."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Enum():
            return _plain(value.value)
        case str():
            return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", value)
        case dict():
            return {str(_plain(key)): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value


def _leave_out_unknown(model: BaseModel, data: dict[str, object]) -> None:
    """Drop from `data`, the dump of `model`, every declared field without a value."""
    for name, field in type(model).model_fields.items():
        key = field.alias or name
        value: object = getattr(model, name)
        if isinstance(value, BaseModel):
            inner = cast("dict[str, object]", data[key])
            _leave_out_unknown(value, inner)
            value = inner or None
        elif isinstance(value, tuple):
            entries = cast("list[dict[str, object]]", data[key])
            for one, entry in zip(cast("tuple[BaseModel, ...]", value), entries, strict=True):
                _leave_out_unknown(one, entry)
        if (value is None or value in ("", ())) and not field.is_required():
            del data[key]
