"""Read the structured records that a finished leg left in a file or a folder."""

import json
import os
import sqlite3
import urllib.parse
import zlib
from collections.abc import Iterator

from agent_relay.domain.errors import UntrustedDataError, WrongUseError
from agent_relay.domain.limits import Record, Source
from agent_relay.sources._record_framing import Framing, build_framer
from agent_relay.sources.record_fields import find_record_time
from agent_relay.system.disk.regular_files import check_database, open_stream, unzip

_MOST_BYTES = 256 << 20
_HEAD = 65_536
_SQLITE = b"SQLite format 3\x00"
_LOG_ENDINGS = (".log", ".txt")
_ROWS = {"message": "select data, time_updated from message", "part": "select data, time_updated from part"}


def read_evidence(path: str) -> tuple[Record, ...]:
    """Read the records of `path`, file by file in the order of their names, each in its own order.

    A folder is read whole; files that hold no records are skipped, whatever they are. Sources are
    distinguished by shape: hook payloads name their event, event dumps wrap `{"t", "kind", "data"}`,
    telemetry is JSON objects one after the other, logs are lines; everything else is transcript.
    Raises WrongUseError if `path` does not exist.
    """
    if not os.path.exists(path):
        raise WrongUseError(
            f"there is no transcript at {path}", hint="Name a native transcript or its folder."
        )
    return tuple(record for name in _list_files(path) for record in _read_file(name))


def _list_files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(folder, name)


def _read_file(path: str) -> Iterator[Record]:
    try:
        with open_stream(path) as file:
            data = file.read(_MOST_BYTES)
        if path.endswith(".gz"):
            data, path = unzip(data, limit_bytes=_MOST_BYTES), path[:-3]
    except (OSError, EOFError, zlib.error, UntrustedDataError):
        return
    if data.startswith(_SQLITE):
        yield from _read_database(path)
    elif path.endswith(".json"):
        yield from _read_document(data, path)
    elif path.endswith(_LOG_ENDINGS):
        yield from _read_log(data, path)
    elif path.endswith(".jsonl"):
        yield from _frame(data, "jsonl", path)


def _read_log(data: bytes, path: str) -> Iterator[Record]:
    if data[:_HEAD].lstrip().startswith(b"{"):
        yield from _frame(data, "json-stream", path)
    else:
        yield from _frame(data, "lines", path)


def _frame(data: bytes, framing: Framing, path: str) -> Iterator[Record]:
    framer = build_framer(framing)
    framed = [*framer.frame(data if data.endswith(b"\n") else data + b"\n"), *framer.flush()]
    for offset, value in framed:
        yield _classify(value, framing, f"{os.path.basename(path)}:{offset}")


def _classify(value: dict[str, object], framing: Framing, where: str) -> Record:
    at = find_record_time(value)
    if framing != "jsonl":
        return Record(Source.LOG if framing == "lines" else Source.TELEMETRY, value, at, where)
    payload, event = value.get("stdin", value.get("payload")), value.get("data")
    if "t" in value and "kind" in value and isinstance(event, dict):
        return Record(Source.EVENT, event, at, where)
    if "t" in value and isinstance(payload, dict):
        return Record(_tell_hook(payload) or Source.STATUS_LINE, payload, at, where)
    return Record(_tell_hook(value) or Source.TRANSCRIPT, value, at, where)


def _tell_hook(value: dict[str, object]) -> Source | None:
    if "hook_event_name" in value:
        return Source.HOOK
    return Source.STATUS_LINE if "context_window" in value and "workspace" in value else None


def _read_document(data: bytes, path: str) -> Iterator[Record]:
    """Yield the messages of an exported or dumped session; other documents hold no records."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    where = os.path.basename(path)
    for table in _ROWS:
        rows = document.get(table)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield from _read_row(row.get("data"), row.get("time_updated"), f"{where} {table}")
    messages = document.get("messages")
    for message in messages if isinstance(messages, list) else ():
        info = message.get("info") if isinstance(message, dict) else None
        times = info.get("time") if isinstance(info, dict) else None
        if isinstance(info, dict) and isinstance(times, dict):
            yield from _read_row(json.dumps(info), times.get("completed") or times.get("created"), where)


def _read_database(path: str) -> Iterator[Record]:
    """Yield the messages of a session database and their parts, without changing or locking it."""
    where = os.path.basename(path)
    address = f"file:{urllib.parse.quote(os.path.abspath(path))}?mode=ro&immutable=1"
    try:
        check_database(path)
        connection = sqlite3.connect(address, uri=True)
    except (OSError, UntrustedDataError, sqlite3.Error):
        return
    try:
        for table, query in _ROWS.items():
            for data, updated in connection.execute(query):
                yield from _read_row(data, updated, f"{where} {table}")
    except sqlite3.Error:
        return
    finally:
        connection.close()


def _read_row(data: object, updated: object, where: str) -> Iterator[Record]:
    try:
        value = json.loads(data) if isinstance(data, str) else None
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        yield Record(Source.TRANSCRIPT, value, find_record_time({"at": updated}), where)
