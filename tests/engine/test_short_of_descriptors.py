"""A daemon that runs out of descriptors in the middle of a handoff makes it as soon as it has some again."""

import resource

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import begin, has_taken_over, say
from tests.support.relay_world import RelayWorld, wait_until

pytestmark = pytest.mark.size("test")


def limit_descriptors(world: RelayWorld, most: int) -> None:
    """The daemon may open no descriptor of that number or above; those it has stay open."""
    pid = world.daemons[-1].pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(most, hard), hard))


def count_refusals(world: RelayWorld) -> int:
    """How often the daemon's log says that something could not be done now."""
    with open(world.folders.daemon_log, encoding="utf-8") as file:
        text = file.read()
    return sum(text.count(event) for event in ("not-done session=", "holder-silent", "end-waits leg="))


def is_named(session: Session, *names: str) -> bool:
    return session.handoff is not None and session.handoff.step.value in names


@pytest.mark.parametrize("step", ["begun", "stopped", "published", "spawning", "spawned"])
def test_a_handoff_that_lacked_descriptors_is_made_once_there_are_some(world: RelayWorld, step: str) -> None:
    """Other programs of the user open many files for a moment; the session must not hang for ever after."""
    session = begin(world)
    say(world, session, "out of everything")
    world.wait_for(session, lambda now: is_named(now, step) or has_taken_over(now), f"the handoff is {step}")
    limit_descriptors(world, 4)
    before = count_refusals(world)
    wait_until(
        lambda: count_refusals(world) > before or has_taken_over(world.session(session)),
        "something could not be done, or nothing was left to do",
    )
    limit_descriptors(world, 1 << 20)
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert len(found.done) == 1
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda now: now.state is State.ENDED, "the session has ended")
