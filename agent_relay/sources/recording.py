"""Read from disk what a finished leg left: a recording of its output, and its structured records.

The files beside a recording say what its size and times were.
"""

import ast
import json
import os
import re
import sqlite3
import urllib.parse
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from agent_relay.domain.errors import RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.limits import Record, Source
from agent_relay.sources.record_fields import find_record_time
from agent_relay.sources.record_framing import Framing, build_framer
from agent_relay.sources.replay import Timing
from agent_relay.system.disk.files import check_database, open_stream, read_bounded, unzip

_MOST_BYTES = 512 << 20
# How long output pauses before a screen counts as settled, and how rarely it is looked at while it flows.
_QUIET_S = 0.08
_AT_LEAST_EVERY_S = 0.1
_SIZE_IN_NAME = re.compile(r"[-_](\d{2,3})x(\d{2,3})(?:\.|$)")
_RESIZED = re.compile(r"resize to (\d+)x(\d+)")
_DEFAULT_SIZE = (120, 40)
_RETURN = re.compile(r"(\r)")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|.)?|[\x00-\x0c\x0e-\x1a\x7f]")
_SHORTEST_LINE = 2


class Recording(msgspec.Struct, frozen=True):
    """Recorded output of one leg.

    `cols` x `rows` is the size it began with, `typed` the lines people submitted, each with its time in
    seconds, `started_at` the file's date less the recording's length.
    """

    data: bytes
    cols: int
    rows: int
    timing: Timing
    typed: tuple[tuple[str, float], ...]
    started_at: datetime


def read_recording(path: str) -> Recording:
    """Read the recording at `path` with its `.events.jsonl` or `.meta.json`.

    `path` is a `.raw` file, or one gzipped as `.raw.gz`. Raises WrongUseError if it cannot be read.
    """
    data = _read(path)
    stem = path.removesuffix(".gz").removesuffix(".raw")
    meta = _read_meta(stem)
    events = _read_events(stem)
    timing = _find_timing(events, len(data))
    length_s = timing.length_s or _number(meta.get("exit_t"))
    cols, rows = int(_number(meta.get("cols"))), int(_number(meta.get("rows")))
    if not (cols and rows):
        named = _SIZE_IN_NAME.search(os.path.basename(path))
        cols, rows = (int(named[1]), int(named[2])) if named else _DEFAULT_SIZE
    timing = Timing(timing.settled, timing.marks, timing.sizes, length_s)
    started_at = datetime.fromtimestamp(os.stat(path).st_mtime, UTC) - timedelta(seconds=length_s)
    typed = _find_typed([*_list_inputs(meta), *_list_keys(events)])
    return Recording(data, cols, rows, timing, typed, started_at)


def _read(path: str) -> bytes:
    cause: Exception
    try:
        data = read_bounded(path, limit_bytes=_MOST_BYTES)
        return unzip(data, limit_bytes=_MOST_BYTES) if path.endswith(".gz") else data
    except FileNotFoundError as error:
        why, cause = "No such file or directory", error
    except RelayError as error:
        why, cause = error.sentence, error
    except (EOFError, zlib.error) as error:
        why, cause = "it is no whole gzip file", error
    raise WrongUseError(
        f"the recording {path} cannot be read: {why}", hint="Name a file of recorded terminal output."
    ) from cause


def _read_beside(stem: str, ending: str) -> bytes:
    for name in (stem + ending, stem + ending + ".gz"):
        if os.path.isfile(name):
            return _read(name)
    return b""


def _read_meta(stem: str) -> dict[str, object]:
    try:
        meta = json.loads(_read_beside(stem, ".meta.json") or b"{}")
    except (ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


def _read_events(stem: str) -> list[dict[str, object]]:
    events: list[dict[str, object]] = []
    for line in _read_beside(stem, ".events.jsonl").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _list_keys(events: list[dict[str, object]]) -> Iterator[tuple[str, float]]:
    for event in events:
        if isinstance(event.get("i"), str):
            yield str(event["i"]), _number(event.get("t"))


def _list_inputs(meta: dict[str, object]) -> Iterator[tuple[str, float]]:
    inputs = meta.get("inputs")
    for item in inputs if isinstance(inputs, list) else ():
        if not isinstance(item, dict):
            continue
        try:
            keys = ast.literal_eval(str(item.get("bytes")))
        except (ValueError, SyntaxError):
            continue
        if isinstance(keys, bytes):
            yield keys.decode("utf-8", "replace"), _number(item.get("t"))


def _find_typed(keys: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Find the lines submitted by Enter, white space squeezed; escape sequences are left out."""
    typed: list[tuple[str, float]] = []
    line = ""
    for text, seconds in keys:
        for part in _RETURN.split(_ESCAPES.sub("", text)):
            if part != "\r":
                line += part
                continue
            words = " ".join(line.split())
            line = ""
            if len(words) >= _SHORTEST_LINE:
                typed.append((words, seconds))
    return tuple(typed)


def _find_timing(events: list[dict[str, object]], total: int) -> Timing:
    """Build the timing, with the looks at the screen that a live leg would have had.

    These are at pauses, and every tenth of a second while output flows.
    """
    marks: list[tuple[int, float]] = []
    sizes: list[tuple[int, int, int]] = []
    ends: list[tuple[float, int]] = []
    length_s = 0.0
    for event in events:
        seconds, offset = _number(event.get("t")), int(_number(event.get("off")))
        length_s = max(length_s, seconds)
        resized = _RESIZED.match(str(event.get("mark", "")))
        if resized:
            sizes.append((offset, int(resized[1]), int(resized[2])))
        if "o" in event:
            marks.append((offset, seconds))
            ends.append((seconds, offset + int(_number(event["o"]))))
    settled: list[int] = []
    looked = -_AT_LEAST_EVERY_S
    for index, (seconds, end) in enumerate(ends):
        following = ends[index + 1][0] if index + 1 < len(ends) else seconds + _QUIET_S
        if following - seconds >= _QUIET_S or seconds - looked >= _AT_LEAST_EVERY_S:
            looked = seconds
            settled.append(min(end, total))
    return Timing(tuple(settled), tuple(marks), tuple(sizes), length_s)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


_EVIDENCE_BYTES = 256 << 20
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
            data = file.read(_EVIDENCE_BYTES)
        if path.endswith(".gz"):
            data, path = unzip(data, limit_bytes=_EVIDENCE_BYTES), path[:-3]
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
