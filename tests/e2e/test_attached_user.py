"""A person at a terminal while it, or what is behind it, dies, changes or moves: they lose nothing."""

import contextlib
import os
import signal

import pytest

from agent_relay.client.connection import find_daemon_pid
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.system.disk.locks import take_lock
from tests.support.crashes import begin_under
from tests.support.person import Person
from tests.support.relay_world import RelayWorld, is_stopped, kill, wait_until
from tests.support.seats import (
    AGENTS,
    assert_given_back,
    close_window,
    find_session,
    seat,
    seated_world,
    wait_for_daemon,
)
from tests.support.sizes import sized

POINTS = ("after handoff.begun", "after handoff.stopped", "after leg.started")
DETACH = b"\x1d/detach\r"


def read_counted(world: RelayWorld) -> bytes:
    """Everything the counter ever wrote."""
    folder = f"{world.home}/.counter"
    (name,) = [name for name in os.listdir(folder) if name.endswith(".bytes")]
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


def count_lines(person: Person) -> int:
    return person.received.count(b"\r\nline ")


def let_count(person: Person, lines: int) -> None:
    """That many lines more arrive."""
    goal = count_lines(person) + lines
    person.wait_until(lambda: count_lines(person) >= goal, f"{lines} more lines")


@pytest.mark.size("test")
def test_a_daemon_killed_again_and_again_costs_not_one_byte_nor_key() -> None:
    """Bytes and keys take one hop to the holder; and somebody must be there to see the next limit."""
    with seated_world(order=("counter", "understudy")) as world, seat(world, "counter") as person:
        person.wait_for("ready")
        daemon = wait_for_daemon(world)
        person.type(b"g")
        person.wait_until(lambda: b"BEGIN" in person.received, "the count")
        for round_ in range(4):
            let_count(person, 100)
            kill(daemon)
            person.type(b"%d" % round_)
            person.wait_until(lambda sign=b"key 3%d" % round_: sign in person.received, "the key")
            let_count(person, 100)
            # Read meanwhile: a terminal that takes nothing for long is given the newest screen instead.
            person.wait_until(
                lambda gone=daemon: find_daemon_pid(world.folders) not in {None, gone}, "another daemon"
            )
            daemon = wait_for_daemon(world, other_than=daemon)
        person.type(b"s")
        person.wait_until(lambda: person.received.endswith(b"END\r\nready"), "the end of the count")
        counted = read_counted(world)
        assert person.received[person.received.index(b"\r\nBEGIN") :] == counted[len(b"ready") :]
        # Who started the newest one may have been on its way out when that listened.
        wait_until(lambda: len(world.find_daemons()) == 1, "one daemon is left")
        person.type(b"\x1d/status\r", shows="under counter, 0 handoffs")
        person.type(b" ")
        person.wait_until(lambda: "under counter" not in person.text(), "the agent's screen")
        person.type(DETACH)
        assert person.wait_for_end() == 0


def test_a_limit_hit_while_no_daemon_lives_is_acted_on_by_the_next_one() -> None:
    """Nobody types a command at that moment: the terminal itself must see to it that somebody looks."""
    with seated_world(order=("counter", "understudy")) as world, seat(world, "counter") as person:
        person.wait_for("ready")
        daemon = wait_for_daemon(world)
        lock = take_lock(world.folders.start_lock)
        assert lock is not None, "no other daemon can start"
        kill(daemon)
        wait_until(lambda: find_daemon_pid(world.folders) is None, "the daemon is gone")
        person.type(b"gL", shows="! You've hit your session limit")
        assert find_daemon_pid(world.folders) is None
        os.close(lock)
        person.wait_for("understudy goes on")
        person.wait_for("ready | understudy")
        person.type(b"hello\r", shows="understudy heard you")
        assert "→ understudy".encode() in person.received
        world.wait_for(find_session(world), lambda found: len(found.done) == 1, "one handoff was made")


@pytest.mark.parametrize("point", sized(POINTS, ["after handoff.stopped"]))
def test_a_daemon_that_dies_in_a_failover_is_replaced_by_the_terminal_that_waits(point: str) -> None:
    """The person typed nothing and started nothing; the successor stands on their screen all the same."""
    with seated_world() as world:
        session, daemon = begin_under(world, point)
        with seat(world, "attach", shows="ready | demo") as person:
            person.type(b"please limit\r")
            wait_until(lambda: is_stopped(daemon), f"the daemon froze {point}")
            kill(daemon)
            found = world.wait_for(session, lambda now: len(now.done) == 1, "one handoff was made")
            assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
            person.wait_for("> <handoff-context>")
            person.wait_for("ready | understudy")
            assert "→ understudy".encode() in person.received
            person.type(DETACH)
            assert person.wait_for_end() == 0
            assert_given_back(person)


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


LEFT_AT = ("before handoff.begun", "after handoff.stopped", "after leg.started")


@pytest.mark.parametrize("point", sized(LEFT_AT, ["after handoff.stopped"]))
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
        with seat(world, "attach", shows="understudy goes on") as person:
            person.wait_for("ready | understudy")
            person.type(b"/quit\r")
            assert person.wait_for_end() == 0
            assert_given_back(person)
