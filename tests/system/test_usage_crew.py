"""Much that is new is read by several processes; whatever becomes of them, the figures are the same."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.system.processes import children
from agent_relay.transcripts.usage.line_spans import ByteBlock
from agent_relay.transcripts.usage.readers import USAGE_READERS, UsageReader
from agent_relay.transcripts.usage.records import AnswerUsage, ReaderState
from agent_relay.usage._native_usage import read_usage
from agent_relay.usage.scan.growing_file import BUFFER_BYTES, Part
from agent_relay.usage.scan.plan import UsageRead
from agent_relay.usage.scan.reader_pool import LEAST_BYTES, Task, start_reader_pool
from tests.house import tree

# The one who forks here is a test runner with threads of its own, the command has none.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
LINES = Transcript(reader="claude-jsonl", folder="{home}/p", pattern="*.jsonl", usage=("{home}/p/*.jsonl",))
FILES = 9
_READ = """
import resource, sys
from pathlib import Path
from tests.system.test_usage_crew import _read
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
read = _read(Path(sys.argv[1]), "index", 3)
print(sum(used.output for native in read.natives for used in native.used), read.problems)
"""


def _fill(home: Path, *, end: str = "") -> None:
    """Nine files that end in `end`, worth several readers just so, and outputs of 1 to 9 tokens twice."""
    padding = "x" * (LEAST_BYTES // FILES)
    for number in range(1, FILES + 1):
        lines = []
        for part, text in enumerate((padding, "")):
            message = {
                "id": f"m{number}.{part}", "model": "m", "content": [{"text": text}],
                "usage": {"output_tokens": number},
            }  # fmt: skip
            row = {"sessionId": f"s{number}", "message": message, "type": "assistant"}
            lines.append(json.dumps(row | {"timestamp": "2026-11-20T10:00:00Z"}, separators=(",", ":")))
        path = home / f"p/{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        # The last line without its end counts, too.
        path.write_text("\n".join(lines) + end)


def _read(home: Path, name: str, hands: int) -> UsageRead:
    return read_usage({"one": LINES}, f"{home}/{name}.db", home=str(home), environ={}, hands=hands)


def _list_children() -> list[int]:
    return [child for child, _ in children(os.getpid())]


def test_several_readers_find_what_one_does(tmp_path: Path) -> None:
    """Also of lines without their end, and what the index keeps is what a second look goes on from."""
    _fill(tmp_path)
    alone, together = _read(tmp_path, "alone", 1), _read(tmp_path, "together", 3)
    assert together == alone
    assert sum(used.output for native in together.natives for used in native.used) == 90
    again = _read(tmp_path, "together", 3)
    assert (again.new_bytes, again.natives) == (0, alone.natives)


def test_files_of_whole_lines_are_read_where_they_lie(tmp_path: Path) -> None:
    """Readers search the kernel's own pages of such files, this process a copy: both find the same."""
    _fill(tmp_path, end="\n")
    alone, together = _read(tmp_path, "alone", 1), _read(tmp_path, "together", 3)
    assert together == alone
    assert sum(used.output for native in together.natives for used in native.used) == 90
    with (tmp_path / "p/1.jsonl").open("a") as file:
        file.write((tmp_path / "p/2.jsonl").read_text().splitlines()[1].replace("m2.1", "new") + "\n")
    again = _read(tmp_path, "together", 3)
    assert sum(used.output for native in again.natives for used in native.used) == 92
    assert again.natives == _read(tmp_path, "anew", 3).natives


def test_a_file_that_loses_bytes_while_it_is_read_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """What was read of it counts until it is looked at again, and the others are read whole."""
    paths = [str(tmp_path / name) for name in ("lost", "kept")]
    for path in paths:
        Path(path).write_text(f"{path[-4:]}\n" * 100_000)

    def read(block: ByteBlock, _memory: ReaderState) -> list[AnswerUsage]:
        if block[:4] == b"lost":
            os.truncate(paths[0], 0)
        return [AnswerUsage(block[:4].decode(), 1, "s", output=len(block))]

    tasks = [Task(UsageReader(read), path, LEAST_BYTES, ReaderState()) for path in paths]
    with start_reader_pool(tasks, 2) as crew:
        parts = [crew.take(path) for path in paths]
    whole = BUFFER_BYTES - BUFFER_BYTES % 5
    outputs = [
        [used.output for used in part.marks if isinstance(used, AnswerUsage)] for part in parts if part
    ]
    assert outputs == [[whole], [whole, 500_000 - whole]]
    assert [part and (part.offset, part.loose) for part in parts] == [(whole, []), (500_000, [])]


def test_a_file_that_cannot_be_read_is_told_of_once(tmp_path: Path) -> None:
    """What a reader could not open, its parent tries, and says what is wrong with it."""
    _fill(tmp_path)
    (tmp_path / "p/5.jsonl").unlink()
    os.mkfifo(tmp_path / "p/5.jsonl")
    (tmp_path / "p/6.jsonl").chmod(0)
    read = _read(tmp_path, "index", 3)
    unreadable = [] if os.geteuid() == 0 else [f"{tmp_path}/p/6.jsonl"]
    assert [problem.split(" cannot")[0] for problem in read.problems] == unreadable
    outputs = sorted({used.output for native in read.natives for used in native.used})
    assert outputs == [one for one in range(1, 10) if one != 5 and (one != 6 or not unreadable)]


def test_readers_that_are_killed_cost_only_time(tmp_path: Path) -> None:
    """Somebody kills them all, or memory runs out: nobody has read these files, and nobody is left."""
    # As much of nothing each as is read, so that they are at it still.
    paths = [str(tmp_path / name) for name in ("one", "two")]
    for path in paths:
        Path(path).touch()
        os.truncate(path, 15 << 30)
    tasks = [Task(USAGE_READERS["claude-jsonl"](), path, 15 << 30, ReaderState()) for path in paths]
    before = _list_children()
    with start_reader_pool(tasks, 2) as crew:
        readers = [child for child in _list_children() if child not in before]
        for child in readers:
            os.kill(child, signal.SIGKILL)
        assert len(readers) == 2
        assert [crew.take(path) for path in paths] == [None, None]
    assert _list_children() == before


def test_what_a_reader_told_before_it_was_killed_counts(tmp_path: Path) -> None:
    """It was whole when it was told; only the files behind it are read again."""
    paths = [str(tmp_path / name) for name in ("small", "one", "two")]
    for path, size in zip(paths, (0, 15 << 30, 15 << 30), strict=True):
        Path(path).touch()
        os.truncate(path, size)
    reader = USAGE_READERS["claude-jsonl"]()
    tasks = [
        Task(reader, path, size, ReaderState()) for path, size in zip(paths, (1, 2, 15 << 30), strict=True)
    ]
    before = _list_children()
    with start_reader_pool(tasks, 2) as crew:
        assert crew.take(paths[0]) == Part(0, b"", ReaderState(), [], [], b"\x90")
        for child in set(_list_children()) - set(before):
            os.kill(child, signal.SIGKILL)
        assert [crew.take(path) for path in paths] == [None, None, None]
    assert _list_children() == before


def test_a_long_file_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    """Who has read a file takes the next, whoever else is at one still."""
    paths = [str(tmp_path / name) for name in ("long", "one", "two", "three")]
    for path, size in zip(paths, (15 << 30, 0, 0, 0), strict=True):
        Path(path).touch()
        os.truncate(path, size)
    reader = USAGE_READERS["claude-jsonl"]()
    tasks = [Task(reader, path, LEAST_BYTES, ReaderState()) for path in paths]
    with start_reader_pool(tasks, 2) as crew:
        assert None not in [crew.take(path) for path in paths[1:]]


def test_nobody_reads_on_when_the_command_breaks_off(tmp_path: Path) -> None:
    """Ctrl-C, or a mistake of ours: readers end with the command that asked for them."""
    _fill(tmp_path)
    reader = USAGE_READERS["claude-jsonl"]()
    tasks = [
        Task(reader, str(path), path.stat().st_size, ReaderState()) for path in (tmp_path / "p").iterdir()
    ]
    before = _list_children()
    with pytest.raises(KeyboardInterrupt), start_reader_pool(tasks, 3):
        raise KeyboardInterrupt
    assert _list_children() == before


def test_little_is_read_by_the_command_itself() -> None:
    """A process is not worth a few megabytes."""
    tasks = [Task(USAGE_READERS["claude-jsonl"](), "/gone", LEAST_BYTES - 1, ReaderState())]
    before = _list_children()
    with start_reader_pool(tasks, 8) as crew:
        assert _list_children() == before
        assert crew.take("/gone") is None


def test_readers_without_room_for_what_they_found_cost_only_time(tmp_path: Path) -> None:
    """Nothing can be written anywhere: everything is read by the command itself."""
    _fill(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tree.CHECKOUT,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "90 []\n"), done.stderr


def test_used_marks_come_back_whole(tmp_path: Path) -> None:
    """Every field of an answer survives the way from one process to the other."""
    message = {
        "id": "m1", "model": "claude-x", "usage": {
            "input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 4},
        },
    }  # fmt: skip
    row = {"sessionId": "s1", "message": message, "type": "assistant", "timestamp": "2026-11-20T10:00:00Z"}
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(row, separators=(",", ":")) + "\n")
    tasks = [Task(USAGE_READERS["claude-jsonl"](), str(path), LEAST_BYTES, ReaderState())]
    with start_reader_pool(tasks, 2) as crew:
        part = crew.take(str(path))
    assert part is not None
    assert part.marks == [AnswerUsage("m1", 1_795_168_800_000, "s1", "claude-x", 1, 3, 9, 2, 0, 4)]
    assert (part.offset, part.loose) == (path.stat().st_size, [])
