import os
import stat
import threading
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import read_bounded, write_atomic, write_output
from agent_relay.system.disk.locks import append_line


def test_a_written_file_is_whole_and_private(tmp_path: Path) -> None:
    """The mode does not depend on the user's umask being kind."""
    path = tmp_path / "file"
    write_atomic(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_during_rewriting_sees_old_or_new_never_less(tmp_path: Path) -> None:
    """No reader ever sees part of a packet or a ledger."""
    path = str(tmp_path / "file")
    write_atomic(path, b"a" * 100_000, durable=False)
    done = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(read_bounded(path, limit_bytes=200_000))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        write_atomic(path, (b"a", b"b")[number % 2] * 100_000, durable=False)
    done.set()
    reader.join()
    assert seen <= {b"a" * 100_000, b"b" * 100_000}


def test_a_symlink_in_the_place_is_replaced_not_followed(tmp_path: Path) -> None:
    """A repository could carry a link to a file of the user's."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "file").symlink_to(victim)
    write_atomic(str(tmp_path / "file"), b"new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_failed_write_says_where_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A folder in the place makes the rename fail after the temporary file was written."""
    (tmp_path / "file").mkdir()
    with pytest.raises(RelayError, match=r"cannot write .*/file: Is a directory"):
        write_atomic(str(tmp_path / "file"), b"new")
    assert os.listdir(tmp_path) == ["file"]


def test_appended_lines_of_many_writers_stay_whole(tmp_path: Path) -> None:
    """Hooks of one agent may run at once."""
    path = str(tmp_path / "lines")
    writers = [
        threading.Thread(target=lambda mark=mark: [append_line(path, mark * 5000) for _ in range(20)])
        for mark in (b"a", b"b", b"c", b"d")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = Path(path).read_bytes().split(b"\n")
    assert len(lines) == 81
    assert {(line[:1], len(line)) for line in lines[:-1]} == {
        (mark, 5000) for mark in (b"a", b"b", b"c", b"d")
    }


def test_a_torn_line_spoils_only_itself(tmp_path: Path) -> None:
    """A writer that met a full disk must not take the next one's line with it."""
    path = tmp_path / "lines"
    path.write_bytes(b"whole\nto")
    append_line(str(path), b"next")
    assert path.read_bytes() == b"whole\nto\nnext\n"


def test_a_fifo_is_not_read(tmp_path: Path) -> None:
    """It would make the reader wait for ever."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UntrustedDataError, match="not a regular file"):
        read_bounded(str(tmp_path / "fifo"), limit_bytes=10)


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    """Nobody's file may decide how much memory we take."""
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(str(path), limit_bytes=5) == b"12345"
    with pytest.raises(UntrustedDataError, match="larger than 4 bytes"):
        read_bounded(str(path), limit_bytes=4)


def test_an_output_that_is_a_link_is_written_where_it_leads_and_keeps_its_mode(tmp_path: Path) -> None:
    """A link to a shared folder was replaced by a file that nobody else saw."""
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    kept.chmod(0o664)
    (tmp_path / "link").symlink_to("kept.json")
    write_output(str(tmp_path / "link"), b"new")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("new", 0o664)
    assert os.readlink(tmp_path / "link") == "kept.json"
    write_output(str(tmp_path / "fresh"), b"new")
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o600


def test_an_output_that_is_a_pipe_or_a_device_stays_one(tmp_path: Path) -> None:
    """As root, `--output /dev/stdout` put a file in the place of the device for every program."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RelayError, match=r"cannot write .*/pipe: No such device or address"):
        write_output(str(tmp_path / "pipe"), b"nobody reads")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output(str(tmp_path / "pipe"), b"somebody does")
    assert os.read(reader, 100) == b"somebody does"
    os.close(reader)
    (tmp_path / "folder").mkdir()
    with pytest.raises(RelayError, match=r"cannot write .*/folder: Is a directory"):
        write_output(str(tmp_path / "folder"), b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
