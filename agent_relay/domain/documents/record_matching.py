"""Look up values in structured records by path, and check a rule's conditions on them."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from agent_relay.domain.documents.rules import Where
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.values import replace

_ENVELOPED = frozenset({Source.HOOK, Source.STATUS_LINE})
_MOST_TEXT = 20_000
_MOST_STRINGS = 2_000


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern, cached; adapters hold a few hundred."""
    return re.compile(pattern)


def open_envelope(record: Record) -> Record:
    """Return the record as its agent wrote it: our hook keeps it as `{"at": …, "payload": {…}}`."""
    payload = record.data.get("payload")
    if record.source not in _ENVELOPED or not isinstance(payload, dict):
        return record
    return replace(record, data=payload)


def find_value(data: object, path: str) -> object:
    """Return the value at `path` (`a/b/0`, keys may hold dots, `.` the whole), or `None`."""
    if path == ".":
        return data
    here = data
    for step in path.split("/"):
        if isinstance(here, dict):
            here = here.get(step)
        elif isinstance(here, list) and step.lstrip("-").isdigit():
            index = int(step)
            here = here[index] if -len(here) <= index < len(here) else None
        else:
            return None
    return here


def find_dotted(data: object, path: str) -> object:
    """Return the value of a dotted field (`a.b`), or `None` if there is no such field."""
    for key in path.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def find_text(data: object, path: str) -> str | None:
    """Return the text at `path`: a string as it is, anything else but nothing as compact JSON."""
    value = find_value(data, path)
    if value is None:
        return None
    if isinstance(value, str):
        return value[:_MOST_TEXT]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:_MOST_TEXT]


def is_meant(where: Where, data: object) -> bool:
    """Return whether the record satisfies every condition."""
    return (
        all(_equals(find_value(data, path), wanted) for path, wanted in where.equals.items())
        and all(find_value(data, path) is None for path in where.absent)
        and all(find_value(data, path) is not None for path in where.present)
        and all(_contains(data, path, pattern) for path, pattern in where.matches.items())
    )


def _equals(value: object, wanted: str | int | bool) -> bool:  # noqa: FBT001 - a value of any JSON kind
    return type(value) is type(wanted) and value == wanted


def _contains(data: object, path: str, pattern: str) -> bool:
    text = find_text(data, path)
    return text is not None and compile_pattern(pattern).search(text) is not None


def iter_strings(data: object) -> Iterator[str]:
    """Yield every string value inside `data`, at most `_MOST_STRINGS` of them."""
    waiting = [data]
    count = 0
    while waiting and count < _MOST_STRINGS:
        value = waiting.pop()
        if isinstance(value, str):
            count += 1
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def squeeze(text: str) -> str:
    """Return `text` with every run of white space as one space, so that rules match wrapped words."""
    return " ".join(text.split())
