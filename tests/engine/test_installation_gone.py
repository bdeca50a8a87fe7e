"""Our own installation is moved, replaced or removed under a daemon with agents at work."""

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.system.processes import is_alive
from tests.house import tree
from tests.support.at_work import WorkingWorld, working_world
from tests.support.installations import Installation
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

GONE = "agent-relay is no longer installed in "


@dataclass
class Upgraded:
    """A world whose daemon runs from an installation of its own, its agents from the user's folder."""

    world: WorkingWorld
    installation: Installation


@pytest.fixture
def upgraded() -> Iterator[Upgraded]:
    """Two scripted agents that stay where they are, and a daemon that does not."""
    with working_world(starts=False) as world:
        installation = Installation(f"{world.folder}/installed")
        for agent in ("demo", "understudy"):
            own = f"{world.folders.config}/adapters/{agent}"
            shutil.copytree(os.path.join(tree.CHECKOUT, "adapters", agent), own)
        world.daemon_program = installation.daemon
        world.start_daemon()
        wait_for_the_rest(world)
        yield Upgraded(world, installation)


def wait_for_the_rest(world: WorkingWorld) -> None:
    """Returns once the daemon has loaded what it may need later: nobody upgrades within a second."""
    log = Path(world.folders.daemon_log)
    wait_until(lambda: "preloaded " in log.read_text("utf-8"), "the daemon loaded the rest")


NOTING = """
import os, sys
entry, log = {entry!r}, {log!r}
fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
def note(event, args):
    if event == "import":
        os.write(fd, str(args[0]).encode() + b"\\n")
sys.addaudithook(note)
__file__, __package__ = entry, None
with open(entry, encoding="utf-8") as file:
    code = compile(file.read(), entry, "exec")
exec(code)
"""


def lives(session: Session) -> bool:
    """Whether the newest agent's process lives."""
    leg = session.living_leg
    return leg is not None and is_alive(leg.child_pid, leg.child_born)


def test_nobody_is_stopped_for_a_successor_that_could_not_start(upgraded: Upgraded) -> None:
    """A refusal costs nothing; half a handoff costs the agent. `daemon status` is where one looks.

    The agent at its limit is all there is; the session rests, says why, and goes on when it can.
    """
    world = upgraded.world
    session = world.begin()
    upgraded.installation.move_away()
    assert str(world.ask("daemon.status")["trouble"]).startswith(GONE)
    with pytest.raises(RelayError, match=GONE):
        world.open("understudy", session=session, force=True)
    assert lives(world.session(session))
    world.say(session, "hello")
    found = world.finish_turn(session)
    assert (found.agent, found.handoff) == ("demo", None)
    assert GONE in str(world.where(session, "trouble"))
    world.say(session, "out")
    found = world.wait_state(session, State.RESTING)
    assert lives(found)
    assert found.limit is not None
    assert [why.partition(GONE)[:2] for why in found.skipped] == [("understudy: ", GONE)]
    assert GONE in str(world.where(session, "message"))
    upgraded.installation.bring_back()
    world.open("understudy", session=session)
    world.wait_handed_over(session)


def test_an_installation_that_was_replaced_or_comes_back_at_once_starts_successors(
    upgraded: Upgraded,
) -> None:
    """Other files at the same place are as good, if they can be started.

    An upgrade removes before it writes, and a limit does not wait for its end.
    """
    world = upgraded.world
    session = world.begin()
    shutil.rmtree(upgraded.installation.folder)
    installation = Installation(upgraded.installation.folder, version="9.9.9")
    world.run_out(session)
    session = world.begin(new=True)
    installation.move_away()
    back = threading.Timer(2, installation.bring_back)
    back.start()
    try:
        world.run_out(session)
    finally:
        back.join()


def test_a_daemon_at_work_looks_for_no_module_any_more(world: WorkingWorld) -> None:
    """What a limit, a packet, a successor and a turn need is in memory before anybody upgrades."""
    script, log = Path(world.folder, "noting.py"), Path(world.folder, "imported")
    script.write_text(NOTING.format(entry=world.daemon_program, log=str(log)), "utf-8")
    world.daemon_program = str(script)
    world.start_daemon()
    wait_for_the_rest(world)
    before = log.read_text("utf-8").splitlines()
    session = world.begin_worked("hello")
    world.run_out(session)
    asked = {"cwd": world.project, "env": world.environ, "message": "", "waits": False}
    turn = str(world.ask("run.begin", agent="understudy", task="hello", **asked)["session"])
    world.wait_state(turn, State.ENDED)
    assert "trouble" not in world.ask("daemon.status")
    world.stop(session)
    assert log.read_text("utf-8").splitlines()[len(before) :] == []
