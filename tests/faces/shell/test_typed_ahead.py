import json
import os
import resource
import shutil
import signal
import stat

import pytest

from agent_relay.faces.shell._message_queue import MessageQueue


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


def test_a_living_shells_messages_are_its_own(folder: str) -> None:
    """Two shells in one repository must not send each other's words."""
    living = _open(folder, "living")
    living.add("mine")
    second = _open(folder, "second")
    assert second.take_over(folder) == 0
    assert list(living) == ["mine"]


def test_what_a_gone_shell_left_is_taken_over_once(folder: str) -> None:
    """It is offered by the next shell, and by no third one."""
    gone = _open(folder, "gone")
    gone.add("left behind")
    gone.close()
    second, third = _open(folder, "second"), _open(folder, "third")
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


def test_a_shell_that_kept_nothing_leaves_no_file(folder: str) -> None:
    """A folder that fills with empty files is somebody's to clean."""
    typed = _open(folder, "one")
    typed.add("sent")
    typed.drop(typed.first.id)
    typed.close()
    assert os.listdir(folder) == []


@pytest.mark.parametrize("torn", [b"", b'["half', b"{}", b"[1, null]", b"\xff\xfe", b"[" * 100_000])
def test_a_torn_file_is_no_message(folder: str, torn: bytes) -> None:
    """What a full disk left must not keep the next shell from opening."""
    with open(f"{folder}/torn.json", "wb") as stream:
        stream.write(torn)
    assert _open(folder, "one").take_over(folder) == 0


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


def test_what_was_sent_stands_in_no_file_any_more(folder: str) -> None:
    """People type secrets; a queue must not keep what it has handed over."""
    typed = _open(folder, "one")
    typed.add("the password is hunter2")
    typed.drop(typed.first.id)
    assert not os.path.exists(f"{folder}/one.json")
