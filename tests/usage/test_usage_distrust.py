"""Usage read by way of an index that is damaged, or files that only look unchanged: figures stay right."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from agent_relay.usage.index import open_index
from agent_relay.usage.record_files import look_at
from tests.support.legs import wait_until
from tests.usage.records import TABLES, answer, count, read, write

LONG_AGO_NS = 10**18
A_PAGE = 4096
SWAPPED = """DELETE FROM files WHERE CAST(path AS TEXT) LIKE '%s2.jsonl';
UPDATE files SET path = CAST(replace(CAST(path AS TEXT), 's1', 's2') AS BLOB)"""


def test_contents_exchanged_behind_the_same_size_and_date_are_seen(tmp_path: Path) -> None:
    """Whoever restores or mirrors files sets their dates back: only the inode's own moment tells."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert count(read(tmp_path)) == 5
    with path.open("r+b") as file:
        file.write(answer("m1", 9))
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert count(read(tmp_path)) == 9


@pytest.mark.parametrize("moment", [2**63 + 10**18, -(2**62)], ids=["2381", "1823"])
def test_a_file_dated_beyond_an_integer_is_read_as_any_other(tmp_path: Path, moment: int) -> None:
    """A broken clock dates files anyhow; the figures of all others must not be lost to it."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    os.utime(path, ns=(moment, moment))
    assert [count(read(tmp_path)) for _ in range(2)] == [5, 5]


def test_a_name_that_is_not_text_is_a_name(tmp_path: Path) -> None:
    """File names are bytes, and one stray one would end every command that counts."""
    folder = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5)).parent
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")).write_bytes(answer("m2", 7))
    first, second = read(tmp_path), read(tmp_path)
    assert (count(first), count(second), second.new_bytes) == (12, 12, 0)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM marks",
        "DELETE FROM marks WHERE part = 2",
        "UPDATE marks SET data = x'90'",
        "UPDATE marks SET data = NULL",
        "UPDATE marks SET data = 'text'",
        "UPDATE marks SET part = part + 7",
        "UPDATE marks SET data = (SELECT data FROM marks WHERE part = 1)",
        "UPDATE files SET entry = NULL",
        "UPDATE files SET entry = 7",
        "UPDATE files SET entry = x'00'",
        "UPDATE files SET path = CAST(path AS TEXT)",
        SWAPPED,
    ],
)
def test_an_index_that_says_something_else_than_was_written_is_not_believed(
    tmp_path: Path, harm: str
) -> None:
    """Fewer tokens than were used look like any other figure: damage has to be noticed, not shown."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    assert count(read(tmp_path)) == 5
    with path.open("ab") as file:
        file.write(answer("m2", 7))
    write(tmp_path / "p/a/s2.jsonl", answer("m3", 11))
    assert count(read(tmp_path)) == 23
    database = sqlite3.connect(tmp_path / "cache/usage.db")
    database.executescript(harm)
    database.close()
    assert [count(read(tmp_path)) for _ in range(2)] == [23, 23]


def test_an_index_with_any_page_of_it_overwritten_never_changes_a_figure(tmp_path: Path) -> None:
    """A torn disk may keep the structure and lose the contents; a page of blobs has nothing else in it."""
    write(tmp_path / "p/a/s1.jsonl", *(answer(f"m{number}", 1) for number in range(150)))
    assert count(read(tmp_path)) == 150
    index = tmp_path / "cache/usage.db"
    whole = index.read_bytes()
    found = set()
    for page in range(len(whole) // A_PAGE):
        for junk in (b"\x00", b"\x01", b"\xc0"):
            index.write_bytes(whole[: page * A_PAGE] + junk * A_PAGE + whole[(page + 1) * A_PAGE :])
            found.add(count(read(tmp_path)))
    assert found == {150}


@pytest.mark.size("test")
def test_rows_changed_within_a_tick_of_the_clock_are_seen(tmp_path: Path) -> None:
    """A database is rewritten in place, several times between two ticks, and looks the same each time."""
    path = tmp_path / "o/opencode.db"
    path.parent.mkdir()
    database = sqlite3.connect(path)
    database.executescript(
        """CREATE TABLE session(id, parent_id, directory);
        CREATE TABLE message(id, session_id, data);
        INSERT INTO session VALUES('s', NULL, '/w');"""
    )
    times = {"created": 1_795_171_000_000, "completed": 1_795_171_000_005}
    said = json.dumps({"role": "assistant", "time": times, "tokens": {"output": 5}, "modelID": "m"})
    database.execute("INSERT INTO message VALUES('a', 's', ?)", (said,))
    database.commit()
    found = look_at(str(path))
    assert count(read(tmp_path, one=TABLES)) == 5
    with open_index(f"{tmp_path}/cache/usage.db") as index:
        entry = index.get(str(path), "one opencode-db")
    assert found is not None
    assert entry is not None
    assert (entry.found.size, entry.found.changed) == (found.size, ())
    wait_until(
        lambda: read(tmp_path, one=TABLES).new_bytes == 0, "a database that has settled is not read again"
    )
    database.close()


def test_reports_of_an_earlier_version_are_removed(tmp_path: Path) -> None:
    """Nobody reads them any more, and they grew to many megabytes; what else stands there is left."""
    report = write(tmp_path / "cache/reports/0a.json", b"{}")
    other = write(tmp_path / "cache/reports/notes.txt", b"mine")
    read(tmp_path)
    assert (report.exists(), other.exists()) == (False, True)
    other.unlink()
    read(tmp_path)
    assert not report.parent.exists()
