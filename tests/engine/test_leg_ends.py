"""An agent is ended by the pid the journal has of it, where that can mean the same process still."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.session import Leg
from agent_relay.domain.values import UNKNOWN_OWNER, replace
from agent_relay.engine.legs.shutdown import end_agent
from agent_relay.system.clock import read_boot_moment
from agent_relay.system.processes import born, is_alive

pytestmark = pytest.mark.size("test")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_relay.engine.services import Services

THREE_HOURS = timedelta(hours=3)


@pytest.fixture
def agent() -> "Iterator[Leg]":
    """A process that waits, as a leg of a journal that does not say in which boot it was started."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    start = born(child.pid)
    assert start is not None
    yield Leg("L", "demo", 1, datetime.now(UTC), child_pid=child.pid, child_born=start)
    child.kill()
    child.communicate()


def end(leg: Leg, booted_at: datetime) -> bool:
    """Whether the leg's agent was ended, by a daemon that noted `booted_at` when it began."""
    services = cast("Services", SimpleNamespace(owner=UNKNOWN_OWNER, booted_at=booted_at))
    asyncio.run(end_agent(services, leg))
    return not is_alive(leg.child_pid, leg.child_born)


def test_an_agent_is_ended_by_a_daemon_that_began_before_the_clock_was_set_back(agent: Leg) -> None:
    """Its start was moved back with the clock; the boot the daemon noted by the old time lies after it."""
    assert end(agent, read_boot_moment() + THREE_HOURS + timedelta(days=3650))


def test_an_agent_is_ended_by_a_daemon_that_began_before_the_clock_was_set_ahead(agent: Leg) -> None:
    """The boot reckoned by the new time lies after the start; the one the daemon noted does not."""
    early = replace(agent, starting_at=read_boot_moment() - THREE_HOURS)
    assert end(early, early.starting_at - timedelta(minutes=1))


def test_a_pid_noted_before_the_boot_by_either_time_is_left_alone(agent: Leg) -> None:
    """It may be anybody's by now."""
    early = replace(agent, starting_at=read_boot_moment() - THREE_HOURS)
    assert not end(early, read_boot_moment())
