"""What was read of a leg's own file is given back to the disk; nobody else's file is touched."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.sources._file_cursor import KEPT_BYTES, TailCursor, free_range
from agent_relay.sources._source_reader import SourceReader
from agent_relay.sources.record_framing import Framing

MEBIBYTE = 1 << 20


def render(number: int, framing: Framing) -> bytes:
    """A record of about 2 KB, with an object inside that must never be taken for one."""
    data = {"n": number, "inner": {"n": -1}, "filler": "x" * 2000}
    match framing:
        case "json-stream":
            return json.dumps(data, indent=2).encode() + b"\n"
        case "lines":
            return b"[2026-11-20T10:30:57.037Z] [WARN] %d\n  %s\n" % (number, b"x" * 2000)
        case _:
            return json.dumps(data).encode() + b"\n"


def append(path: str, first: int, count: int, framing: Framing) -> None:
    """Write `count` records."""
    with open(path, "ab") as file:
        file.write(b"".join(render(number, framing) for number in range(first, first + count)))


def read_all(cursor: TailCursor) -> list[int]:
    """The numbers of all records there are now."""
    found = cursor.look()
    while cursor.has_more:
        found += cursor.look()
    return [data["n"] if "n" in data else int(str(data["text"]).split()[2]) for _, data in found]  # type: ignore[misc]  # numbers by construction


def blocks_bytes(path: str) -> int:
    """What the file takes on its disk."""
    return os.stat(path).st_blocks * 512


@pytest.mark.size("test")
@pytest.mark.parametrize("framing", ["json-stream", "jsonl", "lines"])
def test_what_was_read_takes_no_room_and_reading_goes_on(tmp_path: Path, framing: Framing) -> None:
    """An idle agent's telemetry grows by 13 MB an hour in a folder that often is memory."""
    path = str(tmp_path / "f")
    cursor = TailCursor(path, framing, frees=True)
    open_entry = int(framing == "lines")  # the last entry's end shows only when the next begins
    append(path, 0, 4000, framing)
    assert read_all(cursor) == list(range(4000 - open_entry))
    size = os.stat(path).st_size
    assert size > 7 * MEBIBYTE
    assert blocks_bytes(path) < MEBIBYTE + 2 * KEPT_BYTES + 65536
    append(path, 4000, 4000, framing)
    assert read_all(cursor) == list(range(4000 - open_entry, 8000 - open_entry))
    assert os.stat(path).st_size > 2 * size - 65536
    assert blocks_bytes(path) < MEBIBYTE + 2 * KEPT_BYTES + 65536


@pytest.mark.parametrize("framing", ["json-stream", "jsonl", "lines"])
def test_the_next_daemon_reads_what_is_left_from_a_whole_record_on(tmp_path: Path, framing: Framing) -> None:
    """Half a record could mean anything; its inner objects are no evidence."""
    path = str(tmp_path / "f")
    append(path, 0, 3000, framing)
    before = TailCursor(path, framing, frees=True)
    read_all(before)
    left = read_all(TailCursor(path, framing, frees=True))
    assert left == list(range(left[0], left[-1] + 1))
    assert 1 < len(left) < 700
    assert left[0] > 2000
    again = TailCursor(path, framing, kept=json.loads(json.dumps(before.keep())), frees=True)
    append(path, 3000, 2, framing)
    assert read_all(again)[-1] >= 3000


def test_a_file_outside_the_legs_folder_keeps_every_byte(tmp_path: Path) -> None:
    """Transcripts and logs in the agent's home are the user's."""
    for folder in ("leg", "home"):
        os.makedirs(tmp_path / folder)
        append(str(tmp_path / folder / "f"), 0, 2000, "jsonl")
    values = {"leg_folder": str(tmp_path / "leg"), "home": str(tmp_path / "home")}
    place = LegPlace("leg", datetime(2026, 11, 20, tzinfo=UTC), values)
    for folder, path in (("leg", "{leg_folder}/f"), ("home", "{home}/f")):
        before = blocks_bytes(str(tmp_path / folder / "f"))
        reader = SourceReader(SourceSpec(role="log", framing="jsonl", path=path), place, state={})
        reader.resolve()
        found = len(reader.look())
        while reader.has_more:
            found += len(reader.look())
        assert found == 2000
        assert (blocks_bytes(str(tmp_path / folder / "f")) == before) is (folder == "home")


def test_only_our_own_file_of_one_name_is_freed(tmp_path: Path) -> None:
    """A link in the leg's folder must not cost somebody the file it leads to."""
    path = str(tmp_path / "f")
    append(path, 0, 1000, "jsonl")
    before, inode = blocks_bytes(path), os.stat(path).st_ino
    os.symlink(path, tmp_path / "symbolic")
    assert not free_range(str(tmp_path / "symbolic"), inode, start=0, end=MEBIBYTE)
    assert not free_range(path, inode + 1, start=0, end=MEBIBYTE)
    assert not free_range(str(tmp_path), os.stat(tmp_path).st_ino, start=0, end=MEBIBYTE)
    assert not free_range(str(tmp_path / "gone"), inode, start=0, end=MEBIBYTE)
    os.link(path, tmp_path / "hard")
    assert not free_range(path, inode, start=0, end=MEBIBYTE)
    assert blocks_bytes(path) == before
    os.unlink(tmp_path / "hard")
    assert free_range(path, inode, start=0, end=MEBIBYTE)
    assert blocks_bytes(path) < before


def test_a_file_system_that_cannot_free_is_left_alone() -> None:
    """Reading must go on wherever the runtime folder is."""
    path = "/proc/self/comm"
    assert not free_range(path, os.stat(path).st_ino, start=0, end=1)


def test_a_file_that_is_replaced_is_freed_anew(tmp_path: Path) -> None:
    """Offsets of the old file mean nothing in the new one."""
    path = str(tmp_path / "f")
    cursor = TailCursor(path, "jsonl", frees=True)
    append(path, 0, 2000, "jsonl")
    assert read_all(cursor)[-1] == 1999
    append(str(tmp_path / "fresh"), 5000, 1200, "jsonl")
    os.replace(tmp_path / "fresh", path)
    assert read_all(cursor) == list(range(5000, 6200))
    assert blocks_bytes(path) < MEBIBYTE + 2 * KEPT_BYTES + 65536
