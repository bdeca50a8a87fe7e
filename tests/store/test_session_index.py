"""The user's index says where sessions stand and which have ended, and opens nothing it need not."""

import stat
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.store.session_index import (
    find_root,
    is_own,
    list_ended,
    list_index,
    list_named,
    list_own_at,
    list_strangers_at,
    list_unended,
    locate,
    mark_ended,
    read_live_at,
    read_sessions_at,
    remove_entry,
    unmark_ended,
    was_moved,
    write_entry,
)
from tests.support.journals import write_session

ONE, TWO = "01JD0000000000000000000001", "01JD0000000000000000000002"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Where a user's index is made when it is needed."""
    return tmp_path / "state" / "sessions"


def test_an_entry_says_where_a_session_stands(index: Path) -> None:
    """Every command that is given a name finds the folder by it."""
    write_entry(str(index), ONE, root="/home/ada/garden", cwd="/home/ada/garden/beds")
    assert find_root(str(index), ONE) == "/home/ada/garden"
    assert list_index(str(index)) == [(ONE, "/home/ada/garden")]
    assert stat.S_IMODE(index.stat().st_mode) == 0o700
    remove_entry(str(index), ONE)
    remove_entry(str(index), ONE)
    assert list_named(str(index)) == []


def test_a_session_that_ended_is_told_apart_without_being_opened(index: Path) -> None:
    """A daemon starts with the others; nobody waits for the journals of a whole year."""
    for session in (ONE, TWO):
        write_entry(str(index), session, root="/home/ada/garden", cwd="/home/ada/garden")
    mark_ended(str(index), ONE)
    (index / f"{ONE}.json").chmod(0)
    assert list_unended(str(index)) == [TWO]
    assert list_named(str(index)) == [ONE, TWO]
    assert list_ended(str(index)) == {ONE}
    unmark_ended(str(index), ONE)
    assert list_unended(str(index)) == [ONE, TWO]


def test_a_removed_session_leaves_no_mark(index: Path) -> None:
    """A name that comes back, from a backup, must not count as ended unseen."""
    write_entry(str(index), ONE, root="/home/ada/garden", cwd="/home/ada/garden")
    mark_ended(str(index), ONE)
    remove_entry(str(index), ONE)
    assert list_ended(str(index)) == set()


@pytest.mark.parametrize("contents", ["", "[]", "{", '{"root": 7}', '{"root": "near"}', "[" * 60_000])
def test_an_entry_that_cannot_be_read_names_nothing(index: Path, contents: str) -> None:
    """One spoilt file must not keep the others from being found."""
    write_entry(str(index), TWO, root="/home/ada/garden", cwd="/home/ada/garden")
    (index / f"{ONE}.json").write_text(contents)
    assert find_root(str(index), ONE) == ""
    assert list_index(str(index)) == [(TWO, "/home/ada/garden")]


def test_no_name_leads_out_of_the_index(index: Path) -> None:
    """Names come over a socket and from a command line."""
    assert find_root(str(index), "../../etc/passwd") == ""
    with pytest.raises(UntrustedDataError):
        write_entry(str(index), "../away", root="/work", cwd="/work")


def test_a_mark_that_cannot_be_written_is_told(index: Path) -> None:
    """Who reopens a session must know that a crash would lose it."""
    write_entry(str(index), ONE, root="/home/ada/garden", cwd="/home/ada/garden")
    (index / "ended").write_text("in the way")
    with pytest.raises(RelayError):
        mark_ended(str(index), ONE)
    with pytest.raises(RelayError):
        unmark_ended(str(index), ONE)


def test_only_what_the_index_names_is_the_users_own(tmp_path: Path, index: Path) -> None:
    """A clone may bring along a session folder with any story in its journal."""
    write_session(tmp_path, ONE, index=index)
    write_session(tmp_path, TWO, index=None)
    assert list_own_at(str(tmp_path), str(index)) == [ONE]
    assert list_strangers_at(str(tmp_path), str(index)) == [TWO]
    assert [view["session"] for view in read_sessions_at(str(tmp_path), str(index))] == [ONE]


def test_a_session_whose_repository_was_renamed_is_still_the_users(tmp_path: Path, index: Path) -> None:
    """The index still says where it was, and there it is no more."""
    before, after = tmp_path / "garden", tmp_path / "orchard"
    before.mkdir()
    write_session(before, ONE, index=index)
    before.rename(after)
    assert list_own_at(str(after), str(index)) == [ONE]
    assert locate(str(index), ONE, near=str(after)) == str(after)


def test_a_copy_of_a_repository_does_not_take_the_sessions_along(tmp_path: Path, index: Path) -> None:
    """Two folders would both seem to be the one session; ending it here would end the agent there."""
    first, copy = tmp_path / "garden", tmp_path / "copy"
    first.mkdir()
    copy.mkdir()
    write_session(first, ONE, index=index)
    write_session(copy, ONE, index=None)
    assert list_own_at(str(copy), str(index)) == []
    assert list_strangers_at(str(copy), str(index)) == [ONE]
    assert locate(str(index), ONE, near=str(copy)) == str(first)


def test_sessions_elsewhere_are_not_shown_through_a_link(tmp_path: Path, index: Path) -> None:
    """A repository may bring a link to where it hopes another one's sessions are."""
    first, clone = tmp_path / "garden", tmp_path / "clone"
    first.mkdir()
    write_session(first, ONE, index=index)
    write_session(first, TWO, index=None)
    (clone / ".agent-relay").mkdir(parents=True)
    (clone / ".agent-relay" / "sessions").symlink_to(first / ".agent-relay" / "sessions")
    assert list_own_at(str(clone), str(index)) == []


def test_what_has_ended_is_left_out_of_what_lives(tmp_path: Path, index: Path) -> None:
    """Also where the mark is missing, and without a look at the journal where it is there."""
    write_session(tmp_path, ONE, index=index)
    ended = write_session(tmp_path, TWO, index=index, ended=True)
    assert [view["session"] for view in read_live_at(str(tmp_path), str(index))] == [ONE]
    mark_ended(str(index), TWO)
    (ended / "journal.jsonl").write_text("nobody opens this")
    assert [view["session"] for view in read_live_at(str(tmp_path), str(index))] == [ONE]


@pytest.mark.parametrize("root", ["/home/ada\0", "/home/\ud800", "x" * 5000])
def test_what_is_no_name_of_a_folder_is_nobodys(index: Path, root: str) -> None:
    """A request that named such a root was an internal error, with a crash report for each."""
    write_entry(str(index), ONE, root="/home/ada/garden", cwd="/home/ada/garden")
    assert not is_own(root, str(index), ONE)
    assert not was_moved(root, str(index), ONE)
