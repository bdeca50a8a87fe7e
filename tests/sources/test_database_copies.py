"""A copy of a database somebody writes to is one moment of it."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.sources.transcript_files import copy_database, query_database


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An agent at work on a database of two tables, each on pages of its own; it decides when to tidy up."""
    database = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    database.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE one(v); CREATE TABLE two(v);"
        "INSERT INTO one VALUES(1); INSERT INTO two VALUES(1); PRAGMA wal_checkpoint(TRUNCATE);"
        "BEGIN; UPDATE one SET v=2; UPDATE two SET v=2; COMMIT"
    )
    yield database
    database.close()


def _read(database: sqlite3.Connection) -> tuple[int, int]:
    (one,) = database.execute("SELECT v FROM one").fetchone()
    (two,) = database.execute("SELECT v FROM two").fetchone()
    return one, two


def _copy(tmp_path: Path, meanwhile: Callable[[], object]) -> tuple[int, int]:
    """What the copy holds; `meanwhile` happens each time between the database and what stands beside it."""

    def copy_file(path: str, copy: str) -> None:
        shutil.copyfile(path, copy)
        if path.endswith(".db"):
            meanwhile()

    copy = tmp_path / "copy.db"
    copy_database(str(tmp_path / "a.db"), str(copy), copy_file=copy_file)
    with closing(sqlite3.connect(copy)) as database:
        return _read(database)


def test_what_is_only_in_the_log_is_copied_too(tmp_path: Path, writer: sqlite3.Connection) -> None:
    """The newest of what an agent wrote stands there, and it may go on writing."""
    assert _copy(tmp_path, lambda: writer.execute("UPDATE one SET v=3")) == (3, 2)
    assert _copy(tmp_path, lambda: None) == (3, 2)


def test_a_database_that_was_tidied_up_while_it_was_copied_is_copied_again(
    tmp_path: Path, writer: sqlite3.Connection
) -> None:
    """Half of it from before and half from after would be a state that it never was in."""
    once = [
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "UPDATE one SET v=3",
    ]

    def tidy_up() -> None:
        while once:
            writer.execute(once.pop(0)).fetchall()

    assert _copy(tmp_path, tidy_up) == (3, 2)


def test_a_log_that_was_begun_anew_while_it_was_copied_is_copied_again(
    tmp_path: Path, writer: sqlite3.Connection
) -> None:
    """Its first half would take the database back to what it was before."""
    writer.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    once = ["UPDATE one SET v=3"]
    copied: list[str] = []

    def copy_file(path: str, copy: str) -> None:
        shutil.copyfile(path, copy)
        copied.append(path)
        while path.endswith("-wal") and once:
            writer.execute(once.pop()).fetchall()

    path = str(tmp_path / "a.db")
    copy_database(path, str(tmp_path / "copy.db"), copy_file=copy_file)
    assert copied == [path, f"{path}-wal", path, f"{path}-wal"]


def test_a_database_that_is_always_written_to_is_told_of(tmp_path: Path, writer: sqlite3.Connection) -> None:
    """It is not copied in circles for ever."""

    def tidy_up() -> None:
        writer.execute("UPDATE one SET v=v+1")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    with pytest.raises(RelayError, match=r"cannot read sessions from .*/a.db: it is being written to"):
        _copy(tmp_path, tidy_up)


@pytest.mark.size("test")
def test_what_a_writer_has_not_completed_is_not_read(tmp_path: Path) -> None:
    """It has locked the database, which is copied then: half of a change stands in it already."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.executescript("PRAGMA cache_size=1; CREATE TABLE one(v, text)")
        writer.executemany("INSERT INTO one VALUES(1, ?)", [("x" * 900,)] * 200)
        writer.executescript("BEGIN EXCLUSIVE; UPDATE one SET v=2")
        assert path.with_name("a.db-journal").stat().st_size > 0
        found = query_database(
            str(path), lambda database: database.execute("SELECT sum(v) FROM one").fetchall()
        )
        writer.execute("ROLLBACK")
    assert [tuple(row) for row in found] == [(200,)]


def test_a_database_that_is_gone_is_told_of(tmp_path: Path) -> None:
    """An agent may delete it between two looks."""
    with pytest.raises(RelayError, match=r"cannot read the transcript .*/none.db: No such file"):
        query_database(str(tmp_path / "none.db"), lambda _database: None)
