"""`kill -9` of daemon, holder and agent at every step of a failover: one successor, nothing to repair."""

import os
import signal

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.store.session_index import read_resting
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, is_daemons, is_stopped, kill, relay_world, wait_until

EVENTS = (
    "signal.seen",
    "handoff.begun",
    "leg.ended",
    "handoff.stopped",
    "packet.published",
    "leg.starting",
    "leg.started",
    "leg.ready",
    "leg.busy",
    "handoff.delivered",
    "handoff.confirmed",
)
EFFECTS = ("NoteRest", "StopLeg", "PublishPacket", "SpawnLeg", "DeliverPacket")
POINTS = [f"{side} {name}" for name in (*EVENTS, *EFFECTS) for side in ("before", "after")]


def begin(world: RelayWorld, pause_at: str) -> tuple[str, int]:
    """A session whose first agent is about to hit its limit under a daemon that freezes at `pause_at`."""
    first = world.start_daemon()
    brought = {**world.environ, "BROUGHT_BY_THE_USER": "a key"}
    session = str(world.open("demo", env=brought)["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    kill(first.pid)
    first.wait()
    daemon = world.start_daemon(pause_at=pause_at)
    type_prompt(world, session, "please greet nobody")
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {pause_at}")
    return session, daemon.pid


def type_prompt(world: RelayWorld, session: str, text: str) -> None:
    """A person types `text` into the session's agent."""
    leg = world.session(session).living_leg
    assert leg is not None
    type_into(f"{world.folders.legs}/{leg.id}", text.encode() + b"\r")


def is_settled(session: Session) -> bool:
    return session.handoff is None and session.state in (State.READY, State.BUSY, State.RESTING, State.ENDED)


def settle(world: RelayWorld, session: str) -> Session:
    """The session once nothing more will happen to it."""
    over = (State.RESTING, State.ENDED)
    found = world.wait_for(
        session,
        lambda found: is_settled(found) and (found.agent == "understudy" or found.state in over),
        "the failover is settled",
    )
    wait_until(lambda: len(world.find_agents()) <= 1, "no second agent is left")
    return found


def end(world: RelayWorld, session: str) -> None:
    """Ending the session leaves no process but the daemon."""
    if world.session(session).state is not State.ENDED:
        world.ask("session.stop", session=session)
        world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    wait_until(
        lambda: all(is_daemons(command) for command in world.processes().values()),
        "no agent and no holder is left",
    )


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_killed_at_any_step_is_succeeded_by_one_that_finishes_the_failover(point: str) -> None:
    """The agent's limit may come in the very second the daemon is upgraded, or the machine kills it."""
    with relay_world() as world:
        session, daemon = begin(world, point)
        kill(daemon)
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}") or is_zombie(daemon), "the daemon is gone")
        world.start_daemon()
        found = settle(world, session)
        assert (found.agent, found.state in (State.READY, State.BUSY)) == ("understudy", True)
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
        assert len(found.done) == 1
        assert found.packets == 1
        assert has_environment(found)
        wait_until(lambda: read_resting(world.folders.ledger), "the ledger knows who rests")
        assert [rest["agent"] for rest in read_resting(world.folders.ledger)] == ["demo"]
        end(world, session)


@pytest.mark.parametrize("victim", ["holder", "agent"])
@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith("after")])
def test_a_holder_or_agent_killed_at_any_step_leaves_one_agent_or_a_rest_that_says_why(
    point: str, victim: str
) -> None:
    """Whatever dies, the session is never stuck in between and never has two agents."""
    with relay_world() as world:
        session, daemon = begin(world, point)
        leg = world.session(session).living_leg
        killed = leg.id if leg is not None and leg.child_pid else ""
        if leg is not None and killed:
            kill(leg.holder_pid if victim == "holder" else leg.child_pid)
        os.kill(daemon, signal.SIGCONT)
        world.wait_for(
            session,
            lambda now: all(leg.is_over for leg in now.legs if leg.id == killed),
            "the death is known",
        )
        found = settle(world, session)
        assert found.state in (State.READY, State.BUSY, State.RESTING, State.ENDED)
        if found.state in (State.RESTING, State.ENDED):
            assert found.why
            assert world.find_agents() == []
        answer = world.open("understudy", session=session, yes=True)
        assert answer["session"] == session
        world.wait_for(
            session,
            lambda now: now.agent == "understudy" and now.living_leg is not None and is_settled(now),
            "the session goes on without repair",
        )
        end(world, session)


def has_environment(session: Session) -> bool:
    """Whether the living agent has what the user's terminal brought, which no daemon here has."""
    leg = session.living_leg
    assert leg is not None
    with open(f"/proc/{leg.child_pid}/environ", "rb") as file:
        return b"BROUGHT_BY_THE_USER=a key" in file.read().split(b"\0")


def is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True
