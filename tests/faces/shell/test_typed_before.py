import os
import stat

from agent_relay.faces.shell._prompt import TypedHistory


def _redact(text: str) -> str:
    return text.replace("hunter2", "[redacted: password]")


def test_the_file_holds_no_secrets_and_is_the_users_alone(tmp_path: os.PathLike[str]) -> None:
    """People paste keys into prompts; a history is read by backups and by whoever borrows the machine."""
    path = f"{tmp_path}/history"
    history = TypedHistory(path, _redact)
    history.append_string("the password is hunter2")
    with open(path, encoding="utf-8") as stream:
        assert "hunter2" not in stream.read()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert list(TypedHistory(path, _redact).load_history_strings()) == [
        "the password is [redacted: password]"
    ]
    assert history.get_strings() == ["the password is hunter2"]


def test_entries_come_back_newest_first_with_their_lines(tmp_path: os.PathLike[str]) -> None:
    """A message of several lines is one entry."""
    path = f"{tmp_path}/history"
    for entry in ("one", "two\nlines"):
        TypedHistory(path, _redact).store_string(entry)
    assert list(TypedHistory(path, _redact).load_history_strings()) == ["two\nlines", "one"]


def test_what_is_no_entry_is_passed_over(tmp_path: os.PathLike[str]) -> None:
    """A torn line must not cost the others, nor a link lead anywhere."""
    path = f"{tmp_path}/history"
    with open(path, "wb") as stream:
        stream.write(b'"one"\n{"half\n7\n\xff\n"two"\n')
    assert list(TypedHistory(path, _redact).load_history_strings()) == ["two", "one"]
    os.rename(path, f"{tmp_path}/elsewhere")
    os.symlink(f"{tmp_path}/elsewhere", path)
    TypedHistory(path, _redact).store_string("not there")
    with open(f"{tmp_path}/elsewhere", "rb") as stream:
        assert b"not there" not in stream.read()


def test_the_file_stays_bounded(tmp_path: os.PathLike[str]) -> None:
    """Years of prompts must not make the shell slow to open."""
    path = f"{tmp_path}/history"
    with open(path, "wb") as stream:
        stream.write(b"".join(b'"entry %d"\n' % number for number in range(5000)))
    entries = list(TypedHistory(path, _redact).load_history_strings())
    assert entries[0] == "entry 4999"
    assert len(entries) == 1999
    TypedHistory(path, _redact).store_string("x" * 30_000)
    with open(path, "rb") as stream:
        assert stream.read().count(b"\n") == 1999


def test_a_file_that_has_grown_too_large_gives_its_newest_entries(tmp_path: os.PathLike[str]) -> None:
    """Many long pastes must not cost a user their history for ever."""
    path = f"{tmp_path}/history"
    with open(path, "wb") as stream:
        stream.write(b'"%s"\n' % (b"x" * 19_000) * 900 + b'"the newest"\n')
    entries = list(TypedHistory(path, _redact).load_history_strings())
    assert entries[0] == "the newest"
    assert len(entries) == 442
    assert os.path.getsize(path) < 9 << 20


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: os.PathLike[str]) -> None:
    """The shell opens whatever stands there."""
    os.mkfifo(f"{tmp_path}/history")
    assert list(TypedHistory(f"{tmp_path}/history", _redact).load_history_strings()) == []
