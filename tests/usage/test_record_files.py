"""The new part of a growing file is read in blocks, whatever happens to the file meanwhile."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.transcripts.lenient_json import LINE_BYTES
from agent_relay.transcripts.usage_readers import USAGE_READERS, UsageReader
from agent_relay.transcripts.usage_records import AnswerUsage, ReaderState, UsageRecord
from agent_relay.usage.record_files import BLOCK_BYTES, read_part
from tests.usage.records import answer, count, read, write

FILES = 9


def _fill(home: Path, *, end: bytes = b"") -> None:
    """Nine files of more than a block that end in `end`, and outputs of 1 to 9 tokens twice."""
    for number in range(1, FILES + 1):
        lines = [
            answer(f"m{number}.{part}", number, text=text, sessionId=f"s{number}").rstrip()
            for part, text in enumerate(("x" * 3 * BLOCK_BYTES, ""))
        ]
        write(home / f"p/{number}.jsonl", b"\n".join(lines), end)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_longer_than_a_block_are_read_and_so_is_a_last_one_without_its_end(
    tmp_path: Path, end: bytes
) -> None:
    """What the index keeps is what a second look goes on from."""
    _fill(tmp_path, end=end)
    first = read(tmp_path, index="index")
    assert count(first) == 90
    assert read(tmp_path, index="index").natives == first.natives
    with (tmp_path / "p/1.jsonl").open("ab") as file:
        file.write((b"" if end else b"\n") + answer("new", 2, sessionId="s2"))
    again = read(tmp_path, index="index")
    assert count(again) == 92
    assert again.natives == read(tmp_path, index="anew").natives


@pytest.mark.parametrize("size", [LINE_BYTES, 3 * LINE_BYTES])
def test_a_line_too_long_to_be_a_record_is_left_out_and_the_next_is_read(tmp_path: Path, size: int) -> None:
    """A pasted film is no record; where it ends, the next line begins."""
    path = tmp_path / "one"
    answer = b'{"type":"assistant","sessionId":"s","message":{"id":"m","usage":{"output_tokens":5}}}\n'
    path.write_bytes(answer + b'{"x":"' + b"x" * size + b'"}\n' + answer.replace(b'"m"', b'"n"'))
    part = read_part(USAGE_READERS["claude-jsonl"](), str(path), 0, b"", ReaderState())
    assert part is not None
    assert [mark.key for mark in part.marks if isinstance(mark, AnswerUsage)] == ["m", "n"]
    assert (part.offset, part.loose, part.memory.skipped) == (path.stat().st_size, [], 0)


def test_a_file_that_loses_bytes_while_it_is_read_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """What was read of it counts until it is looked at again."""
    path = str(tmp_path / "lost")
    Path(path).write_text("lost\n" * 100_000)

    def tell(block: bytes, _memory: ReaderState) -> Iterator[UsageRecord]:
        os.truncate(path, 0)
        yield AnswerUsage("lost", 1, "s", output=len(block))

    part = read_part(UsageReader(tell), path, 0, b"", ReaderState())
    whole = BLOCK_BYTES - BLOCK_BYTES % 5
    assert part is not None
    assert [mark.output for mark in part.marks if isinstance(mark, AnswerUsage)] == [whole]
    assert part.offset == whole


def test_a_file_that_cannot_be_read_is_told_of_once(tmp_path: Path) -> None:
    """The others are read, and what is wrong with it is said."""
    _fill(tmp_path)
    (tmp_path / "p/5.jsonl").unlink()
    os.mkfifo(tmp_path / "p/5.jsonl")
    (tmp_path / "p/6.jsonl").chmod(0)
    found = read(tmp_path, index="index")
    unreadable = [] if os.geteuid() == 0 else [f"{tmp_path}/p/6.jsonl"]
    assert [problem.split(" cannot")[0] for problem in found.problems] == unreadable
    outputs = sorted({used.output for native in found.natives for used in native.used})
    assert outputs == [one for one in range(1, 10) if one != 5 and (one != 6 or not unreadable)]


def test_every_count_of_an_answer_is_read(tmp_path: Path) -> None:
    """New, cached and written input, what of that is for an hour, and output."""
    message = {
        "id": "m1", "model": "claude-x", "usage": {
            "input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 4},
        },
    }  # fmt: skip
    row = {"sessionId": "s1", "message": message, "type": "assistant", "timestamp": "2026-11-20T10:00:00Z"}
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(row, separators=(",", ":")) + "\n")
    part = read_part(USAGE_READERS["claude-jsonl"](), str(path), 0, b"", ReaderState())
    assert part is not None
    assert part.marks == [AnswerUsage("m1", 1_795_168_800_000, "s1", "claude-x", 1, 3, 9, 2, 0, 4)]
    assert (part.offset, part.loose) == (path.stat().st_size, [])
