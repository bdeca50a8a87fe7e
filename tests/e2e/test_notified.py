"""Whoever looks away from an attached terminal is called by it when the work changes hands."""

from collections.abc import Iterator

import pytest

from tests.support.relay_world import RelayWorld
from tests.support.seats import seat, seated_world


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A world whose first agent meets its limit."""
    with seated_world() as made:
        yield made


def test_an_attached_terminal_calls_its_person_at_a_handover(world: RelayWorld) -> None:
    """The bell, and a notification as this terminal shows them: once, with who goes on and why."""
    told = b"\x07\x1b]9;project: understudy took over: demo hit its session limit.\x1b\\"
    with seat(world, "agent", "demo", variables={"TERM_PROGRAM": "iTerm.app"}) as person:
        person.wait_for("ready | demo")
        person.type(b"limit\r")
        person.wait_for("understudy goes on")
        person.wait_until(lambda: told in person.received, "the terminal's call")
        person.type(b"hello\r")
        person.wait_for("understudy heard you")
        assert person.received.count(told) == 1
