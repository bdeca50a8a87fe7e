import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.sources.native_fork import expect_session, fork_session, remove_fork

OLD, NEW = "0a1b2c3d-0000-4000-8000-000000000001", "9f8e7d6c-0000-4000-8000-000000000002"
AT = datetime(2026, 11, 21, tzinfo=UTC)


def make_run(tmp_path: object) -> str:
    folder = f"{tmp_path}/run"
    os.mkdir(folder, 0o700)
    return folder


def make_session(path: str, data: bytes, native_id: str = OLD) -> NativeSession:
    with open(path, "wb") as file:
        file.write(data)
    return NativeSession(path, native_id, "", "", AT)


def test_a_copy_carries_the_new_id_wherever_the_old_one_stood_and_no_half_line(tmp_path: object) -> None:
    """An agent finds a session by its name and believes the id inside; the last line may still be growing."""
    folder = make_run(tmp_path)
    native = make_session(
        f"{tmp_path}/session-at-0a1b2c3d.jsonl", b'{"id":"%s"}\n{"x":1}\n{"hal' % OLD.encode()
    )
    assert fork_session(native, copy_by="beside", folder=folder, fresh_id=NEW) == NEW
    copy = f"{tmp_path}/session-at-9f8e7d6c.jsonl"
    with open(copy, "rb") as file:
        assert file.read() == b'{"id":"%s"}\n{"x":1}\n' % NEW.encode()
    assert os.stat(copy).st_mode & 0o777 == 0o600
    make_session(f"{tmp_path}/session-later-9f8e7d6c.jsonl", b'{"id":"%s"}\n' % NEW.encode())
    make_session(f"{tmp_path}/session-theirs-9f8e7d6c.jsonl", b'{"id":"another one"}\n')
    remove_fork(folder)
    assert sorted(os.listdir(f"{tmp_path}")) == [
        "run",
        "session-at-0a1b2c3d.jsonl",
        "session-theirs-9f8e7d6c.jsonl",
    ]
    remove_fork(folder)


def test_a_session_an_agent_began_for_us_is_removed_and_no_other(tmp_path: object) -> None:
    """Agents that keep everything keep that, too; the user's list of sessions stays theirs."""
    folder = make_run(tmp_path)
    os.mkdir(f"{tmp_path}/store")
    expect_session(folder, f"{tmp_path}", "store/session-*.jsonl", NEW)
    make_session(f"{tmp_path}/store/session-at-9f8e7d6c.jsonl", b'{"id":"%s"}\n' % NEW.encode())
    make_session(f"{tmp_path}/store/session-of-9f8e7d6c.jsonl", b'{"id":"another one"}\n')
    make_session(f"{tmp_path}/store/session-at-0a1b2c3d.jsonl", b'{"id":"%s"}\n' % NEW.encode())
    remove_fork(folder)
    assert sorted(os.listdir(f"{tmp_path}/store")) == [
        "session-at-0a1b2c3d.jsonl",
        "session-of-9f8e7d6c.jsonl",
    ]


def test_a_file_that_is_not_named_after_its_session_cannot_be_copied(tmp_path: object) -> None:
    """The copy would have the original's name."""
    native = make_session(f"{tmp_path}/latest.jsonl", b"{}\n")
    with pytest.raises(RelayError, match=r"latest\.jsonl is not named after its id"):
        fork_session(native, copy_by="beside", folder=make_run(tmp_path), fresh_id=NEW)


def test_a_copy_never_replaces_what_stands_there(tmp_path: object) -> None:
    """Whoever made that file, it is not ours to write to."""
    native = make_session(f"{tmp_path}/{OLD}.jsonl", b"{}\n")
    make_session(f"{tmp_path}/{NEW}.jsonl", b"theirs\n")
    with pytest.raises(RelayError, match="is in the way"):
        fork_session(native, copy_by="beside", folder=make_run(tmp_path), fresh_id=NEW)
    with open(f"{tmp_path}/{NEW}.jsonl", "rb") as file:
        assert file.read() == b"theirs\n"


def test_a_database_is_copied_with_what_only_its_log_holds_yet(tmp_path: object) -> None:
    """The agent is at work in it: its last rows are not in the main file."""
    folder, path = make_run(tmp_path), f"{tmp_path}/agent's #1.db"
    with closing(sqlite3.connect(path)) as living:
        living.execute("pragma journal_mode=wal")
        living.execute("create table message(text)")
        living.execute("insert into message values ('the last one')")
        living.commit()
        with open(path, "rb") as file:
            before = file.read()
        fork = fork_session(
            NativeSession(path, "ses_1", "", "", AT), copy_by="database", folder=folder, fresh_id=NEW
        )
        assert fork == "ses_1"
        with open(path, "rb") as file:
            assert file.read() == before
    with closing(sqlite3.connect(f"{folder}/native.db")) as copied:
        assert copied.execute("select text from message").fetchall() == [("the last one",)]
    assert os.stat(f"{folder}/native.db").st_mode & 0o777 == 0o600


def test_what_is_no_database_is_refused(tmp_path: object) -> None:
    """The user reads which file it was."""
    native = make_session(f"{tmp_path}/x.db", b"no database at all, but long enough to be read as one" * 40)
    with pytest.raises(RelayError, match=r"x\.db cannot be copied: file is not a database"):
        fork_session(native, copy_by="database", folder=make_run(tmp_path), fresh_id=NEW)


def test_an_agent_that_forks_by_itself_needs_no_copy(tmp_path: object) -> None:
    """Its own session's id is what it is given."""
    folder = make_run(tmp_path)
    native = NativeSession("/nowhere", OLD, "", "", AT)
    assert fork_session(native, copy_by="", folder=folder, fresh_id=NEW) == OLD
    assert os.listdir(folder) == []
