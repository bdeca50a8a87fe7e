"""A packet from another machine is picked up by the agent it is for, or by any other, exactly once."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.seats import run
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

WORK = {
    "to": "understudy",
    "from": "gamma",
    "task": {"title": "Paint the shed", "intent": "Paint the shed green"},
    "context": {"current_state": "The door is done.", "next_step": "Begin with the roof."},
}


def bring(world: WorkingWorld, *words: str) -> str:
    """The session made of the file."""
    path = f"{world.folder}/work.json"
    Path(path).write_text(json.dumps(WORK), "utf-8")
    done = run(world, "packet", "import", path, "--json", *words)
    assert (done.status, done.err) == (0, "")
    return str(json.loads(done.out)["session"])


@pytest.mark.parametrize("agent", sized(["understudy", "demo"], ["understudy"]))
def test_an_imported_packet_starts_whoever_is_asked(world: WorkingWorld, agent: str) -> None:
    """The one it is for reads it as it stands; another one gets it written for itself."""
    session = bring(world)
    world.open(agent, session=session)
    found = world.wait_for(
        session, lambda now: now.agent == agent and len(now.done) == 1, f"{agent} took over"
    )
    told = world.read_record(session)
    assert "Begin with the roof." in told
    assert "The door is done." in told
    assert [leg.agent for leg in found.legs] == ["imported", agent]
    assert found.packets == (1 if agent == "understudy" else 2)


def test_two_who_start_an_imported_packet_get_one_successor(world: WorkingWorld) -> None:
    """Edited and stale as it may be."""
    session = bring(world)
    text = world.path(session, "resume", "0001-understudy.md")
    text.write_text(text.read_text("utf-8").replace("The door is done.", ""), "utf-8")
    answers = world.open_both("understudy", {"session": session}, {"session": session})
    found = world.wait_handed_over(session)
    assert [leg.agent for leg in found.legs] == ["imported", "understudy"]
    assert set(answers) <= {session, "a handoff to understudy is under way"}
    assert "The door is done." not in world.read_record(session)


POINTS = (
    "before handoff.begun",
    "before PublishPacket",
    "after packet.published",
    "after leg.starting",
    "before DeliverPacket",
)


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_killed_while_an_edited_packet_is_picked_up_leaves_nothing_to_repair(
    world: WorkingWorld, point: str
) -> None:
    """One successor, told what the user left; the packet is neither lost nor written a second time."""
    session = bring(world)
    done = run(world, "packet", "edit", session, EDITOR="sed -i /door/d")
    assert (done.status, done.err) == (0, "")
    daemon = world.start_daemon(pause_at=point)
    with ThreadPoolExecutor(1) as terminal:
        terminal.submit(world.open_both, "understudy", {"session": session})
        world.wait_frozen(daemon)
        world.kill_daemons()
    world.start_daemon()
    if world.session(session).state is State.ENDED:
        assert point == "before handoff.begun"
        world.open("understudy", session=session)
    found = world.wait_handed_over(session)
    assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
    told = world.read_record(session)
    assert "Begin with the roof." in told
    assert "The door is done." not in told
    assert found.packets == 1
    assert sorted(os.listdir(world.path(session, "resume"))) == [
        ".0001-understudy.published.json", "0001-understudy.json", "0001-understudy.md", "understudy.md",
    ]  # fmt: skip
    refused = run(world, "packet", "edit", session, EDITOR="true")
    assert (refused.status, "was given to its agent already" in refused.err) == (2, True)
