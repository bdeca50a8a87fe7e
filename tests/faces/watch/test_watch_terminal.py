"""`agent-relay watch` on a real terminal: what it shows, and that the terminal is given back at its end."""

import os
import shlex
import signal
import sys
import termios
from collections.abc import Iterator

import pytest

from tests.support.at_work import WorkingWorld, working_world
from tests.support.person import Person, at_terminal
from tests.support.relay_world import CHECKOUT, is_stopped
from tests.support.seats import assert_given_back, relay, seat
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

LEFT = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
DRAWN = b"\x1b[?2026l"
EMPTY = "No session is running in this repository."
KEYS = "↑↓ session   q quit"
RAISES = """
from agent_relay.client.attach.tty import UserTerminal
from agent_relay.faces.watch._full_screen import FullScreen
with FullScreen(UserTerminal()):
    raise RuntimeError("a mistake of ours")
"""
WAYS = [
    (b"q", 0),
    (b"\x03", 130),
    (signal.SIGINT, 130),
    (signal.SIGTERM, 143),
    (signal.SIGHUP, 129),
    (signal.SIGQUIT, 131),
]


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A user with two scripted agents and a daemon."""
    with working_world() as made:
        yield made


@pytest.fixture(scope="module")
def idle() -> Iterator[WorkingWorld]:
    """The same user, for whom nothing runs: a world for all who only look at the terminal."""
    with working_world(starts=False) as made:
        yield made


def is_raw(person: Person) -> bool:
    """Whether the terminal shows no key by itself."""
    return not termios.tcgetattr(person.slave)[3] & termios.ECHO


@pytest.mark.size("test")
def test_a_session_is_shown_with_its_screen_in_eighty_columns(world: WorkingWorld) -> None:
    """The smallest terminal people have shows who works, since when, and on what."""
    session = world.begin()
    with seat(world, "watch", rows=24, cols=80, shows="ready | demo | Enter sends") as person:
        world.say(session, "hello")
        person.wait_for("* demo heard you")
        person.wait_for("demo waits for a prompt")
        rows = [row.rstrip() for row in person.emulator.text()]
    assert rows[0].startswith(" agent-relay watch   1 session ")
    assert any(row.startswith("demo") and "ready" in row for row in rows)
    assert any(row.endswith("demo waits for a prompt") for row in rows)
    assert rows[23].strip() == KEYS


def test_another_size_is_drawn_anew(world: WorkingWorld) -> None:
    """Windows are dragged, halves of screens swapped; wide ones have the screen beside the rest."""
    world.begin()
    with seat(world, "watch", rows=24, cols=90, shows="ready | demo") as person:
        person.resize(50, 160)
        person.wait_until(lambda: person.emulator.text()[-1].strip() == KEYS, "the keys in the lowest row")
        assert "│ demo agent - a scripted agent" in person.text()
        person.resize(10, 40)
        person.wait_until(lambda: person.emulator.text()[-1].strip() == KEYS, "the keys in the lowest row")
        person.wait_for(" agent-relay watch   1 session ")


def test_several_sessions_are_listed_and_keys_choose(world: WorkingWorld) -> None:
    """Ten agents at once are watched in one place."""
    first, second = sorted((world.begin(), world.begin(new=True)))
    with seat(world, "watch", rows=24, cols=90) as person:
        person.wait_until(lambda: person.text().count("ready ") >= 2, "both sessions")
        assert person.text().startswith(" agent-relay watch   2 sessions ")
        person.wait_for(f"── {first} ")
        person.type(b"\x1b[B", shows=f"── {second} ")
        person.type(b"k", shows=f"── {first} ")


def test_nothing_is_drawn_while_nothing_changes(world: WorkingWorld) -> None:
    """A terminal over a slow line, or a battery, must not pay for an agent that waits."""
    world.begin_worked("hello")
    with seat(world, "watch", rows=24, cols=90) as person:
        person.wait_for("* demo heard you")

        def is_quiet() -> bool:
            before = len(person.received)
            person.look(4.0)
            return len(person.received) == before

        person.wait_until(is_quiet, "nothing to be drawn any more")


@pytest.mark.parametrize(("how", "status"), sized(WAYS, [WAYS[0], WAYS[4]]))
def test_the_terminal_is_as_it_was_however_it_ends(
    idle: WorkingWorld, how: bytes | signal.Signals, status: int
) -> None:
    """A shell without echo, or on the other screen, is how people remember a tool."""
    with seat(idle, "watch", rows=24, cols=90) as person:
        person.wait_for(EMPTY)
        person.wait_until(lambda: person.received.endswith(DRAWN), "the whole of the picture")
        assert is_raw(person)
        if isinstance(how, signal.Signals):
            os.kill(person.pid, how)
        else:
            person.type(how)
        assert person.wait_for_end() == status
        assert person.received.endswith(LEFT)
        assert_given_back(person)


def test_the_terminal_is_as_it_was_after_a_mistake_of_ours() -> None:
    """The trace must be readable, too."""
    with at_terminal(["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-c", RAISES]) as person:
        assert person.wait_for_end() == 1
        assert person.received.index(LEFT) < person.received.index(b"a mistake of ours")


def test_the_shell_gets_its_terminal_when_watching_is_suspended(idle: WorkingWorld) -> None:
    """Ctrl-Z and `fg` are how one terminal serves two purposes."""
    with seat(idle, "watch", rows=24, cols=90) as person:
        person.wait_for(EMPTY)
        person.type(b"\x1a")
        person.wait_until(lambda: is_stopped(person.pid), "it is stopped")
        person.wait_until(lambda: person.received.endswith(LEFT), "the other screen to be left")
        assert not is_raw(person)
        os.kill(person.pid, signal.SIGCONT)
        person.wait_for(EMPTY)
        assert is_raw(person)
        person.type(b"q")
        assert person.wait_for_end() == 0


def test_a_log_of_what_happens_is_printed_where_there_is_no_terminal() -> None:
    """`agent-relay watch | tee log` is a log, not a stream of escapes."""
    with (
        working_world(starts=False) as world,
        at_terminal(["/bin/sh", "-c", f"{shlex.join(relay(world, 'watch'))} | cat"]) as person,
    ):
        person.wait_for("No daemon is running")
        world.begin()
        person.wait_for("The daemon is running again.")
        person.wait_for("demo waits for a prompt")
        assert b"\x1b" not in person.received
