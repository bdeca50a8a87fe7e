"""A person's terminal stays theirs when our installation is taken away under it."""

import os
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from tests.faces.terminals import Terminals, press, see
from tests.house import tree
from tests.support.installations import Installation
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

WATCHED = 2
"""The holder's socket, and the daemon's that is watched."""


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """A copy of our package."""
    return Installation(str(tmp_path / "installed"))


@pytest.fixture
def terminals(terminals: Terminals) -> Terminals:
    """A user with two scripted agents of their own, which stay where they are."""
    for agent in ("demo", "understudy"):
        own = f"{terminals.world.home}/config/adapters/{agent}"
        shutil.copytree(os.path.join(tree.CHECKOUT, "adapters", agent), own)
    return terminals


def attach(terminals: Terminals, installation: Installation) -> "pexpect.spawn[str]":
    """A terminal on the demo agent whose client has had time for all it needs."""
    child = terminals.spawn(*installation.command("agent", "demo")[1:], cols=300, more=installation.environ)
    child.expect_exact("ready | demo")
    wait_loaded(child.pid)
    return child


def wait_loaded(pid: int) -> None:
    """The client's own thread has loaded what may be needed later: it then waits on a second connection."""
    folder = f"/proc/{pid}/fd"
    wait_until(
        lambda: sum(_is_socket(f"{folder}/{name}") for name in os.listdir(folder)) >= WATCHED,
        "the client watches the daemon",
    )


def _is_socket(path: str) -> bool:
    try:
        return os.readlink(path).startswith("socket:")
    except OSError:
        return False


def test_the_relay_key_works_and_says_what_cannot(terminals: Terminals, installation: Installation) -> None:
    """What is in memory goes on; what would have to be started is said in a sentence."""
    child = attach(terminals, installation)
    installation.move_away()
    child.send("\x1d/status\r")
    child.expect("session [0-9A-Z]+: ready under demo")
    child.send("q")
    child.send("\x1d/limits\r")
    child.expect("it is no longer installed in")
    child.send("q")
    child.send("\x1d/use understudy\r")
    child.expect("agent-relay is no longer installed in")
    child.send("q")
    see(child, "demo heard you", typed="hello\r")
    child.send("\x1d/detach\r")
    child.expect("Detached; demo keeps working")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_the_end_of_an_agent_and_of_its_limit_are_told(
    terminals: Terminals, installation: Installation
) -> None:
    """The agent lives on at its limit; with its end the terminal is left in order, as for any rest."""
    child = attach(terminals, installation)
    installation.move_away()
    child.send("limit\r")
    child.expect(r"No agent is available \(understudy: agent-relay is no longer installed in")
    press(child, "v", r"ready \| demo")
    # A key that came right after the resting screen was kept for the agent.
    child.send(f"{20 * chr(127)}/quit\r")
    child.expect("l leave")
    press(child, "l", pexpect.EOF)
    child.close()
    assert child.signalstatus is None
    assert child.exitstatus == 3
    assert "Traceback" not in str(child.before)


@pytest.mark.size("test")
def test_a_command_whose_files_have_gone_says_so(terminals: Terminals, installation: Installation) -> None:
    """Python would print where it looked; a person wants to know what has happened."""
    code = (
        "import shutil, sys, agent_relay.faces.cli.dispatch as door; "
        f"shutil.rmtree({installation.folder!r}); sys.exit(door.run(['sessions']))"
    )
    said, status = pexpect.run(
        f'{sys.executable} -c "{code}"',
        withexitstatus=True,
        cwd=terminals.world.cwd,
        env=terminals.environ() | installation.environ,
        timeout=60,
    )
    assert status == 69
    assert said.decode().startswith("agent-relay: agent-relay is no longer installed in ")
