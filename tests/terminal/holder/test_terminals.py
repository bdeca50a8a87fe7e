"""Terminals that stall, stop and vanish: the agent never waits for them, and they catch up exactly."""

import os
import signal
import socket

import pytest

from tests.support.legs import Wire, hold, python, raw_python, wait_until
from tests.support.person import at_terminal, client

pytestmark = pytest.mark.size("every")

FLOOD = """
say("up"); os.read(0, 1)
for number in range(200000):
    os.write(1, b"\\x1b[3%dm%06d %s\\x1b[0m\\r\\n" % (number % 8, number, b"x" * 80))
say("\\x1b[2J\\x1b[5;5Hthe end\\x1b[?25l")
os.read(0, 1)
"""
FLOOD_BYTES = 200_000 * 18


def memory_kib(pid: int) -> int:
    """The resident memory of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(file.read().split("VmRSS:")[1].split()[0])


@pytest.mark.parametrize("way", ["tty", "socket"])
def test_a_terminal_that_takes_nothing_stalls_nobody_and_catches_up(tmp_path: object, way: str) -> None:
    """One frozen window must not stop the agent, starve the others or fill memory."""
    with (
        hold(str(tmp_path), raw_python(FLOOD)) as held,
        at_terminal(client(held.socket, way=way), cols=100) as stalled,
        at_terminal(client(held.socket, way=way), cols=100) as reading,
        Wire(held.folder) as wire,
    ):
        wait_until(lambda: wire.ask("status")["attached"] == 2, "both")
        wire.wait_for_text("up")
        before = memory_kib(held.started.holder_pid)
        reading.type(b"g")
        reading.wait_for("the end")
        assert memory_kib(held.started.holder_pid) - before < 12_000
        stalled.wait_for("the end")
        assert stalled.emulator.text() == reading.emulator.text()
        assert stalled.emulator.cursor() == reading.emulator.cursor()
        assert stalled.emulator.modes() == reading.emulator.modes()
        assert len(stalled.received) < FLOOD_BYTES // 2


def test_a_stopped_client_stalls_nobody(tmp_path: object) -> None:
    """A client in the background is still attached, its bytes going nowhere."""
    with (
        hold(str(tmp_path), raw_python(FLOOD)) as held,
        at_terminal(client(held.socket, way="socket"), cols=100) as stopped,
        at_terminal(client(held.socket), cols=100) as reading,
        Wire(held.folder) as wire,
    ):
        wait_until(lambda: wire.ask("status")["attached"] == 2, "both")
        wire.wait_for_text("up")
        os.kill(stopped.pid, signal.SIGSTOP)
        reading.type(b"g")
        reading.wait_for("the end")
        os.kill(stopped.pid, signal.SIGCONT)
        stopped.wait_for("the end")
        assert stopped.emulator.text() == reading.emulator.text()


@pytest.mark.size("test")
def test_a_slow_terminal_misses_nothing(tmp_path: object) -> None:
    """As long as it takes bytes it gets them all: a slow line slows the agent, as it would directly."""
    code = """
say("up"); os.read(0, 1)
for n in range(60000): os.write(1, b"%06d\\r\\n" % n)
say("the end"); os.read(0, 1)
"""
    with hold(str(tmp_path), raw_python(code)) as held, at_terminal(client(held.socket)) as person:
        with Wire(held.folder) as wire:
            wait_until(lambda: wire.ask("status")["attached"] == 1, "the person")
        person.wait_for("up")
        person.wait_until(lambda: b"\x1b[?2026l" in person.received, "the first painting")
        person.received.clear()
        person.type(b"g")
        person.wait_for("the end")
        assert bytes(person.received) == b"".join(b"%06d\r\n" % n for n in range(60000)) + b"the end"


@pytest.mark.size("test")
def test_a_terminal_that_vanishes_is_let_go(tmp_path: object) -> None:
    """Windows are closed without goodbye; the agent works on."""
    with (
        hold(str(tmp_path), python("input(); print('still here'); input()")) as held,
        Wire(held.folder) as wire,
    ):
        with at_terminal(client(held.socket)):
            wait_until(lambda: wire.ask("status")["attached"] == 1, "the person")
        wait_until(lambda: wire.ask("status")["attached"] == 0, "the terminal's end")
        wire.type(b"\r")
        wire.wait_for_text("still here")


@pytest.mark.size("test")
def test_the_agents_own_terminal_is_refused(tmp_path: object) -> None:
    """What it says would be typed to it, without end."""
    code = "import os; os.write(1, os.ttyname(0).encode() + b'!'); input()"
    with hold(str(tmp_path), python(code)) as held, Wire(held.folder) as wire:
        name = wire.wait_for_text("!").text().strip().removesuffix("!")
        fd = os.open(name, os.O_RDWR | os.O_NOCTTY)
        try:
            assert wire.ask("attach", (fd,), rows=24, cols=80)["code"] == "own-terminal"
        finally:
            os.close(fd)


def test_what_is_no_terminal_is_refused(tmp_path: object) -> None:
    """A file or a pipe passed as a terminal would make the holder read and write strangers' things."""
    read, write = os.pipe()
    try:
        with hold(str(tmp_path), ["cat"]) as held, Wire(held.folder) as wire:
            assert wire.ask("attach", (read,), rows=5, cols=5)["code"] == "tty-refused"
            assert wire.ask("attach", (write, read), rows=5, cols=5)["code"] == "tty-refused"
            descriptors = f"/proc/{held.started.holder_pid}/fd"
            links = [os.readlink(f"{descriptors}/{name}") for name in os.listdir(descriptors)]
            assert not [link for link in links if link.startswith("pipe:")]
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.size("test")
def test_the_terminals_blocking_mode_stays_the_persons(tmp_path: object) -> None:
    """O_NONBLOCK set on a shared terminal makes the person's shell lose output."""
    with hold(str(tmp_path), ["cat"]) as held, at_terminal(client(held.socket)) as person:
        with Wire(held.folder) as wire:
            wait_until(lambda: wire.ask("status")["attached"] == 1, "the person")
        assert os.get_blocking(person.slave)


@pytest.mark.size("test")
def test_questions_go_to_the_terminal_while_one_is_attached(tmp_path: object) -> None:
    """Two answers to one question would end up as typed text."""
    code = """
say("up"); os.read(0, 1); say("\\x1b[c")
data = os.read(0, 100)
say("answered " + repr(data)); os.read(0, 1)
"""
    ours, theirs = socket.socketpair()
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        ours.settimeout(60)
        assert wire.ask("attach", (theirs.fileno(),), rows=24, cols=80)["ok"]
        theirs.close()
        wire.wait_for_text("up")
        ours.sendall(b"g")
        while b"\x1b[c" not in ours.recv(1 << 16):
            pass
        ours.sendall(b"\x1b[?1;2c")
        wire.wait_for_text(r"answered b'\x1b[?1;2c'")
        ours.close()
