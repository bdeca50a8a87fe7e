"""`agent-relay watch` on a real terminal: what it shows, and that the terminal is given back at its end."""

import json
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator

import pexpect
import pytest

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.faces.cli_run import create_world
from tests.faces.terminals import Terminals

pytestmark = pytest.mark.size("test")

LEFT = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
RAISES = """
from agent_relay.client.attach.tty import UserTerminal
from agent_relay.faces.watch._full_screen import FullScreen
with FullScreen(UserTerminal()):
    raise RuntimeError("a mistake of ours")
"""


class Seen:
    """A person's terminal, emulated, so that what is asserted is what they would see."""

    def __init__(self, child: "pexpect.spawn[str]") -> None:
        library = find_library()
        assert library is not None
        self.child = child
        self._emulator = Emulator(library, 90, 24)
        self._size = (90, 24)

    def rows(self) -> list[str]:
        """What is on it now."""
        return self._emulator.text()

    def resize(self, cols: int, rows: int) -> None:
        """Its window is another size from now on."""
        self._emulator.resize(cols, rows)
        self.child.setwinsize(rows, cols)

    def read(self, wait_s: float) -> bytes:
        """What is written next; nothing where nothing is in that time, or ever will be."""
        if not select.select([self.child.child_fd], [], [], wait_s)[0]:
            return b""
        try:
            data = os.read(self.child.child_fd, 1 << 16)
        except OSError:
            return b""
        self._emulator.feed(data)
        return data

    def wait_for(self, is_so: Callable[[list[str]], bool], limit_s: float = 90) -> list[str]:
        """The rows once `is_so`."""
        deadline = time.monotonic() + limit_s
        while not is_so(self.rows()):
            assert time.monotonic() < deadline, self.rows()
            self.read(0.2)
        return self.rows()

    def wait_for_text(self, text: str) -> list[str]:
        """The rows once one of them holds `text`."""
        return self.wait_for(lambda rows: any(text in row for row in rows))


@pytest.fixture
def terminals(tmp_path: os.PathLike[str]) -> Iterator[Terminals]:
    """A user with two scripted agents."""
    found = Terminals(create_world(f"{tmp_path}"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    """The same user, for whom nothing runs: a world for all who only look at the terminal."""
    found = Terminals(create_world(f"{tmp_path_factory.mktemp('idle')}"))
    yield found
    found.close()


def begin(terminals: Terminals) -> "pexpect.spawn[str]":
    """An agent that waits for a prompt."""
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    return child


def watch(terminals: Terminals) -> Seen:
    """The same user watches on another terminal."""
    return Seen(terminals.open("watch"))


def end(child: "pexpect.spawn[str]") -> tuple[str, int]:
    """What was written last, and the exit status as a shell has it."""
    child.expect(pexpect.EOF)
    child.close()
    status = child.exitstatus if child.exitstatus is not None else 128 + (child.signalstatus or 0)
    return str(child.before), status


def test_a_session_is_shown_with_its_screen_in_eighty_columns(terminals: Terminals) -> None:
    """The smallest terminal people have shows who works, since when, and on what."""
    child = begin(terminals)
    seen = watch(terminals)
    seen.resize(80, 24)
    seen.wait_for_text("ready | demo | Enter sends")
    child.send("hello\r")
    rows = seen.wait_for_text("* demo heard you")
    assert rows[0].startswith(" agent-relay watch   1 session ")
    assert any(row.startswith("demo") and "ready" in row for row in rows)
    assert any(row.endswith("demo waits for a prompt") for row in rows)
    assert max(len(row) for row in rows) <= 80
    assert rows[23].strip() == "↑↓ session   q quit"


def test_another_size_is_drawn_anew(terminals: Terminals) -> None:
    """Windows are dragged, halves of screens swapped; wide ones have the screen beside the rest."""
    begin(terminals)
    seen = watch(terminals)
    seen.wait_for_text("ready | demo")
    seen.resize(160, 50)
    rows = seen.wait_for(lambda rows: len(rows) == 50 and rows[49].strip() == "↑↓ session   q quit")
    assert any("│ demo agent - a scripted agent" in row for row in rows)
    seen.resize(40, 10)
    rows = seen.wait_for(lambda rows: len(rows) == 10 and rows[9].strip() == "↑↓ session   q quit")
    seen.wait_for(lambda rows: rows[0].startswith(" agent-relay watch   1 session "))


def test_several_sessions_are_listed_and_keys_choose(terminals: Terminals) -> None:
    """Ten agents at once are watched in one place."""
    begin(terminals)
    other = terminals.open("agent", "demo", "--new")
    other.expect_exact("ready | demo")
    seen = watch(terminals)
    rows = seen.wait_for(lambda rows: sum("ready " in row for row in rows) >= 2)
    assert rows[0].startswith(" agent-relay watch   2 sessions ")
    first, second = sorted(str(one["session"]) for one in terminals.read_status())
    seen.wait_for_text(f"── {first} ")
    seen.child.send("\x1b[B")
    seen.wait_for_text(f"── {second} ")
    seen.child.send("k")
    seen.wait_for_text(f"── {first} ")


def test_a_daemon_that_dies_and_returns_is_said(terminals: Terminals) -> None:
    """Watching goes on by itself."""
    begin(terminals)
    seen = watch(terminals)
    seen.wait_for_text("ready | demo")
    os.kill(int(json.loads(terminals.world.run("daemon", "status", "--json").out)["pid"]), signal.SIGKILL)
    seen.wait_for_text("No daemon is running")
    seen.wait_for(lambda rows: not any("| demo |" in row for row in rows))
    assert terminals.world.run("daemon", "start").status == 0
    seen.wait_for_text("ready | demo")
    seen.wait_for(lambda rows: not any("No daemon is running" in row for row in rows))


def test_nothing_is_drawn_while_nothing_changes(terminals: Terminals) -> None:
    """A terminal over a slow line, or a battery, must not pay for an agent that waits."""
    child = begin(terminals)
    child.send("hello\r")
    child.expect_exact("demo heard you")
    seen = watch(terminals)
    seen.wait_for_text("* demo heard you")
    deadline = time.monotonic() + 90
    while seen.read(4.0):
        assert time.monotonic() < deadline, "it is drawn again and again"


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("q", 0),
        ("\x03", 130),
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, 131),
    ],
)
def test_the_terminal_is_as_it_was_however_it_ends(
    idle: Terminals, how: str | signal.Signals, status: int
) -> None:
    """A shell without echo, or on the other screen, is how people remember a tool."""
    seen = watch(idle)
    child = seen.child
    seen.wait_for_text("No session is running in this repository.")
    assert not termios.tcgetattr(child.child_fd)[3] & termios.ECHO
    if isinstance(how, signal.Signals):
        os.kill(child.pid, how)
    else:
        child.send(how)
    last = b""
    while data := seen.read(20):
        last += data
    assert last.decode().endswith(LEFT)
    assert termios.tcgetattr(child.child_fd)[3] & termios.ECHO
    assert termios.tcgetattr(child.child_fd)[3] & termios.ICANON
    assert end(child)[1] == status


def test_the_terminal_is_as_it_was_after_a_mistake_of_ours(idle: Terminals) -> None:
    """The trace must be readable, too."""
    child = idle.spawn("-c", RAISES)
    last, status = end(child)
    assert status == 1
    assert last.index(LEFT) < last.index("a mistake of ours")


def test_the_shell_gets_its_terminal_when_watching_is_suspended(idle: Terminals) -> None:
    """Ctrl-Z and `fg` are how one terminal serves two purposes."""
    seen = Seen(idle.spawn("-m", "agent_relay", "watch"))
    child = seen.child
    seen.wait_for_text("No session is running in this repository.")
    child.send("\x1a")
    last = b""
    while not last.decode().endswith(LEFT):
        last += seen.read(20)
    assert os.waitpid(child.pid, os.WUNTRACED)[1] & 0xFF == 0x7F
    assert termios.tcgetattr(child.child_fd)[3] & termios.ECHO
    os.kill(child.pid, signal.SIGCONT)
    seen.wait_for_text("No session is running in this repository.")
    assert not termios.tcgetattr(child.child_fd)[3] & termios.ECHO
    child.send("q")
    assert end(child)[1] == 0


def test_a_log_of_what_happens_is_printed_where_there_is_no_terminal(terminals: Terminals) -> None:
    """`agent-relay watch | tee log` is a log, not a stream of escapes."""
    program = f"{sys.executable} -m agent_relay watch | cat"
    child = pexpect.spawn(
        "/bin/sh", ["-c", program], cwd=terminals.world.cwd, env=terminals.environ(), timeout=90
    )
    terminals.opened.append(child)
    child.expect_exact("No daemon is running")
    begin(terminals)
    # Which of the two is seen first is up to the moment.
    awaited = ["The daemon is running again.", "demo waits for a prompt"]
    awaited.pop(child.expect_exact(awaited))
    child.expect_exact(awaited)
    assert b"\x1b" not in child.before
