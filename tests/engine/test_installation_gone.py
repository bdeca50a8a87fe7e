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
from tests.support.at_work import SCENES, begin, finish_turn, has_taken_over, say
from tests.support.handoffs import write_screenplays
from tests.support.installations import Installation
from tests.support.relay_world import RelayWorld, relay_world, wait_until

pytestmark = pytest.mark.size("test")

GONE = "agent-relay is no longer installed in "


@dataclass
class Upgraded:
    """A world whose daemon runs from an installation of its own, its agents from the user's folder."""

    world: RelayWorld
    installation: Installation


@pytest.fixture
def upgraded() -> Iterator[Upgraded]:
    """Two scripted agents that stay where they are, and a daemon that does not."""
    with relay_world() as world:
        installation = Installation(f"{world.folder}/installed")
        for agent in ("demo", "understudy"):
            own = f"{world.folders.config}/adapters/{agent}"
            shutil.copytree(os.path.join(tree.CHECKOUT, "adapters", agent), own)
        world.daemon_program = installation.daemon
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES)
        world.start_daemon()
        wait_for_the_rest(world)
        yield Upgraded(world, installation)


def wait_for_the_rest(world: RelayWorld) -> None:
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


def test_at_a_limit_nobody_is_stopped_for_a_successor_that_could_not_start(upgraded: Upgraded) -> None:
    """The agent at its limit is all there is; the session rests, says why, and goes on when it can."""
    world = upgraded.world
    session = begin(world)
    upgraded.installation.move_away()
    say(world, session, "out")
    found = world.wait_for(session, lambda now: now.state is State.RESTING, "it rests")
    assert lives(found)
    assert found.limit is not None
    assert [why.partition(GONE)[:2] for why in found.skipped] == [("understudy: ", GONE)]
    assert GONE in str(world.ask("where", session=session)["message"])
    upgraded.installation.bring_back()
    world.open("understudy", session=session)
    world.wait_for(session, has_taken_over, "the understudy took over")


def test_who_asks_for_a_handoff_is_told_and_the_agent_works_on(upgraded: Upgraded) -> None:
    """A refusal costs nothing; half a handoff costs the agent."""
    world = upgraded.world
    session = begin(world)
    upgraded.installation.move_away()
    with pytest.raises(RelayError, match=GONE):
        world.open("understudy", session=session, force=True)
    assert lives(world.session(session))
    say(world, session, "hello")
    found = finish_turn(world, session)
    assert (found.agent, found.handoff) == ("demo", None)
    assert GONE in str(world.ask("where", session=session)["trouble"])


def test_an_installation_that_comes_back_at_once_is_waited_for(upgraded: Upgraded) -> None:
    """An upgrade removes before it writes, and a limit does not wait for its end."""
    world = upgraded.world
    session = begin(world)
    upgraded.installation.move_away()
    back = threading.Timer(2, upgraded.installation.bring_back)
    back.start()
    try:
        say(world, session, "out")
        world.wait_for(session, has_taken_over, "the understudy took over")
    finally:
        back.join()


def test_an_installation_that_was_replaced_starts_successors(upgraded: Upgraded) -> None:
    """Other files at the same place are as good, if they can be started."""
    world = upgraded.world
    session = begin(world)
    shutil.rmtree(upgraded.installation.folder)
    Installation(upgraded.installation.folder, version="9.9.9")
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")


def test_a_daemon_at_work_looks_for_no_module_any_more() -> None:
    """What a limit, a packet, a successor and a turn need is in memory before anybody upgrades."""
    with relay_world() as world:
        script, log = Path(world.folder, "noting.py"), Path(world.folder, "imported")
        script.write_text(NOTING.format(entry=world.daemon_program, log=str(log)), "utf-8")
        world.daemon_program = str(script)
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES)
        world.start_daemon()
        wait_for_the_rest(world)
        before = log.read_text("utf-8").splitlines()
        session = begin(world)
        say(world, session, "hello")
        finish_turn(world, session)
        say(world, session, "out")
        world.wait_for(session, has_taken_over, "the understudy took over")
        asked = {"cwd": world.project, "env": world.environ, "message": "", "waits": False}
        turn = str(world.ask("run.begin", agent="understudy", task="hello", **asked)["session"])
        world.wait_for(turn, lambda now: now.state is State.ENDED, "the turn ended")
        assert "trouble" not in world.ask("daemon.status")
        world.ask("session.stop", session=session)
        world.wait_for(session, lambda now: now.state is State.ENDED, "the session ended")
        assert log.read_text("utf-8").splitlines()[len(before) :] == []


def test_the_daemon_says_that_its_installation_has_gone(upgraded: Upgraded) -> None:
    """`daemon status` is where one looks."""
    upgraded.installation.move_away()
    assert str(upgraded.world.ask("daemon.status")["trouble"]).startswith(GONE)
