"""Note what providers' status codes and headers say of limits, in the leg's own file for the detector.

Of a request only its path and the program's name are noted, of a response the headers its adapter names, and
of an error the fields that say which one it is, without secrets. What people and models say is in none of
them.
"""

import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.domain.errors import RelayError
from agent_relay.faces.proxy._upstream import Headers
from agent_relay.redact.text import redact_words
from agent_relay.store.proxied_legs import EVIDENCE_FILE
from agent_relay.system.disk.locks import append_line

FIRST_ERROR = 400
LIMIT_BYTES = 64 << 10
"""Most bytes of an error's body that are read; all of it is passed on."""
_FILE_LIMIT_BYTES = 16 << 20
_MOST_LETTERS, _MARGIN = 1000, 400
_MOST_DETAILS = 20
_FIELDS = (
    *("type", "code", "status", "reason", "plan_type", "resets_at", "resets_in_seconds", "retry_after"),
    *("limitName", "resetAt", "retryDelay", "quotaId", "quotaResetTimeStamp", "error_code"),
)
_KINDS = ("type", "code", "status", "error_code", "reason", "quotaId")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


class ResponseNote:
    """The evidence of one response, gathered while its body passes."""

    def __init__(
        self, evidence: "LegEvidence", *, path: str, client: str, status: int, headers: Headers
    ) -> None:
        self._evidence = evidence
        self._row: dict[str, object] = {
            "at": datetime.now(UTC).isoformat(),
            "status": status,
            "path": path.partition("?")[0][:_MOST_LETTERS],
            "client": client[:_MOST_LETTERS],
            "headers": evidence.choose(headers),
        }
        self._encoding = next((value for name, value in headers if name.lower() == b"content-encoding"), b"")
        self._body = bytearray()
        self._is_noted = False

    def mark_side(self) -> None:
        """Note that the request does not belong to the conversation."""
        self._row["side"] = True

    @property
    def is_error(self) -> bool:
        """True if the response is an error."""
        status = self._row["status"]
        return isinstance(status, int) and status >= FIRST_ERROR

    def feed(self, data: bytes) -> None:
        """Take a part of the body as it passes; what follows the first 64 KiB is not looked at."""
        if self.is_error:
            self._body += data[: LIMIT_BYTES - len(self._body)]

    def finish(self) -> None:
        """Write the note, once: an error's always, another's if its headers say something new."""
        if self._is_noted:
            return
        self._is_noted = True
        if self.is_error:
            error = _read_error(bytes(self._body), self._encoding.lower())
            self._row |= {"error": error, "text": _describe(self._row, error)}
            self._evidence.write(self._row)
        elif self._row["headers"] and self._evidence.is_news(self._row["headers"]):
            self._evidence.write(self._row)


class LegEvidence:
    """The file of one leg's evidence, and the headers of its newest response."""

    def __init__(self, leg_folder: str, keeps: Sequence[str]) -> None:
        self._path = os.path.join(leg_folder, EVIDENCE_FILE)
        self._keeps = tuple(keeps)
        self._newest: object = None
        self._written = 0

    def choose(self, headers: Headers) -> dict[str, object]:
        """Return the headers that are evidence, by lower-case name; numbers as numbers."""
        found: dict[str, object] = {}
        for raw_name, raw_value in headers:
            name, value = raw_name.decode("ascii", "replace").lower(), raw_value.decode("latin-1")
            if any(_is_like(name, form) for form in self._keeps):
                found[name] = _read_value(value)
        return found

    def is_news(self, headers: object) -> bool:
        """Return whether the headers differ from the newest ones."""
        return headers != self._newest

    def write(self, row: Mapping[str, object]) -> None:
        """Append the row to the leg's file; do nothing if the leg has ended and so has no file."""
        self._newest = row["headers"]
        line = json.dumps(row).encode()
        self._written += len(line) + 1
        folder = os.path.dirname(self._path)
        if self._written > _FILE_LIMIT_BYTES or not os.path.isdir(folder):
            return
        try:
            append_line(self._path, line, wait_s=0)
        except (RelayError, OSError):
            return


def _read_value(text: str) -> object:
    if _NUMBER.fullmatch(text) is None:
        return text[:_MOST_LETTERS]
    return float(text) if "." in text else int(text)


def _is_like(name: str, form: str) -> bool:
    return name.startswith(form[:-1]) if form.endswith("*") else name == form


def _read_error(body: bytes, encoding: bytes) -> dict[str, object]:
    """Return the fields of an error's body that say which one it is; empty if it is no JSON."""
    try:
        if encoding in {b"gzip", b"x-gzip"}:
            body = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, LIMIT_BYTES)
        found = json.loads(body, parse_constant=_refuse)
    except (ValueError, zlib.error, RecursionError):
        return {}
    if isinstance(found, list) and found:
        found = found[0]
    error = found.get("error", found) if isinstance(found, dict) else found
    if isinstance(error, str):
        return {"message": _clean(error)}
    if not isinstance(error, dict):
        return {}
    chosen: dict[str, object] = {}
    for part in (found, error, *_iterate_details(error)):
        chosen |= {
            name: _clean(part[name]) if isinstance(part[name], str) else part[name]
            for name in _FIELDS
            if isinstance(part.get(name), str) or _is_number(part.get(name))
        }
    message = error.get("message")
    return {**chosen, "message": _clean(message)} if isinstance(message, str) else chosen


def _refuse(_constant: str) -> None:
    """Read NaN and the infinities, which JSON does not have, as nothing: what else there is still counts."""


def _is_number(value: object) -> bool:
    """Tell whether JSON has this number; `1e999` is read as an infinity."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def _iterate_details(error: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the objects that hold an error's details: each detail, its metadata and its violations."""
    listed = error.get("details")
    details = [*(listed if isinstance(listed, list) else [listed]), error]
    for detail in details[:_MOST_DETAILS]:
        if isinstance(detail, dict):
            metadata, violations = detail.get("metadata"), detail.get("violations")
            found = [detail, metadata, *(violations if isinstance(violations, list) else ())]
            yield from (one for one in found[:_MOST_DETAILS] if isinstance(one, dict) and one is not error)


def _clean(text: str) -> str:
    """Return the beginning of the text without secrets: some providers quote the key they refuse."""
    # What is cut before it is searched may end with half a secret.
    return redact_words(text[: _MOST_LETTERS + _MARGIN])[:_MOST_LETTERS]


def _describe(row: Mapping[str, object], error: Mapping[str, object]) -> str:
    """Render what people and rules read: `HTTP 429 at /v1/messages: rate_limit_error: Try again later.`."""
    kinds = dict.fromkeys(str(error[name]) for name in _KINDS if error.get(name) not in {None, row["status"]})
    said = ": ".join(part for part in (" ".join(kinds), str(error.get("message", ""))) if part)
    return f"HTTP {row['status']} at {row['path']}" + (f": {said}" if said else "")
