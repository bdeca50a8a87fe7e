import os
import resource
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, StaleOwnerError, UntrustedDataError
from agent_relay.domain.events.session import LegReady, LegStarting, SessionCreated, SessionRested, Unknown
from agent_relay.store.journal import read_events
from agent_relay.store.session_journals import SessionJournal

AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
FIRST = SessionCreated(session="S", root="/r\udcff", cwd="/r", task="say \u201cno\u201d\nthen go")
SECOND = LegStarting(leg="L1", agent="demo", generation=1)
THIRD = LegReady(leg="L1")


def _write(path: Path) -> bytes:
    with closing(SessionJournal(str(path))) as journal:
        journal.append(FIRST, at=AT, generation=0, durable=True)
        journal.append(SECOND, at=AT, generation=1, durable=True)
        journal.append(THIRD, at=AT, generation=1, durable=False)
    return path.read_bytes()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """The journal is the truth, undecodable file names included."""
    _write(tmp_path / "journal.jsonl")
    events = read_events(str(tmp_path / "journal.jsonl"))
    assert [event.body for event in events] == [FIRST, SECOND, THIRD]
    assert [event.number for event in events] == [1, 2, 3]
    assert [event.generation for event in events] == [0, 1, 1]
    assert events[0].at == AT
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o600


def test_no_journal_has_no_events(tmp_path: Path) -> None:
    """A reader may be faster than the first write."""
    assert read_events(str(tmp_path / "none")) == []


def test_a_write_torn_at_any_byte_gives_the_old_or_the_new_state(tmp_path: Path) -> None:
    """A kill -9 and power cuts choose the byte; nothing may need repair by hand."""
    path = tmp_path / "journal.jsonl"
    whole = _write(path)
    lines = [0, *(position + 1 for position, byte in enumerate(whole) if byte == 10)]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        survived = sum(1 for start in lines[1:] if start <= size)
        assert len(read_events(str(path))) == survived
        assert path.stat().st_size == size
        with closing(SessionJournal(str(path))) as journal:
            assert len(journal.events) == survived
            assert path.stat().st_size == lines[survived]
            assert journal.append(THIRD, at=AT, generation=5, durable=False).number == survived + 1
        assert len(read_events(str(path))) == survived + 1


def test_zeros_after_a_power_cut_are_cut_like_a_torn_line(tmp_path: Path) -> None:
    """File systems may grow a file before its data arrives."""
    path = tmp_path / "journal.jsonl"
    whole = _write(path)
    path.write_bytes(whole + b"\0" * 4096)
    assert len(read_events(str(path))) == 3
    with closing(SessionJournal(str(path))) as journal:
        assert len(journal.events) == 3
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"{not json", "it is not JSON"),
        (b"[1]", "not an event"),
        (b"[" * 100_000, "it is not JSON"),
        (b'{"v":1,"n":1' + b"1" * 5000 + b"}", "it is not JSON"),
        (
            b'{"v":1,"n":2,"at":"2026-11-20T18:20:00","g":1,"event":"leg.ready","data":{"leg":"L"}}',
            "no valid time with a zone",
        ),
        (b'{"v":1,"n":7,"at":"2026-11-20T18:20:00Z","g":1,"event":"leg.ready","data":{"leg":"L"}}', "line 7"),
        (b"\xff\xfe", "it is not JSON"),
    ],
)
def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_changed(
    tmp_path: Path, damage: bytes, why: str
) -> None:
    """Guessing over a hole would invent a history."""
    path = tmp_path / "journal.jsonl"
    lines = _write(path).split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(UntrustedDataError, match=f"line 2 of .*{why}"):
        read_events(str(path))
    with pytest.raises(UntrustedDataError, match=f"line 2 of .*{why}"):
        SessionJournal(str(path))
    assert path.read_bytes() == b"\n".join(lines)


def test_an_event_of_a_newer_version_is_carried(tmp_path: Path) -> None:
    """A user may go back one version."""
    path = tmp_path / "journal.jsonl"
    with closing(SessionJournal(str(path))) as journal:
        journal.append(
            Unknown("moon.landed", {"crater": [1, {"deep": True}]}), at=AT, generation=0, durable=False
        )
    assert read_events(str(path))[0].body == Unknown("moon.landed", {"crater": [1, {"deep": True}]})


def test_an_older_generation_cannot_write(tmp_path: Path) -> None:
    """A late effect of a leg that was replaced must not reach the session."""
    path = tmp_path / "journal.jsonl"
    _write(path)
    with closing(SessionJournal(str(path))) as journal:
        assert journal.generation == 1
        journal.append(THIRD, at=AT, generation=2, durable=True)
        before = path.read_bytes()
        with pytest.raises(StaleOwnerError, match="generation 1 may not write"):
            journal.append(SessionRested(why="late"), at=AT, generation=1, durable=True)
        assert path.read_bytes() == before


def test_two_processes_cannot_own_one_journal(tmp_path: Path) -> None:
    """Two daemons would interleave two histories."""
    path = tmp_path / "journal.jsonl"
    with closing(SessionJournal(str(path))):
        with pytest.raises(StaleOwnerError, match="another process owns"):
            SessionJournal(str(path))
        assert read_events(str(path)) == []
    SessionJournal(str(path)).close()


@pytest.mark.size("test")
def test_the_next_owner_comes_after_a_kill(tmp_path: Path) -> None:
    """A lock file that outlives its process would be a manual repair step."""
    path = tmp_path / "journal.jsonl"
    code = (
        "import sys, os, signal; from datetime import datetime, UTC\n"
        "from agent_relay.store.session_journals import SessionJournal\n"
        "from agent_relay.domain.events.session import LegReady\n"
        "journal = SessionJournal(sys.argv[1])\n"
        "journal.append(LegReady('L'), at=datetime.now(UTC), generation=3, durable=False)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=root, check=False)
    with closing(SessionJournal(str(path))) as journal:
        assert journal.generation == 3
        assert len(journal.events) == 1


def test_a_full_disk_is_one_error_and_the_journal_stays_whole(tmp_path: Path) -> None:
    """Half a line would be taken for damage by nobody, but the next line would be lost with it."""
    path = tmp_path / "journal.jsonl"
    whole = _write(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(SessionJournal(str(path))) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
        try:
            with pytest.raises(RelayError, match=r"cannot write .*File too large"):
                journal.append(SessionRested(why="x" * 500), at=AT, generation=2, durable=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == whole
        assert journal.generation == 1
        assert journal.append(THIRD, at=AT, generation=1, durable=True).number == 4
    assert len(read_events(str(path))) == 4


@pytest.mark.size("test")
def test_a_really_full_disk_is_one_error_and_the_journal_stays_whole(tmp_path: Path) -> None:
    """A file system that takes half a line is not the same as a limit that takes none of it."""
    root = str(Path(__file__).resolve().parents[2])
    script = tmp_path / "fill.py"
    script.write_text(FILL)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=16k none "$1" && shift && exec "$@"'
    run = [sys.executable, str(script), root, str(disk / "journal.jsonl")]
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    usable = subprocess.run(
        [*alone, "sh", "-c", mount, "sh", str(disk), "true"], capture_output=True, check=False
    )
    # Where no file system can be mounted, a limit on the file's size has to do.
    limited = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh"]
    begin = [*alone, "sh", "-c", mount, "sh", str(disk)] if usable.returncode == 0 else limited
    found = subprocess.run([*begin, *run], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("cannot write\n", "")


FILL = """
import sys
sys.path.insert(0, sys.argv[1])
from datetime import datetime, UTC
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import SessionRested
from agent_relay.store.journal import read_events
from agent_relay.store.session_journals import SessionJournal
journal = SessionJournal(sys.argv[2])
written = 0
try:
    while True:
        journal.append(SessionRested(why="x" * 700), at=datetime.now(UTC), generation=1, durable=True)
        written += 1
except RelayError as error:
    print(error.sentence[:12])
assert written > 10
assert len(read_events(sys.argv[2])) == written
assert open(sys.argv[2], "rb").read().endswith(b"\\n")
journal.close()
assert len(SessionJournal(sys.argv[2]).events) == written
"""


def test_a_removed_journal_is_noticed(tmp_path: Path) -> None:
    """Writing on into a deleted file would lose the truth in silence."""
    path = tmp_path / "journal.jsonl"
    with closing(SessionJournal(str(path))) as journal:
        journal.append(FIRST, at=AT, generation=0, durable=False)
        os.unlink(path)
        with pytest.raises(RelayError, match="removed while in use"):
            journal.append(SECOND, at=AT, generation=1, durable=False)


def test_a_closed_journal_refuses(tmp_path: Path) -> None:
    """Its descriptor's number may belong to something else by now."""
    journal = SessionJournal(str(tmp_path / "journal.jsonl"))
    journal.close()
    journal.close()
    with pytest.raises(RelayError, match="it is closed"):
        journal.append(FIRST, at=AT, generation=0, durable=False)


@pytest.mark.parametrize("kind", ["fifo", "symlink"])
def test_only_a_regular_file_is_a_journal(tmp_path: Path, kind: str) -> None:
    """A repository can carry anything in that place."""
    path = tmp_path / "journal.jsonl"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "other")
    with pytest.raises(RelayError):
        SessionJournal(str(path))
