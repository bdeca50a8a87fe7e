"""A machine whose second agent can be kept from getting ready, so that a handoff to it hangs."""

import contextlib
import os
import shutil
from collections.abc import Iterator

from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import CHECKOUT, RelayWorld


@contextlib.contextmanager
def mutable_world() -> Iterator[WorkingWorld]:
    """A machine whose understudy never shows a prompt while the file `mute` stands in its home."""
    with working_world(starts=False) as world:
        adapter = f"{world.folders.config}/adapters/understudy"
        shutil.copytree(os.path.join(CHECKOUT, "adapters", "understudy"), adapter)
        agent = os.path.join(CHECKOUT, "adapters", "demo", "agent.py")
        with open(f"{adapter}/start.sh", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\n[ -e "$HOME/mute" ] && exec sleep 1000\nexec "{agent}" "$@"\n')
        os.chmod(f"{adapter}/start.sh", 0o700)
        with open(f"{adapter}/adapter.toml", encoding="utf-8") as file:
            text = file.read().replace('"../demo/agent.py"', '"./start.sh"')
        with open(f"{adapter}/adapter.toml", "w", encoding="utf-8") as file:
            file.write(text)
        set_mute(world, mute=True)
        yield world


def set_mute(world: RelayWorld, *, mute: bool) -> None:
    path = f"{world.home}/mute"
    if mute:
        with open(path, "w", encoding="utf-8"):
            pass
    else:
        os.unlink(path)


def hand_over(world: RelayWorld, **terms: object) -> tuple[str, str]:
    """A session, and its handoff, whose successor lives; one that is mute is not ready for its packet."""
    world.start_daemon()
    session = str(world.open("demo")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    world.open("understudy", session=session, **terms)
    world.wait_for(session, lambda now: now.agent == "understudy" and is_alive(now), "it lives")
    # From the journal: one that is not mute may have confirmed it already.
    (begun,) = (event.body for event in world.events(session) if isinstance(event.body, HandoffBegun))
    return session, begun.handoff


def is_alive(session: Session) -> bool:
    return session.living_leg is not None and session.living_leg.child_pid > 0


def is_at_rest(session: Session) -> bool:
    return session.is_held and session.living_leg is None and session.handoff is None
