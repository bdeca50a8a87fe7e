"""A packet from another machine is picked up by the agent it is for, or by any other, exactly once."""

import json
import os
import threading

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import has_taken_over
from tests.support.relay_world import RelayWorld, is_stopped, kill, relay_world, wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("test")

WORK = {
    "to": "understudy",
    "from": "gamma",
    "task": {"title": "Paint the shed", "intent": "Paint the shed green"},
    "context": {"current_state": "The door is done.", "next_step": "Begin with the roof."},
}


def bring(world: RelayWorld, *words: str) -> str:
    """The session made of the file."""
    path = f"{world.folder}/work.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(WORK, file)
    done = run(world, "packet", "import", path, "--json", *words)
    assert (done.status, done.err) == (0, "")
    return str(json.loads(done.out)["session"])


def read_told(world: RelayWorld, found: Session) -> str:
    """All the newest agent was told, as it keeps it itself."""
    leg = found.legs[-1]
    with open(f"{world.home}/.demo-agent/{leg.agent}/{leg.native_id}.jsonl", encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("agent", ["understudy", "demo"])
def test_an_imported_packet_starts_whoever_is_asked(world: RelayWorld, agent: str) -> None:
    """The one it is for reads it as it stands; another one gets it written for itself."""
    session = bring(world)
    world.open(agent, session=session)
    found = world.wait_for(
        session, lambda now: now.agent == agent and len(now.done) == 1, f"{agent} took over"
    )
    told = read_told(world, found)
    assert "Begin with the roof." in told
    assert "The door is done." in told
    assert [leg.agent for leg in found.legs] == ["imported", agent]
    assert found.packets == (1 if agent == "understudy" else 2)


def test_two_who_start_an_imported_packet_get_one_successor(world: RelayWorld) -> None:
    """Edited and stale as it may be."""
    session = bring(world)
    text = f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.md"
    with open(text, encoding="utf-8") as file:
        left = file.read().replace("The door is done.", "")
    with open(text, "w", encoding="utf-8") as file:
        file.write(left)
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(world.open("understudy", session=session)["session"])
        except RelayError as error:
            answers.append(error.sentence)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert [leg.agent for leg in found.legs] == ["imported", "understudy"]
    assert set(answers) <= {session, "a handoff to understudy is under way"}
    assert "The door is done." not in read_told(world, found)


POINTS = [
    f"{side} {name}"
    for name in (
        "handoff.begun",
        "packet.published",
        "leg.starting",
        "PublishPacket",
        "SpawnLeg",
        "DeliverPacket",
    )
    for side in ("before", "after")
]


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_killed_while_an_edited_packet_is_picked_up_leaves_nothing_to_repair(point: str) -> None:
    """One successor, told what the user left; the packet is neither lost nor written a second time."""
    with relay_world() as world:
        session = bring(world)
        text = f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.md"
        done = run(world, "packet", "edit", session, EDITOR="sed -i /door/d")
        assert (done.status, done.err) == (0, "")
        daemon = world.start_daemon(pause_at=point)
        asking = threading.Thread(target=_ask, args=(world, session))
        asking.start()
        wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
        kill(daemon.pid)
        daemon.wait()
        asking.join()
        world.start_daemon()
        if world.session(session).state is State.ENDED:
            assert point == "before handoff.begun"
            world.open("understudy", session=session)
        found = world.wait_for(session, has_taken_over, "the understudy took over")
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
        told = read_told(world, found)
        assert "Begin with the roof." in told
        assert "The door is done." not in told
        assert found.packets == 1
        assert sorted(os.listdir(os.path.dirname(text))) == [
            ".0001-understudy.published.json", "0001-understudy.json", "0001-understudy.md", "understudy.md",
        ]  # fmt: skip
        refused = run(world, "packet", "edit", session, EDITOR="true")
        assert (refused.status, "was given to its agent already" in refused.err) == (2, True)


def _ask(world: RelayWorld, session: str) -> None:
    try:
        world.open("understudy", session=session)
    except RelayError:
        return
