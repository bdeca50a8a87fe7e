"""Sessions an agent keeps in a database, found and read without touching it."""

import json
import os
import sqlite3
import stat

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.sources.native_sessions import FoundSessions, find_native_sessions
from agent_relay.sources.transcript_reader import read_facts

_OPENCODE = Transcript(
    reader="opencode-db", folder="{XDG_DATA_HOME:-{home}/.local/share}/opencode", pattern="opencode*.db"
)


def _build_database(path: str, *, cwd: str = "/p") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    database = sqlite3.connect(path)
    database.executescript(
        """PRAGMA journal_mode=WAL;
        CREATE TABLE session(id, parent_id, directory, title, time_created, time_updated, revert);
        CREATE TABLE message(id, session_id, time_created, data);
        CREATE TABLE part(id, message_id, session_id, data);
        CREATE TABLE todo(session_id, content, status, position);"""
    )
    for name, parent, at in (("ses_old", None, 1_795_171_000_000), ("ses_new", None, 1_795_172_000_000),
                             ("ses_sub", "ses_new", 1_795_173_000_000)):  # fmt: skip
        row = (name, parent, cwd, f"title of {name}", at, at, None)
        database.execute("INSERT INTO session VALUES(?,?,?,?,?,?,?)", row)
        database.execute("INSERT INTO message VALUES(?,?,?,?)", (f"m_{name}", name, at, '{"role":"user"}'))
        part = json.dumps({"type": "text", "text": f"prompt of {name}"})
        database.execute("INSERT INTO part VALUES(?,?,?,?)", (f"p_{name}", f"m_{name}", name, part))
    database.execute("INSERT INTO todo VALUES('ses_new', 'step', 'pending', 0)")
    database.commit()
    database.close()


def test_sessions_in_a_database_are_found_and_read(tmp_path: object) -> None:
    """One file, many sessions: the row tells which; a subagent's is none."""
    home = str(tmp_path)
    path = f"{home}/.local/share/opencode/opencode.db"
    _build_database(path)
    sessions = find_native_sessions(_OPENCODE, cwd="/p", home=home, environ={}).sessions
    assert [(one.native_id, one.title) for one in sessions] == [
        ("ses_new", "title of ses_new"),
        ("ses_old", "title of ses_old"),
    ]
    assert find_native_sessions(_OPENCODE, cwd="/q", home=home, environ={}) == FoundSessions((), ())
    facts = read_facts("opencode-db", path, native_id="ses_old")
    assert [one.text for one in facts.conversation] == ["prompt of ses_old"]
    newest = read_facts("opencode-db", path)
    assert (newest.native_id, newest.plan[0].text) == ("ses_new", "step")


def test_a_database_being_written_is_read_as_it_is(tmp_path: object) -> None:
    """The agent still runs: what it committed counts, and nothing of it is touched."""
    path = f"{tmp_path}/opencode.db"
    _build_database(path)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("UPDATE session SET title='changed' WHERE id='ses_new'")
    writer.commit()
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM session")
    assert read_facts("opencode-db", path).native_id == "ses_new"
    writer.rollback()
    writer.close()


def test_broken_databases_and_exports_give_one_clear_error(tmp_path: object) -> None:
    """A truncated copy is not our bug."""
    path = f"{tmp_path}/opencode.db"
    _build_database(path)
    with open(path, "rb+") as file:
        file.seek(30)
        file.write(b"\xff" * 4000)
    with pytest.raises(UntrustedDataError, match="cannot read sessions from"):
        read_facts("opencode-db", path)
    export = f"{tmp_path}/export-1.json"
    with open(export, "wb") as file:
        file.write(b'{"info": {"id": "ses_1"}, "messages": [')
    with pytest.raises(RelayError, match="holds no session"):
        read_facts("opencode-db", export)
    _build_database(f"{tmp_path}/two/opencode.db")
    with pytest.raises(RelayError, match="there is no session ses_x"):
        read_facts("opencode-db", f"{tmp_path}/two/opencode.db", native_id="ses_x")


def test_an_export_is_read_like_the_database(tmp_path: object) -> None:
    """`packet build` takes what the user has."""
    document = {"info": {"id": "ses_1", "directory": "/p"}, "messages": []}
    document["messages"] = [{"info": {"id": "m", "role": "user"}, "parts": [{"type": "text", "text": "go"}]}]
    with open(f"{tmp_path}/export-ses_1.json", "w", encoding="utf-8") as file:
        json.dump(document, file)
    facts = read_facts("opencode-db", str(tmp_path))
    assert (facts.native_id, facts.conversation[0].text) == ("ses_1", "go")
    assert facts.transcript.endswith("export-ses_1.json")


def test_nothing_of_the_users_is_changed(tmp_path: object) -> None:
    """Reading a closed folder works and leaves it as it was."""
    folder = f"{tmp_path}/closed"
    _build_database(f"{folder}/opencode.db")
    os.chmod(folder, stat.S_IRUSR | stat.S_IXUSR)
    before = sorted(os.listdir(folder))
    assert read_facts("opencode-db", f"{folder}/opencode.db").native_id == "ses_new"
    os.chmod(folder, stat.S_IRWXU)
    assert [name for name in sorted(os.listdir(folder)) if not name.endswith(("-shm", "-wal"))] == before


def test_a_database_of_another_kind_is_told_apart(tmp_path: object) -> None:
    """SQLite, but not sessions as they are known: one clear error, for adoption as well.

    A newer version that keeps them in other tables must not look like one that has none.
    """
    path = f"{tmp_path}/.local/share/opencode/opencode.db"
    os.makedirs(os.path.dirname(path))
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other(id)")
    database.commit()
    database.close()
    with pytest.raises(UntrustedDataError, match="no such table"):
        read_facts("opencode-db", path)
    found = find_native_sessions(_OPENCODE, cwd="/p", home=str(tmp_path), environ={})
    assert [error.sentence for error in found.unread] == [
        f"cannot read sessions from {path}: no such table: session"
    ]
    with pytest.raises(RelayError, match="cannot read the transcript"):
        read_facts("opencode-db", f"{tmp_path}/none.db")


def test_a_database_whose_names_are_damaged_is_told_of(tmp_path: object) -> None:
    """SQLite quotes such a name, and sqlite3 cannot decode the sentence: that was no error of SQLite's."""
    path = f"{tmp_path}/.local/share/opencode/opencode.db"
    _build_database(path)
    with open(path, "rb+") as file:
        data = file.read().replace(b"partpart", b"p\xff\xfet" * 2).replace(b"TABLE part(", b"TABLE part)")
        file.seek(0)
        file.write(data)
    with pytest.raises(UntrustedDataError, match="cannot read sessions from"):
        read_facts("opencode-db", path)
    (error,) = find_native_sessions(_OPENCODE, cwd="/p", home=str(tmp_path), environ={}).unread
    assert error.sentence == f"cannot read sessions from {path}: it is damaged"


def test_a_database_that_is_torn_is_told_of(tmp_path: object) -> None:
    """It held sessions once: who asks for them must not hear that there never were any."""
    path = f"{tmp_path}/.local/share/opencode/opencode.db"
    _build_database(path)
    with open(path, "r+b") as file:
        file.seek(16)
        file.write(b"\xff" * 4096)
    found = find_native_sessions(_OPENCODE, cwd="/p", home=str(tmp_path), environ={})
    assert found.sessions == ()
    (error,) = found.unread
    assert error.sentence.startswith(f"cannot read sessions from {path}: ")
