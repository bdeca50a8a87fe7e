"""What was typed and waits, or was typed before: kept on disk for its user alone, whatever stands there."""

import json
import os
import resource
import shutil
import signal
import stat
from pathlib import Path

import pytest

from agent_relay.faces.shell._message_queue import MessageQueue
from agent_relay.faces.shell._prompt import TypedHistory


@pytest.fixture
def folder(tmp_path: os.PathLike[str]) -> str:
    """Where the shells of one working tree keep what was typed."""
    path = f"{tmp_path}/queue"
    os.makedirs(path, mode=0o700)
    return path


def _open(folder: str, name: str) -> MessageQueue:
    return MessageQueue(f"{folder}/{name}.json", lambda: None)


def test_messages_keep_their_order_and_stand_on_disk_for_their_user_alone(folder: str) -> None:
    """A killed shell must not take thoughts along, and nobody else should read them."""
    typed = _open(folder, "one")
    for message in ("first", "second\nline", "third"):
        typed.add(message)
    with open(f"{folder}/one.json", encoding="utf-8") as stream:
        assert [text for _, text in json.load(stream)] == ["first", "second\nline", "third"]
    assert stat.S_IMODE(os.stat(f"{folder}/one.json").st_mode) == 0o600
    assert typed.take_last() == "third"
    typed.put_first("before all")
    assert list(typed) == ["before all", "first", "second\nline"]
    typed.drop(typed.first.id)
    assert (typed.first.text, len(typed)) == ("first", 2)


def test_what_a_gone_shell_left_is_taken_over_once_and_of_a_living_one_nothing(folder: str) -> None:
    """It is offered by the next shell, and by no third one; two shells must not send each other's words."""
    gone = _open(folder, "gone")
    gone.add("left behind")
    second, third = _open(folder, "second"), _open(folder, "third")
    assert (second.take_over(folder), list(gone)) == (0, ["left behind"])
    gone.close()
    assert second.take_over(folder) == 1
    assert list(second) == ["left behind"]
    assert third.take_over(folder) == 0
    assert not os.path.exists(f"{folder}/gone.json")


def test_a_message_keeps_its_id_from_shell_to_shell(folder: str) -> None:
    """By it the daemon tells whether its turn began under a shell that was killed in that moment."""
    gone = _open(folder, "gone")
    gone.add("asked already?")
    known = gone.first
    gone.close()
    second = _open(folder, "second")
    second.take_over(folder)
    second.drop("an id that nobody has")
    assert second.first == known
    second.drop(known.id)
    second.put_first("asked already?")
    assert second.first.id != known.id


def test_a_file_of_an_earlier_version_is_read(folder: str) -> None:
    """Its messages had no ids."""
    with open(f"{folder}/old.json", "w", encoding="utf-8") as stream:
        json.dump(["one", ["no id", "two"], "three"], stream)
    typed = _open(folder, "one")
    assert typed.take_over(folder) == 2
    assert list(typed) == ["one", "three"]


def test_what_was_sent_stands_in_no_file_any_more_nor_is_one_left(folder: str) -> None:
    """People type secrets; and a folder that fills with empty files is somebody's to clean."""
    typed = _open(folder, "one")
    typed.add("the password is hunter2")
    typed.drop(typed.first.id)
    assert not os.path.exists(f"{folder}/one.json")
    typed.close()
    assert os.listdir(folder) == []


def test_a_torn_file_is_no_message(folder: str) -> None:
    """What a full disk left must not keep the next shell from opening."""
    for torn in (b"", b'["half', b"{}", b"[1, null]", b"\xff\xfe", b"[" * 100_000):
        with open(f"{folder}/torn.json", "wb") as stream:
            stream.write(torn)
        assert _open(folder, "one").take_over(folder) == 0, torn[:10]


def test_a_file_that_cannot_be_written_costs_no_message(folder: str) -> None:
    """A full disk must not stop the work: what was typed is still sent."""
    typed = _open(folder, "one")
    shutil.rmtree(folder)
    typed.add("still here")
    assert typed.first.text == "still here"
    assert not os.path.exists(folder)


def test_a_full_disk_costs_nothing_that_a_gone_shell_left(folder: str) -> None:
    """What could not be written anew must stay where it was: this shell may be killed, too."""
    gone = _open(folder, "gone")
    gone.add("left behind" * 100)
    gone.close()
    second = _open(folder, "second")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        assert second.take_over(folder) == 1
        assert os.path.exists(f"{folder}/gone.json")
        second.drop(second.first.id)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(second) == 0


def test_what_cannot_be_read_now_is_left_for_later(folder: str) -> None:
    """A file that is too large or not to be opened is still somebody's words."""
    with open(f"{folder}/large.json", "wb") as stream:
        stream.truncate(65 << 20)
    assert _open(folder, "one").take_over(folder) == 0
    assert os.path.exists(f"{folder}/large.json")


def _redact(text: str) -> str:
    return text.replace("hunter2", "[redacted: password]")


def test_the_file_holds_no_secrets_and_is_the_users_alone(tmp_path: os.PathLike[str]) -> None:
    """People paste keys into prompts; a history is read by backups and by whoever borrows the machine."""
    path = f"{tmp_path}/history"
    history = TypedHistory(path, _redact)
    history.append_string("the password is hunter2")
    assert "hunter2" not in Path(path).read_text("utf-8")
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
    assert b"not there" not in Path(f"{tmp_path}/elsewhere").read_bytes()


def test_the_file_stays_bounded(tmp_path: os.PathLike[str]) -> None:
    """Years of prompts must not make the shell slow to open."""
    path = f"{tmp_path}/history"
    with open(path, "wb") as stream:
        stream.write(b"".join(b'"entry %d"\n' % number for number in range(5000)))
    entries = list(TypedHistory(path, _redact).load_history_strings())
    assert entries[0] == "entry 4999"
    assert len(entries) == 1999
    TypedHistory(path, _redact).store_string("x" * 30_000)
    assert Path(path).read_bytes().count(b"\n") == 1999


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
