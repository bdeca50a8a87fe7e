"""The holder's program that waits for a leg: taken once, and gone with whoever started it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.terminal.holder._event_loop import NOTES_FILE
from agent_relay.terminal.holder_client import HolderError
from agent_relay.terminal.waiting_holder import ENTRY, end_spare, prepare_spare, take_spare
from tests.house.tree import CHECKOUT
from tests.support.legs import Wire, hold, raw_python
from tests.support.relay_world import wait_until
from tests.support.world_end import find_children

AGENT = raw_python("say('up'); os.read(0, 1)")


@pytest.fixture(autouse=True)
def _no_spare() -> Iterator[None]:
    end_spare()
    yield
    end_spare()


def find_waiting(parent: int) -> list[int]:
    """Return the programs of holders among the children of `parent`.

    Where another test made this process the one that orphans go to, holders of earlier legs are among them.
    """
    found = []
    for pid in find_children({parent}):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if ENTRY.encode() in file.read().split(b"\0"):
                found.append(pid)
    return found


def prepare() -> int:
    """The program that waits from now on."""
    before = {*find_waiting(os.getpid())}
    prepare_spare()
    # A program has no words for a moment after it was begun.
    wait_until(lambda: not before.issuperset(find_waiting(os.getpid())), "a program waits")
    (waiting,) = {*find_waiting(os.getpid())} - before
    return waiting


@pytest.mark.size("test")
def test_a_leg_gets_the_program_that_waits(tmp_path: Path) -> None:
    """Nobody who starts an agent waits for an interpreter."""
    waiting = prepare()
    with hold(f"{tmp_path}/leg", AGENT, holder=sys.executable) as held, Wire(held.folder) as wire:
        wire.wait_for_text("up")
        assert waiting not in find_waiting(os.getpid())
        assert take_spare() is None


@pytest.mark.size("test")
def test_a_program_that_was_killed_while_it_waited_costs_no_leg(tmp_path: Path) -> None:
    """The kernel takes what it likes when memory is short."""
    waiting = prepare()
    os.kill(waiting, signal.SIGKILL)
    with hold(f"{tmp_path}/leg", AGENT, holder=sys.executable) as held, Wire(held.folder) as wire:
        wire.wait_for_text("up")


@pytest.mark.size("test")
def test_a_holder_that_fails_behind_a_program_that_waited_is_not_begun_anew(tmp_path: Path) -> None:
    """Its agent lived, had its prompt, and may have done half of what that asks for."""
    # It cannot listen there, which it learns when its agent lives.
    (tmp_path / "sock").touch()
    prepare_spare()
    said = pytest.raises(HolderError, match="ended before it answered")
    with said, hold(f"{tmp_path}", AGENT, holder=sys.executable):
        raise AssertionError("it was held")
    assert (tmp_path / NOTES_FILE).read_text("utf-8").count("doing holding") == 1


def test_only_one_program_waits() -> None:
    """Each takes memory, and most are never needed."""
    # One that another test ended is not begun again by itself.
    end_spare()
    before = find_waiting(os.getpid())
    prepare_spare()
    prepare_spare()
    assert len(find_waiting(os.getpid())) == len(before) + 1
    end_spare()
    assert find_waiting(os.getpid()) == before


def test_a_program_that_is_stopped_is_ended_all_the_same() -> None:
    """A daemon that is to end would wait for it until its own end is forced."""
    waiting = prepare()
    os.kill(waiting, signal.SIGSTOP)
    ending = threading.Thread(target=end_spare, daemon=True)
    ending.start()
    ending.join(30)
    is_over = not ending.is_alive()
    if not is_over:
        os.kill(waiting, signal.SIGCONT)
    assert is_over


@pytest.mark.size("test")
def test_nothing_that_the_daemon_inherited_reaches_an_agent(tmp_path: Path) -> None:
    """A pipe of the shell that started it would stay open until the agent ends."""
    code = raw_python("say(' '.join(sorted(os.listdir('/proc/self/fd'))) + ' up'); os.read(0, 1)")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        prepare_spare()
        with hold(f"{tmp_path}/leg", code, holder=sys.executable) as held, Wire(held.folder) as wire:
            # The fourth is the listing's own.
            assert wire.wait_for_text("up").text().split("up")[0].split() == ["0", "1", "2", "3"]
    finally:
        os.close(writing)
        os.close(reading)


@pytest.mark.size("test")
def test_a_program_that_waits_ends_with_a_daemon_that_is_killed() -> None:
    """Nobody would ever give it a leg."""
    code = (
        f"import sys, time; sys.path.insert(0, {CHECKOUT!r});"
        "from agent_relay.terminal.waiting_holder import prepare_spare;"
        "prepare_spare(); print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"ready\n"
        (waiting,) = find_waiting(daemon.pid)
        handle = os.pidfd_open(waiting)
        daemon.kill()
    wait_until(lambda: is_over(handle), "the program's end")
    os.close(handle)


def is_over(handle: int) -> bool:
    """Whether the process behind that descriptor has ended."""
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return True
    return False
