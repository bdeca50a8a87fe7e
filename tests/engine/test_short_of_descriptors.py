"""A daemon that runs out of descriptors in the middle of a handoff makes it as soon as it has some again."""

import resource
from pathlib import Path

import pytest

from agent_relay.domain.session import Session
from tests.support.at_work import WorkingWorld, has_taken_over
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")


def limit_descriptors(world: WorkingWorld, most: int) -> None:
    """The daemon may open no descriptor of that number or above; those it has stay open."""
    pid = world.daemons[-1].pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(most, hard), hard))


def count_refusals(world: WorkingWorld) -> int:
    """How often the daemon's log says that something could not be done now."""
    text = Path(world.folders.daemon_log).read_text("utf-8")
    return sum(text.count(event) for event in ("not-done session=", "holder-silent", "end-waits leg="))


def is_named(session: Session, *names: str) -> bool:
    return session.handoff is not None and session.handoff.step.value in names


@pytest.mark.parametrize("step", ["begun", "published", "spawning"])
def test_a_handoff_that_lacked_descriptors_is_made_once_there_are_some(
    world: WorkingWorld, step: str
) -> None:
    """Other programs of the user open many files for a moment; the session must not hang for ever after."""
    session = world.begin()
    world.say(session, "out of everything")
    world.wait_for(session, lambda now: is_named(now, step) or has_taken_over(now), f"the handoff is {step}")
    limit_descriptors(world, 4)
    before = count_refusals(world)
    wait_until(
        lambda: count_refusals(world) > before or has_taken_over(world.session(session)),
        "something could not be done, or nothing was left to do",
    )
    limit_descriptors(world, 1 << 20)
    found = world.wait_handed_over(session)
    assert len(found.done) == 1
    world.stop(session)
