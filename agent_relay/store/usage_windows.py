"""Keep on disk what agents last said of their usage windows, for every session and every daemon.

Commands that must start as fast as Python read it, so importing it loads next to nothing.
"""

import os

from agent_relay.system.disk.files import read_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

SCHEMA = "agent-relay/usage-windows"
VERSION = 1
_LIMIT_BYTES = 1 << 20
_LOCK_LIMIT_S = 10.0
_MOST_ROWS = 256
_TEXTS = ("agent", "model", "name", "resets_at", "source", "read_at")
_MOST_PERCENT = 1000


def read_windows(path: str, now: "datetime") -> "list[dict[str, object]]":
    """Return the windows that have not begun anew since they were read, by agent, the shortest first.

    Each has agent, model (empty for the whole account), name, minutes (0 if unknown), used_percent,
    resets_at, source and read_at (ISO 8601). What cannot be read is not known: it is left out.
    """
    rows = [row for row in _read(path) if _is_open(row, now)]
    return sorted(rows, key=lambda row: (str(row["agent"]), _count(row["minutes"]), *map(str, row.values())))


def get_window_name(row: "Mapping[str, object]") -> str:
    """Return what people call the window of a row that was read: `5 h`, `week of Opus`."""
    from agent_relay.domain.text.names import name_window

    return name_window(str(row["name"]), _count(row["minutes"]), str(row["model"]))


def round_percent(row: "Mapping[str, object]") -> int:
    """Return how much of the window is used, as people read it."""
    used = row["used_percent"]
    return round(used) if isinstance(used, int | float) else 0


def render_known(rows: "Sequence[Mapping[str, object]]", now: "datetime") -> str:
    """Return `5 h 42 %, week 13 % (3 min ago)` for the windows of one agent; `unknown` if it said nothing.

    The age is that of the oldest reading.
    """
    from agent_relay.domain.moments import parse_moment, render_age

    read = [at for row in rows if (at := parse_moment(row["read_at"])) is not None]
    if not rows or not read:
        return "unknown"
    used = ", ".join(f"{get_window_name(row)} {round_percent(row)} %" for row in rows)
    return f"{used} ({render_age(min(read), now)} ago)"


def update_windows(path: str, found: "Sequence[dict[str, object]]", now: "datetime") -> None:
    """Write what was found into the file; of two readings of a window the newer one stays.

    Windows that have begun anew are removed. Raises RelayError if the disk refuses.
    """
    import json  # dear, and only what reads must be quick

    from agent_relay.system.disk.files import write_atomic
    from agent_relay.system.disk.folders import ensure_private
    from agent_relay.system.disk.locks import lock_beside

    ensure_private(os.path.dirname(path))
    with lock_beside(path, limit_s=_LOCK_LIMIT_S):
        before = _read(path)
        known = {_identify(row): row for row in before if _is_open(row, now)}
        for row in found:
            old = known.get(_identify(row))
            # What was noted by a clock that was ahead must not outdate what is read now.
            if old is None or not str(row["read_at"]) < str(old["read_at"]) <= now.isoformat():
                known[_identify(row)] = row
        after = _keep_newest(list(known.values()), now)
        if after != before:
            document = {"schema": SCHEMA, "version": VERSION, "windows": after}
            write_atomic(path, json.dumps(document, indent=1).encode() + b"\n", durable=False)


def _keep_newest(rows: "list[dict[str, object]]", now: "datetime") -> "list[dict[str, object]]":
    """Return as many of the rows as the file holds, the newest readings; one of the future counts as old."""
    if len(rows) <= _MOST_ROWS:
        return rows
    limit = now.isoformat()
    oldest_first = sorted(rows, key=lambda row: (str(row["read_at"]) <= limit, str(row["read_at"])))
    return oldest_first[-_MOST_ROWS:]


def _read(path: str) -> "list[dict[str, object]]":
    rows = read_object(path, limit_bytes=_LIMIT_BYTES).get("windows")
    parsed = [_parse(row) for row in rows[:_MOST_ROWS]] if isinstance(rows, list) else []
    return [row for row in parsed if row is not None]


def _parse(row: object) -> "dict[str, object] | None":
    if not isinstance(row, dict):
        return None
    used, minutes = row.get("used_percent"), row.get("minutes")
    texts = {key: row.get(key) for key in _TEXTS}
    is_percent = isinstance(used, int | float) and not isinstance(used, bool) and 0 <= used < _MOST_PERCENT
    is_length = isinstance(minutes, int) and not isinstance(minutes, bool) and minutes >= 0
    if not is_percent or not is_length or not all(isinstance(text, str) for text in texts.values()):
        return None
    return {**texts, "minutes": minutes, "used_percent": used}


def _is_open(row: "dict[str, object]", now: "datetime") -> bool:
    from agent_relay.domain.moments import parse_moment

    resets_at = parse_moment(row["resets_at"])
    return resets_at is not None and resets_at > now and parse_moment(row["read_at"]) is not None


def _identify(row: "dict[str, object]") -> "tuple[object, object, object]":
    return row["agent"], row["model"], row["name"]


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
