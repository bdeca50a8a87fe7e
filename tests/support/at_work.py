"""People at work with two scripted agents under a real daemon."""

import contextlib
from collections.abc import Iterator

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.handoffs import write_screenplays
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, relay_world

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
WARNING = {"warn": "You've used 92% of your session limit"}
SCENES = [
    {"when": "near", "do": [WARNING, {"say": "warned"}]},
    {"when": "count", "do": [{"used": 42}, {"say": "counted"}]},
    {"when": "out", "do": [LIMIT]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


@contextlib.contextmanager
def working_world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        made.start_daemon()
        yield made


def begin(world: RelayWorld, **wish: object) -> str:
    """A session whose first agent is ready."""
    session = str(world.open("demo", **wish)["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    return session


def folder_of(world: RelayWorld, session: str) -> str:
    leg = world.session(session).living_leg
    assert leg is not None
    return f"{world.folders.legs}/{leg.id}"


def restart(world: RelayWorld) -> None:
    """The daemon is killed and another one takes over."""
    world.kill_daemons()
    world.start_daemon()


def say(world: RelayWorld, session: str, text: str) -> None:
    """A person types `text` into the session's agent."""
    type_into(folder_of(world, session), text.encode() + b"\r")


def has_taken_over(session: Session) -> bool:
    return session.agent == "understudy" and session.handoff is None and len(session.done) == 1


def finish_turn(world: RelayWorld, session: str) -> Session:
    """The session once its first agent took a prompt and is ready again."""
    world.wait_for(session, lambda found: found.leg is not None and found.leg.was_busy, "a turn began")
    return world.wait_for(session, lambda found: found.state is State.READY, "the turn is over")
