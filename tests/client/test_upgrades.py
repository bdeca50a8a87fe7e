"""Two versions of us side by side: the newer daemon takes the older one's place once, and agents run on."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.session import Session
from agent_relay.system.processes import is_alive
from tests.support.at_work import SCENES, begin, finish_turn, say
from tests.support.handoffs import write_screenplays
from tests.support.installations import Installation
from tests.support.relay_world import RelayWorld, relay_world

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and no daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        yield made


def install(world: RelayWorld, version: str) -> Installation:
    """A copy of our package with that version."""
    return Installation(f"{world.folder}/{version}", version=version)


def call(world: RelayWorld, installed: Installation, *words: str) -> subprocess.Popen[str]:
    """A command of that installation under way."""
    return subprocess.Popen(
        installed.command(*words),
        cwd=world.project,
        env=world.environ | installed.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def find_daemon(world: RelayWorld, installed: Installation) -> tuple[str, int]:
    """Version and pid of the daemon that `daemon start` of this installation comes to."""
    out, err = call(world, installed, "daemon", "start", "--json").communicate(timeout=120)
    assert err == ""
    found = json.loads(out)
    return found["version"], found["pid"]


def get_child(session: Session) -> tuple[int, int]:
    """The living agent's process."""
    leg = session.living_leg
    assert leg is not None
    return leg.child_pid, leg.child_born


def test_the_first_newer_client_replaces_the_daemon_and_agents_run_on(world: RelayWorld) -> None:
    """After an upgrade nobody restarts daemons by hand; the old client beside it must not fight."""
    old, new = install(world, "0.0.9"), install(world, "9.9.9")
    version, first = find_daemon(world, old)
    assert version == "0.0.9"
    session = begin(world)
    child = get_child(world.session(session))
    version, second = find_daemon(world, new)
    assert version == "9.9.9"
    assert second != first
    assert find_daemon(world, old) == ("9.9.9", second)
    assert find_daemon(world, new) == ("9.9.9", second)
    assert get_child(world.session(session)) == child
    assert is_alive(*child)
    say(world, session, "hello")
    assert finish_turn(world, session).agent == "demo"


@pytest.mark.size("every")
def test_newer_clients_at_once_replace_it_once(world: RelayWorld) -> None:
    """Terminals are many; one of them must not end the daemon that another has just started."""
    old, new = install(world, "0.0.9"), install(world, "9.9.9")
    find_daemon(world, old)
    clients = [call(world, new, "daemon", "start", "--json") for _ in range(5)]
    found = {client.communicate(timeout=120)[0] for client in clients}
    assert len(found) == 1
    assert json.loads(found.pop())["version"] == "9.9.9"


def test_a_newer_daemon_that_cannot_be_loaded_replaces_nobody(world: RelayWorld) -> None:
    """Half an upgrade must not end a daemon that works."""
    old, new = install(world, "0.0.9"), install(world, "9.9.9")
    first = find_daemon(world, old)
    Path(new.folder, "agent_relay", "daemon", "_application.py").write_text("import nothing_there\n", "utf-8")
    assert find_daemon(world, new) == first


@pytest.mark.size("every")
def test_a_daemon_of_an_older_protocol_is_replaced_too(world: RelayWorld) -> None:
    """It cannot even be asked; a newer one is left alone, and its client told so."""
    old, new = install(world, "0.0.9"), install(world, "9.9.9")
    wire = Path(old.folder, "agent_relay", "domain", "protocol", "wire.py")
    text = wire.read_text("utf-8")
    assert "WIRE_VERSION = 1\n" in text
    wire.write_text(text.replace("WIRE_VERSION = 1\n", "WIRE_VERSION = 0\n"), "utf-8")
    assert find_daemon(world, old)[0] == "0.0.9"
    newer = find_daemon(world, new)
    assert newer[0] == "9.9.9"
    client = call(world, old, "daemon", "start")
    _, err = client.communicate(timeout=120)
    assert client.returncode == 69
    assert "This agent-relay (0.0.9) is older than the daemon" in err
    assert find_daemon(world, new) == newer


def test_an_installation_without_its_daemon_says_so(world: RelayWorld) -> None:
    """`can't open file` is Python's word for it, and tells nobody what to do."""
    new = install(world, "9.9.9")
    Path(new.folder, "agent_relay", "daemon", "__main__.py").unlink()
    client = call(world, new, "daemon", "start")
    _, err = client.communicate(timeout=120)
    assert client.returncode == 69
    assert err.startswith("agent-relay: no daemon can be started: agent-relay is no longer installed in ")
