"""Several terminals on one session, of any size and changing it, before, during and after a handoff."""

import os
import signal

import pytest

from agent_relay.domain.state import State
from tests.support.crashes import begin_under
from tests.support.leg_client import ask_holder
from tests.support.person import Person
from tests.support.relay_world import RelayWorld, is_stopped, wait_until
from tests.support.seats import assert_given_back, find_session, seat, seated_world

DETACH = b"\x1d/detach\r"


def look_alike(*people: Person) -> None:
    """Everybody sees the same rows, once everything has been read."""

    def is_so() -> bool:
        for person in people:
            person.look()
        return len({person.text() for person in people}) == 1

    people[0].wait_until(is_so, "the same screen at every terminal")


def read_size(world: RelayWorld, session: str) -> tuple[object, object]:
    """Rows and columns of the living leg's terminal."""
    leg = world.session(session).living_leg
    assert leg is not None
    answer = ask_holder(f"{world.folders.legs}/{leg.id}", "status")
    return answer["rows"], answer["cols"]


@pytest.mark.size("test")
def test_terminals_on_one_session_go_through_a_handoff_together() -> None:
    """One on the desk, one on the sofa, one opened because nothing seemed to happen."""
    with seated_world() as world:
        _, daemon = begin_under(world, "after handoff.stopped")
        with seat(world, "attach") as first, seat(world, "attach") as second:
            for person in (first, second):
                person.wait_for("ready | demo")
            look_alike(first, second)
            first.type(b"please limit\r")
            wait_until(lambda: is_stopped(daemon), "the agent has left, nobody has come")
            with seat(world, "attach") as third:
                os.kill(daemon, signal.SIGCONT)
                for person in (first, second, third):
                    person.wait_for("understudy goes on")
                    person.wait_for("ready | understudy")
                look_alike(first, second, third)
                assert "→ understudy".encode() in first.received
                assert "→ understudy".encode() in second.received
                second.type(DETACH)
                assert second.wait_for_end() == 0
                assert_given_back(second)
                third.type(b"hello\r")
                for person in (first, third):
                    person.wait_for("understudy heard you")
                look_alike(first, third)
                first.type(b"/quit\r")
                assert (first.wait_for_end(), third.wait_for_end()) == (0, 0)
                assert_given_back(first)
                assert_given_back(third)


@pytest.mark.parametrize("point", ["before leg.ended", "after leg.started"])
def test_a_window_resized_between_two_agents_has_its_size_in_the_second(point: str) -> None:
    """Nobody holds a window still because an agent has hit its limit."""
    with seated_world() as world:
        session, daemon = begin_under(world, point)
        with seat(world, "attach", shows="ready | demo") as person:
            person.type(b"please limit\r")
            wait_until(lambda: is_stopped(daemon), "the daemon is in the middle")
            person.resize(rows=17, cols=61)
            os.kill(daemon, signal.SIGCONT)
            person.wait_for("understudy goes on")
            person.wait_for("ready | understudy")
            assert read_size(world, session) == (17, 61)


def test_a_window_dragged_all_through_a_handoff_ends_in_its_last_size() -> None:
    """A tiling window manager sends a size a frame."""
    with seated_world() as world, seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"please limit\r")
        sizes = 0

        def drag() -> bool:
            nonlocal sizes
            sizes += 1
            person.resize(rows=10 + sizes % 30, cols=30 + sizes * 7 % 120)
            return "understudy goes on" in person.text()

        person.wait_until(drag, "the successor")
        person.resize(rows=23, cols=77)
        person.wait_for("ready | understudy")
        session = find_session(world)
        wait_until(lambda: read_size(world, session) == (23, 77), "the agent has the last size")
        person.type(b"hello\r", shows="understudy heard you")
        assert sizes > 20


@pytest.mark.parametrize(("rows", "cols"), [(5, 20), (200, 500), (2, 12)])
def test_a_terminal_of_any_size_goes_through_a_handoff(rows: int, cols: int) -> None:
    """A split pane, a projector wall, a phone."""
    with seated_world() as world, seat(world, "agent", "demo", rows=rows, cols=cols) as person:
        person.wait_for("ready"[: cols - 5])
        session = find_session(world)
        person.type(b"\x1d", shows="relay")
        person.type(b"/status\r", shows="any key")
        person.type(b"q")
        person.wait_until(lambda: "any" not in person.text(), "the agent's screen")
        person.type(b"please limit\r")
        world.wait_for(session, lambda found: len(found.done) == 1, "the handoff is made")
        world.wait_for(session, lambda found: found.state is State.READY, "the successor is ready")
        person.wait_for("ready | understudy"[: cols - 3])
        assert read_size(world, session) == (rows, cols)
        person.type(DETACH)
        assert person.wait_for_end() == 0
        assert_given_back(person)
