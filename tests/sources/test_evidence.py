import gzip
import json
import os
import sqlite3

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.limits import Source
from agent_relay.sources.recording import read_evidence


def write(folder: object, name: str, data: bytes) -> str:
    path = os.path.join(str(folder), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def dump(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_each_line_is_told_by_its_shape(tmp_path: object) -> None:
    """Hooks, status lines and events are dumped with an envelope or bare."""
    path = write(
        tmp_path,
        "all.jsonl",
        dump(
            {"t": 1795170235.25, "stdin": {"hook_event_name": "Stop"}},
            {"t": 1795170235.25, "stdin": {"rate_limits": {}}},
            {"t": 1795170235250, "kind": "event", "data": {"type": "session.idle"}},
            {"at": "2026-11-20T10:00:00Z", "hook_event_name": "Stop"},
            {"context_window": {}, "workspace": {}},
            {"type": "user", "timestamp": "2026-11-20T10:00:00Z"},
        ),
    )
    records = read_evidence(path)
    assert [record.source for record in records] == [
        Source.HOOK,
        Source.STATUS_LINE,
        Source.EVENT,
        Source.HOOK,
        Source.STATUS_LINE,
        Source.TRANSCRIPT,
    ]
    assert records[0].data == {"hook_event_name": "Stop"}
    assert records[2].data == {"type": "session.idle"}
    assert records[4].at is None
    assert [record.at.hour for record in records if record.at] == [10, 10, 10, 10, 10]


def test_a_folder_is_read_whole(tmp_path: object) -> None:
    """Logs, telemetry, dumps and compressed files; other documents hold no records."""
    write(
        tmp_path,
        "b/debug.log",
        b"[2026-11-20T10:00:00Z] [WARN] one\n  more\n[2026-11-20T10:00:01Z] [LOG] two",
    )
    write(
        tmp_path,
        "c/telemetry.log",
        b'{\n "attributes": {"event.timestamp": "2026-11-20T10:00:02Z"}\n}\n{"a": 1}',
    )
    write(tmp_path, "a/rows.jsonl.gz", gzip.compress(dump({"type": "user"})))
    write(tmp_path, "d/broken.jsonl.gz", b"no gzip")
    write(tmp_path, "d/settings.json", b'{"theme": "dark"}')
    write(tmp_path, "d/list.json", b"[1]")
    write(tmp_path, "d/torn.json", b"{")
    write(tmp_path, "d/image.png", b"\x89PNG")
    records = read_evidence(str(tmp_path))
    assert [(record.source, record.data.get("text")) for record in records] == [
        (Source.TRANSCRIPT, None),
        (Source.LOG, "[2026-11-20T10:00:00Z] [WARN] one\n  more"),
        (Source.LOG, "[2026-11-20T10:00:01Z] [LOG] two"),
        (Source.TELEMETRY, None),
        (Source.TELEMETRY, None),
    ]


def test_messages_of_exports_and_dumps_are_rows(tmp_path: object) -> None:
    """One carries objects with times, the other rows with JSON inside."""
    export = {
        "messages": [
            {"info": {"role": "assistant", "time": {"created": 1795171295323, "completed": 1795171295999}}},
            {"info": {"role": "user"}},
            "x",
        ]
    }
    tables = {
        "message": [
            {"data": '{"role": "user"}', "time_updated": 1795171295323},
            {"data": "torn"},
            {"data": 7},
            1,
        ],
        "part": [{"data": "[1]"}],
    }
    exported = read_evidence(write(tmp_path, "export.json", json.dumps(export).encode()))
    dumped = read_evidence(write(tmp_path, "dump.json", json.dumps(tables).encode()))
    assert [record.data["role"] for record in exported] == ["assistant"]
    assert [(record.data, record.at is not None) for record in dumped] == [({"role": "user"}, True)]


def test_a_session_database_is_read_in_place(tmp_path: object) -> None:
    """Other databases, and torn ones, hold nothing."""
    path = os.path.join(str(tmp_path), "it's 100%.db")
    connection = sqlite3.connect(path)
    connection.execute("create table message (data text, time_updated integer)")
    connection.execute("create table part (data text, time_updated integer)")
    connection.execute("insert into message values (?, ?)", ('{"role": "user"}', 1795171295323))
    connection.commit()
    connection.close()
    assert [record.data for record in read_evidence(path)] == [{"role": "user"}]
    assert read_evidence(write(tmp_path, "torn.db", b"SQLite format 3\x00torn")) == ()


def test_nothing_there_is_an_error(tmp_path: object) -> None:
    """A misspelt path must not look like a harmless run."""
    with pytest.raises(WrongUseError, match="nowhere"):
        read_evidence(os.path.join(str(tmp_path), "nowhere"))
