"""Daemons that freeze or are killed in the middle of their work, and their sessions, for tests."""

import contextlib

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import begin, restart, say
from tests.support.relay_world import RelayWorld, is_daemons, is_stopped, wait_until

BROUGHT = {"BROUGHT_BY_THE_USER": "a key"}
"""What only the terminal of the user has, and no daemon of these tests."""


def begin_under(world: RelayWorld, point: str) -> tuple[str, int]:
    """A session that is ready under a daemon that will freeze at `point` of its handoff; and that daemon."""
    world.start_daemon()
    session = begin(world, env={**world.environ, **BROUGHT})
    world.kill_daemons()
    return session, world.start_daemon(pause_at=point).pid


def freeze_in_failover(world: RelayWorld, point: str) -> tuple[str, int]:
    """A session whose agent has hit its limit, and its daemon, which froze at `point` of what follows."""
    session, daemon = begin_under(world, point)
    say(world, session, "please greet nobody")
    wait_until(lambda: is_stopped(daemon), f"the daemon froze {point}")
    return session, daemon


def crash(world: RelayWorld, point: str, operation: str, **fields: object) -> None:
    """The daemon is killed at `point` of what it was asked for, and another one takes over."""
    freeze_asked(world, point, operation, **fields)
    restart(world)


def freeze_asked(world: RelayWorld, point: str, operation: str, **fields: object) -> int:
    """The daemon that froze at `point` of what it was asked for."""
    world.kill_daemons()
    daemon = world.start_daemon(pause_at=point)
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request(operation, limit_s=0.5, **fields)
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
    return daemon.pid


def is_settled(session: Session) -> bool:
    """Whether nothing is under way."""
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


def assert_handed_over(found: Session) -> None:
    """One successor is at work, by one handoff and one packet, with what the user's terminal brought."""
    assert (found.agent, found.state in (State.READY, State.BUSY)) == ("understudy", True)
    assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
    assert (len(found.done), found.packets) == (1, 1)
    assert has_environment(found)


def end(world: RelayWorld, session: str) -> None:
    """Ending the session leaves no process but the daemon."""
    if world.session(session).state is not State.ENDED:
        world.ask("session.stop", session=session)
        world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    wait_until(
        lambda: all(is_daemons(command) for command in world.processes().values()),
        "no agent and no holder is left",
    )


def has_environment(session: Session) -> bool:
    """Whether the living agent has what the user's terminal brought."""
    leg = session.living_leg
    assert leg is not None
    with open(f"/proc/{leg.child_pid}/environ", "rb") as file:
        return b"BROUGHT_BY_THE_USER=a key" in file.read().split(b"\0")
