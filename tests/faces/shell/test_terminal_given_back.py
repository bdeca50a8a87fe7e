"""The shell's terminal given back: whatever ends or stops it, the next prompt is one people can type at."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.support.measured import measured
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, is_stopped
from tests.support.shells import shell_world

pytestmark = pytest.mark.size("test")

LIMIT_S = 120


class Login:
    """A terminal whose own shell runs `agent-relay`, and leaves the terminal as it was left."""

    def __init__(self, world: RelayWorld) -> None:
        self._folder = world.folder
        run = f"{shlex.join([sys.executable])} -m agent_relay"
        script = (
            f"stty -a >{world.folder}/before; {run}; echo status $?; stty -a >{world.folder}/after; echo LEFT"
        )
        self.terminal = Terminal(["/bin/sh", "-c", script], env=world.environ | measured(), cwd=world.project)
        self.terminal.wait_for(r"(?m)^>", limit_s=LIMIT_S)
        self.terminal.wait_quiet(0.3)
        with open(f"/proc/{self.terminal.pid}/task/{self.terminal.pid}/children", encoding="ascii") as file:
            (self.relay,) = (int(word) for word in file.read().split())

    def read_modes(self, when: str) -> str:
        """The line discipline `before` or `after` the shell, as `stty` says it."""
        with open(f"{self._folder}/{when}", encoding="utf-8") as file:
            return file.read()

    def show_modes(self) -> str:
        """The same of this moment."""
        with os.popen(f"stty -a </proc/{self.terminal.pid}/fd/0") as shown:  # noqa: S605 - a number of ours
            return shown.read()

    def assert_given_back(self) -> None:
        """Nothing of the shell is left on the terminal."""
        self.terminal.wait_for("LEFT", limit_s=LIMIT_S)
        assert self.read_modes("after") == self.read_modes("before")
        assert self.terminal.modes_left_on() == []


@pytest.fixture
def login() -> Iterator[Login]:
    """Somebody at the relay shell, started from a shell of theirs."""
    with shell_world() as world:
        found = Login(world)
        try:
            yield found
        finally:
            found.terminal.close()


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_at_the_prompt_leaves_a_terminal_one_can_type_at(login: Login, number: int) -> None:
    """Without echo and line ends, people close the window and lose what else was in it."""
    os.kill(login.relay, number)
    login.assert_given_back()
    assert re.search(rf"status {128 + number}\b", login.terminal.screen)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_during_a_turn_leaves_a_terminal_one_can_type_at(login: Login, number: int) -> None:
    """Between two prompts the terminal echoes nothing, either."""
    login.terminal.send("slow work\r")
    login.terminal.wait_for("I begin", limit_s=LIMIT_S)
    os.kill(login.relay, number)
    login.assert_given_back()


def test_the_key_that_quits_does_not_quit_while_a_command_answers(login: Login) -> None:
    """Only Ctrl-C interrupts there; the other key would end the shell with a core dump and no echo."""
    login.terminal.send("/status\r\x1c")
    login.terminal.send("/exit\r")
    login.assert_given_back()
    assert "status 0" in login.terminal.screen


@pytest.mark.parametrize("way", ["signal", "key"])
def test_a_stopped_shell_lends_its_terminal(login: Login, way: str) -> None:
    """Whoever stops it works on in their own shell, and comes back to a prompt that takes keys."""
    if way == "key":
        login.terminal.send("\x1a")
    else:
        os.kill(login.relay, signal.SIGTSTP)
    login.terminal.wait_until(lambda: is_stopped(login.relay), "the shell is stopped", limit_s=LIMIT_S)
    login.terminal.pump(0.2)
    assert login.show_modes() == login.read_modes("before")
    assert login.terminal.modes_left_on() == []
    for pid in (login.terminal.pid, login.relay):
        os.kill(pid, signal.SIGCONT)
    login.terminal.wait_for(r"(?m)^>", limit_s=LIMIT_S)
    login.terminal.wait_until(lambda: "-echo " in login.show_modes(), "keys are taken again", limit_s=LIMIT_S)
    login.terminal.wait_quiet(0.3)
    login.terminal.send("hello again\r")
    login.terminal.wait_for("demo heard you", limit_s=LIMIT_S)
    login.terminal.send("/exit\r")
    login.assert_given_back()
