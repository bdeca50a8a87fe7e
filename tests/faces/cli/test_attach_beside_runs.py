"""`agent-relay attach` in a repository where agents work without a screen, too."""

import sys

import pexpect
import pytest

from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import begin, working_world
from tests.support.handoffs import write_screenplays

pytestmark = pytest.mark.size("test")


def test_attach_means_the_session_that_has_a_screen() -> None:
    """A script's turn may be the newest session here, and is nothing to look at."""
    with working_world() as world:
        mine = begin(world)
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"do": [{"wait_s": 60}]}])
        begun = world.ask("run.begin", agent="demo", task="hello", cwd=world.project, env=world.environ)
        other = str(begun["session"])
        world.wait_for(other, lambda found: found.state is State.BUSY, "the script's agent works")
        person = pexpect.spawn(
            sys.executable,
            ["-m", "agent_relay", "attach"],
            cwd=world.project,
            env={**world.environ, "PYTHONPATH": tree.CHECKOUT},
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=120,
        )
        person.expect("a scripted agent, no account needed")
        world.ask("session.stop", session=mine)
        person.expect(pexpect.EOF)
        person.close()
        assert world.session(other).state is State.BUSY
