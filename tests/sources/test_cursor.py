"""Every record of a file is read once, whatever happens to the file and whenever the reader is killed."""

import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.sources._file_cursor import CursorState, DocumentCursor, TailCursor
from agent_relay.sources.record_framing import Framed


def append(path: str, *numbers: int) -> None:
    """Write one line a number."""
    with open(path, "ab") as file:
        file.write(b"".join(b'{"n":%d}\n' % number for number in numbers))


def numbers(records: list[Framed]) -> list[object]:
    """The numbers read."""
    return [data["n"] for _, data in records]


def through_json(kept: CursorState) -> dict[str, object]:
    """What a daemon finds again after writing it down."""
    return json.loads(json.dumps(kept))


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    """A look that finds nothing costs a stat."""
    path = str(tmp_path / "f")
    cursor = TailCursor(path, "jsonl")
    assert cursor.look() == []
    append(path, 1, 2)
    assert cursor.look() == [(0, {"n": 1}), (8, {"n": 2})]
    assert cursor.look() == []
    with open(path, "ab") as file:
        file.write(b'{"n":')
    assert cursor.look() == []
    with open(path, "ab") as file:
        file.write(b"3}\n")
    assert numbers(cursor.look()) == [3]


def test_a_file_found_in_place_is_read_from_its_end(tmp_path: Path) -> None:
    """What stood there when the leg began is history."""
    path = str(tmp_path / "f")
    append(path, 1, 2)
    cursor = TailCursor(path, "jsonl", start=16)
    assert cursor.look() == []
    append(path, 3)
    assert cursor.look() == [(16, {"n": 3})]


def test_a_file_cut_short_replaced_or_rewritten_is_read_anew(tmp_path: Path) -> None:
    """Truncation, rotation and a rewrite in place each begin another file under the same name."""
    path = str(tmp_path / "f")
    append(path, 1, 2, 3)
    cursor = TailCursor(path, "jsonl")
    assert numbers(cursor.look()) == [1, 2, 3]
    os.truncate(path, 0)
    append(path, 4)
    assert numbers(cursor.look()) == [4]
    os.rename(path, path + ".1")
    append(path, 5, 6, 7, 8)
    assert numbers(cursor.look()) == [5, 6, 7, 8]
    with open(path, "r+b") as file:
        file.write(b"".join(b'{"n":%d}\n' % number for number in (10, 11, 12, 13, 14)))
    assert numbers(cursor.look()) == [10, 11, 12, 13, 14]
    os.unlink(path)
    assert cursor.look() == []
    append(path, 9)
    assert numbers(cursor.look()) == [9]


def test_a_file_shorter_than_its_start_is_read_anew(tmp_path: Path) -> None:
    """It was cut between the leg's start and the first look."""
    path = str(tmp_path / "f")
    append(path, 1)
    assert numbers(TailCursor(path, "jsonl", start=100).look()) == [1]


def test_a_large_file_is_read_in_bounded_steps(tmp_path: Path) -> None:
    """One session's history must not hold up the others'."""
    path = str(tmp_path / "f")
    with open(path, "wb") as file:
        file.write(b'{"n":1,"x":"%s"}\n' % (b"y" * 1000) * 2000)
    cursor = TailCursor(path, "jsonl")
    counts = [len(cursor.look())]
    while cursor.has_more:
        counts.append(len(cursor.look()))
    assert sum(counts) == 2000
    assert max(counts) < 1100


def test_what_is_no_readable_file_is_left_alone(tmp_path: Path) -> None:
    """A folder, a pipe or a name no file can have blocks nothing and breaks nothing."""
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path), str(tmp_path / "pipe"), "/a\0b", str(tmp_path / "none" / "f")):
        assert TailCursor(name, "jsonl").look() == []
        assert DocumentCursor(name).look() == []


def test_an_open_log_entry_waits_and_is_flushed(tmp_path: Path) -> None:
    """A limit may be the last line for hours."""
    path = str(tmp_path / "f")
    with open(path, "wb") as file:
        file.write(b"level=info a\nlevel=warn b\n  more\n")
    cursor = TailCursor(path, "lines")
    assert cursor.look() == [(0, {"text": "level=info a"})]
    assert cursor.is_waiting
    again = TailCursor(path, "lines", kept=through_json(cursor.keep()))
    assert again.look() == []
    assert again.flush() == cursor.flush() == [(13, {"text": "level=warn b\n  more"})]
    assert not cursor.is_waiting
    assert again.keep() == cursor.keep()
    assert cursor.flush() == []


@given(
    steps=st.lists(
        st.sampled_from(["append", "tear", "look", "kill", "rotate", "truncate", "delete"]), max_size=30
    )
)
def test_a_reader_killed_at_any_moment_goes_on_from_what_it_kept(
    tmp_path_factory: object, steps: list[str]
) -> None:
    """Whatever the file goes through, each record is read once and in order.

    A file that is replaced is looked at before: what was written between the last look and a deletion is
    gone for every reader.
    """
    path = str(tmp_path_factory.mktemp("f") / "f")  # type: ignore[attr-defined]
    cursor = TailCursor(path, "jsonl")
    read: list[object] = []
    count = torn = 0
    for step in [*steps, "look"]:
        if step == "append":
            count += 1
            with open(path, "ab") as file:
                file.write(b"\n" * torn + b'{"n":%d}\n' % count)
            torn = 0
        elif step == "tear":
            with open(path, "ab") as file:
                file.write(b'{"to')
            torn = 1
        else:
            read += numbers(cursor.look())
        if step == "kill":
            cursor = TailCursor(path, "jsonl", kept=through_json(cursor.keep()))
        elif step in ("rotate", "truncate", "delete") and os.path.exists(path):
            torn = 0
            {
                "rotate": lambda: os.replace(path, path + ".1"),
                "truncate": lambda: os.truncate(path, 0),
                "delete": lambda: os.unlink(path),
            }[step]()
    assert read == list(range(1, count + 1))


def test_kept_numbers_that_make_no_sense_mean_a_fresh_start(tmp_path: Path) -> None:
    """State on disk may be torn or forged; the worst it may do is repeat."""
    path = str(tmp_path / "f")
    append(path, 1)
    for kept in (
        {},
        {"offset": "x", "inode": None},
        {"offset": -4},
        {"offset": 1 << 80, "seal_bytes": 1 << 90},
        {"offset": 8, "inode": 1},
        {"offset": 8, "inode": os.stat(path).st_ino, "seal_bytes": 8, "seal": 1},
    ):
        assert numbers(TailCursor(path, "jsonl", kept=kept).look()) == [1]


def test_each_different_whole_document_is_a_record(tmp_path: Path) -> None:
    """State files are rewritten, now and then seen half-written, and often unchanged."""
    path = str(tmp_path / "f")
    cursor = DocumentCursor(path)
    seen = []
    for text in (
        '{"n":1}',
        '{"n":1}',
        '{"n":',
        '{"n":2}',
        "[]",
        '{"n":1}',
        '{"n":"' + "x" * (5 << 20) + '"}',
    ):
        Path(path).write_text(text, encoding="utf-8")
        seen += numbers(cursor.look())
    assert seen == [1, 2, 1]
    assert cursor.flush() == []
    Path(path).write_text('{"n":1}', encoding="utf-8")
    assert DocumentCursor(path, kept=through_json(cursor.keep())).look() == []
    assert numbers(DocumentCursor(path).look()) == [1]
