"""Terminals that die, each in its own way, in the middle of a failover: the session goes on without."""

import contextlib
import os
import signal

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.crashes import begin_under
from tests.support.person import Person
from tests.support.relay_world import is_stopped, wait_until
from tests.support.seats import AGENTS, assert_given_back, close_window, seat, seated_world
from tests.support.sizes import sized

ENDS = (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT, None)
"""By which Unix signal a terminal's client ends; `None` where its window is closed."""


def end_client(person: Person, number: signal.Signals | None) -> None:
    """The client is gone, as a shell would report it; the terminal is the person's own again."""
    if number is None:
        close_window(person)
        assert person.wait_for_end() == 129
        return
    os.kill(person.pid, number)
    assert person.wait_for_end() == 128 + number
    if number != signal.SIGKILL:
        assert_given_back(person)


def is_handed_over(session: Session) -> bool:
    return session.handoff is None and session.agent == "understudy" and session.state is State.READY


POINTS = ("before handoff.begun", "after handoff.stopped", "after leg.started")


@pytest.mark.parametrize("point", sized(POINTS, ["after handoff.stopped"]))
def test_a_failover_needs_no_terminal(point: str) -> None:
    """The laptop is closed in the very second of the limit; whoever comes back finds the successor."""
    with seated_world() as world, contextlib.ExitStack() as stack:
        session, daemon = begin_under(world, point)
        people = [stack.enter_context(seat(world, "attach")) for _ in ENDS]
        for person in people:
            person.wait_for("ready | demo")
        people[0].type(b"please limit\r")
        wait_until(lambda: is_stopped(daemon), f"the daemon froze {point}")
        for person, number in zip(people, ENDS, strict=True):
            person.look()
            end_client(person, number)
        os.kill(daemon, signal.SIGCONT)
        found = world.wait_for(session, is_handed_over, "the failover is finished")
        assert [leg.agent for leg in found.legs] == list(AGENTS)
        with seat(world, "attach") as person:
            person.wait_for("understudy goes on")
            person.wait_for("ready | understudy")
            person.type(b"/quit\r")
            assert person.wait_for_end() == 0
            assert_given_back(person)
