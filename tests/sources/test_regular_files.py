"""What stands where a file is expected may be anything: whoever reads it must come back."""

import gzip
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import ConfigurationError, RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.facts import NativeSession
from agent_relay.sources._file_cursor import DocumentCursor, TailCursor
from agent_relay.sources.native_fork import fork_session
from agent_relay.sources.native_sessions import find_native_sessions
from agent_relay.sources.recording import read_recording
from agent_relay.sources.transcript_files import iterate_lines, list_rows, read_small
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.system.config_file import read_user_config, write_model, write_order
from agent_relay.system.disk.files import open_regular, open_stream, read_bounded, read_end, unzip
from agent_relay.system.disk.locks import append_line
from agent_relay.transcripts._opencode import TABLES
from agent_relay.transcripts.usage_readers import USAGE_READERS
from agent_relay.transcripts.usage_records import ReaderState
from agent_relay.usage.record_files import read_part

HUGE = 1 << 40
pytestmark = pytest.mark.timeout(60)


def make_fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


def make_device(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def make_sparse(path: Path) -> None:
    """A file of a terabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(HUGE)


def make_terminal(path: Path) -> None:
    """A link to the terminal of whoever reads."""
    path.symlink_to("/dev/tty")


KINDS = [make_fifo, make_loop, make_device, make_sparse, make_terminal, os.mkdir]
Read = Callable[[str], object]
READERS: dict[str, Read] = {
    "a small file": lambda path: read_bounded(path, limit_bytes=1 << 20),
    "a transcript": lambda path: list(iterate_lines(path)),
    "facts of lines": lambda path: read_facts("claude-jsonl", path),
    "facts of a database": lambda path: read_facts("opencode-db", path),
    "rows": lambda path: list_rows(path, TABLES),
    "usage": lambda path: read_part(USAGE_READERS["claude-jsonl"](), path, 0, b"", ReaderState()),
    "a recording": read_recording,
}


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_whatever_stands_there_a_reader_comes_back_with_a_sentence(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    """A handoff that waits for a FIFO has stopped its agent and starts nobody."""
    path = tmp_path / "one.jsonl"
    make(path)
    with pytest.raises(RelayError):
        READERS[name](str(path))


@pytest.mark.parametrize("make", KINDS)
def test_a_source_of_evidence_reads_nothing_else_than_files(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Sources are looked at by the one loop that all sessions share."""
    path = tmp_path / "one.jsonl"
    make(path)
    tail = TailCursor(str(path), "jsonl")
    assert (tail.look(), tail.has_more) == ([], False)
    assert DocumentCursor(str(path)).look() == []
    assert read_small(str(path), limit_bytes=1 << 20) is None


@pytest.mark.parametrize("make", [make_fifo, make_loop, make_device, make_sparse, os.mkdir])
def test_native_sessions_are_listed_beside_what_is_no_file(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """One name in the agent's folder must not keep anybody from the list."""
    spec = Transcript(reader="claude-jsonl", folder="{home}", pattern="*.jsonl")
    make(tmp_path / "bad.jsonl")
    row = '{"type":"user","uuid":"u","sessionId":"s","cwd":"/p","message":{"role":"user","content":"hi"}}\n'
    (tmp_path / "good.jsonl").write_text(row)
    found = find_native_sessions(spec, cwd="/p", home=str(tmp_path), environ={})
    assert [one.native_id for one in found.sessions] == ["s"]


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_a_pipe_beside_a_database_is_not_waited_for(tmp_path: Path, ending: str) -> None:
    """SQLite opens what stands beside a database by itself, and waits."""
    path = tmp_path / "opencode.db"
    if ending:
        sqlite3.connect(path).executescript("CREATE TABLE session (id TEXT);")
    os.mkfifo(f"{path}{ending}")
    with pytest.raises(UntrustedDataError, match="is not a regular file"):
        list_rows(str(path), TABLES)


@pytest.mark.size("every")
def test_a_view_without_an_end_is_given_up(tmp_path: Path) -> None:
    """A table may be a program."""
    path = tmp_path / "opencode.db"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    columns = "SELECT i AS id, NULL AS parent_id, i AS time_updated"
    sqlite3.connect(path).executescript(f"CREATE VIEW session AS {columns} FROM ({endless});")
    with pytest.raises(UntrustedDataError, match="interrupted"):
        list_rows(str(path), TABLES)


@pytest.mark.parametrize("make", [make_fifo, make_device, make_loop, make_sparse, os.mkdir])
def test_a_configuration_that_is_no_file_is_told(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """`order` and `/model` write where they read first."""
    make(tmp_path / "config.toml")
    for act in (
        lambda: read_user_config(str(tmp_path)),
        lambda: write_order(str(tmp_path), ("claude",)),
        lambda: write_model(str(tmp_path), "claude", "large"),
    ):
        with pytest.raises(ConfigurationError):
            act()


def test_a_configuration_too_deep_to_read_is_told(tmp_path: Path) -> None:
    """Nobody writes such a file by hand, and a crash report is no sentence."""
    (tmp_path / "config.toml").write_text(f"order = {'[' * 100_000}{']' * 100_000}\n")
    for act in (
        lambda: read_user_config(str(tmp_path)),
        lambda: write_order(str(tmp_path), ("claude",)),
        lambda: write_model(str(tmp_path), "claude", "large"),
    ):
        with pytest.raises(ConfigurationError, match="nested too deeply"):
            act()


def test_nothing_is_appended_to_a_pipe(tmp_path: Path) -> None:
    """Nobody reads it: once it is full, whoever writes waits."""
    os.mkfifo(tmp_path / "history")
    with pytest.raises(UntrustedDataError):
        append_line(str(tmp_path / "history"), b"x")
    assert stat.S_ISFIFO(os.stat(tmp_path / "history").st_mode)


def test_a_descriptor_that_is_given_out_blocks_nobody_and_stays_here(tmp_path: Path) -> None:
    """What is opened must not leak into an agent, nor become a terminal's owner."""
    (tmp_path / "one").write_bytes(b"0123456789")
    handle = open_regular(tmp_path.as_posix() + "/one")
    assert not os.get_inheritable(handle)
    os.close(handle)
    assert read_end(f"{tmp_path}/one", limit_bytes=4) == b"6789"
    (tmp_path / "link").symlink_to("one")
    with open_stream(f"{tmp_path}/link") as file:
        assert file.read() == b"0123456789"
    with pytest.raises((OSError, UntrustedDataError)):
        open_regular(f"{tmp_path}/link", follow=False)


def test_a_packed_recording_that_unpacks_without_an_end_is_cut(tmp_path: Path) -> None:
    """A megabyte may say a gigabyte."""
    assert unzip(gzip.compress(b"x" * 10_000), limit_bytes=100) == b"x" * 100
    assert unzip(gzip.compress(b"hello"), limit_bytes=100) == b"hello"
    (tmp_path / "half.raw.gz").write_bytes(gzip.compress(b"hello")[:-9])
    with pytest.raises(WrongUseError, match="no whole gzip file"):
        read_recording(f"{tmp_path}/half.raw.gz")


@pytest.mark.parametrize("copy_by", ["beside", "database"])
def test_a_record_that_is_too_large_is_not_copied_for_a_document(tmp_path: Path, copy_by: str) -> None:
    """The copy goes into memory: a database of all an agent ever did would fill it."""
    path = tmp_path / "native-12345678.jsonl"
    with path.open("wb") as file:
        file.truncate(HUGE)
    (tmp_path / "run").mkdir()
    native = NativeSession(str(path), "12345678", "/p", "", None)  # type: ignore[arg-type]
    with pytest.raises(RelayError, match="cannot be copied for a handoff document"):
        fork_session(native, copy_by=copy_by, folder=str(tmp_path / "run"), fresh_id="87654321")  # type: ignore[arg-type]
    assert os.listdir(tmp_path / "run") in ([], ["leftover"])
    assert sorted(os.listdir(tmp_path)) == ["native-12345678.jsonl", "run"]
