"""What an earlier head of this repository left running and written is taken over by today's daemon."""

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator

import pytest

from agent_relay.domain.session import Session
from agent_relay.system.processes import is_alive
from tests.house import tree
from tests.support.at_work import SCENES, begin, has_taken_over, say
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, relay_world
from tests.support.seats import run

BEFORE_ROOMS = "48e28922~1"
"""The last head whose package was not yet a folder for each subject: another set of modules altogether."""


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon of the earlier head."""
    archive = subprocess.run(
        ["git", "archive", BEFORE_ROOMS, "agent_relay", "adapters"],
        cwd=tree.CHECKOUT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        pytest.skip(reason=f"this clone does not reach back to {BEFORE_ROOMS}")
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(f"{made.folder}/earlier", filter="data")
        today = made.daemon_program
        made.daemon_program = os.path.join(made.folder, "earlier", os.path.relpath(today, tree.CHECKOUT))
        made.start_daemon()
        made.daemon_program = today
        yield made


def get_child(session: Session) -> tuple[int, int]:
    """The living agent's process."""
    leg = session.living_leg
    assert leg is not None
    return leg.child_pid, leg.child_born


def test_a_live_session_of_the_head_before_the_rooms_goes_on_under_todays_daemon(world: RelayWorld) -> None:
    """Its daemon is killed; its holder, journal and packet are all that the next one has to go on with."""
    session = begin(world)
    say(world, session, "out")
    before = world.wait_for(session, has_taken_over, "the understudy took over under the earlier head")
    world.kill_daemons()
    world.start_daemon()
    assert is_alive(*get_child(before))
    assert get_child(world.session(session)) == get_child(before)
    shown = run(world, "packet", "show", session)
    assert (shown.status, shown.err) == (0, "")
    run(world, "limits", "clear", "demo")
    world.open("demo", session=session)
    after = world.wait_for(session, lambda found: len(found.done) == 2, "the second handoff")
    assert [handoff.to_agent for handoff in after.done] == ["understudy", "demo"]
    assert not is_alive(*get_child(before))
