import os

from agent_relay.faces.shell._conversation import SessionLock, is_shared


def test_each_shell_learns_of_the_others_and_the_last_one_leaves_no_file(tmp_path: os.PathLike[str]) -> None:
    """Two shells that hand a session back and forth unknowingly confuse their people."""
    first, second = SessionLock(str(tmp_path)), SessionLock(str(tmp_path))
    assert [first.enter("S"), first.enter("S"), second.enter("S"), first.enter("S")] == [
        False,
        False,
        True,
        True,
    ]
    second.enter("T")
    assert not first.enter("S")
    assert sorted(os.listdir(tmp_path)) == ["S.here", "T.here"]
    first.leave()
    second.leave()
    assert os.listdir(tmp_path) == []


def test_where_nobody_can_tell_nobody_is_said_to_be_there(tmp_path: os.PathLike[str]) -> None:
    """A full or foreign disk is no reason to refuse a session."""
    assert not is_shared(SessionLock(f"{tmp_path}/missing"), "S")
    assert not is_shared(None, "S")
