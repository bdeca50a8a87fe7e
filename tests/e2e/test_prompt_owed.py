"""No agent can take over for a while: the terminal says so and how to go on, and the prompt is not lost."""

import contextlib
import glob
import os
import time
from collections.abc import Callable, Iterator

import pytest

from agent_relay.domain.state import State
from tests.e2e.test_hostile_disk import may_mount, own_disk
from tests.support.mute_agent import mutable_world
from tests.support.relay_world import RelayWorld
from tests.support.seats import find_session, seat

ASKED = "You are out: paint the shed blue"
Toggle = Callable[[], None]


@contextlib.contextmanager
def broken_program(world: RelayWorld) -> Iterator[Toggle]:
    """The understudy's program ends at once, until what comes back is called a second time."""
    path = f"{world.folders.config}/adapters/understudy/start.sh"
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    texts = ["#!/bin/sh\nexit 1\n", whole]

    def toggle() -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(texts.pop(0))

    yield toggle


@contextlib.contextmanager
def full_runtime(world: RelayWorld) -> Iterator[Toggle]:
    """There is no room for another leg, until what comes back is called a second time."""
    if may_mount():
        with own_disk(world.folders.runtime) as toggle:
            yield toggle
        return

    def toggle() -> None:
        mode = os.stat(world.folders.legs).st_mode & 0o777
        os.chmod(world.folders.legs, 0o500 if mode == 0o700 else 0o700)

    yield toggle


def read_understudy(world: RelayWorld) -> str:
    """All the understudy keeps of what it was told."""
    texts = []
    for path in glob.glob(f"{world.home}/.demo-agent/understudy/*.jsonl"):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


@pytest.mark.parametrize(
    ("fault", "said_first", "hint"),
    [
        (
            broken_program,
            "No agent took over",
            "Give understudy its packet: agent-relay understudy --session",
        ),
        # Nobody is stopped where there is no room for the next: the agent there is keeps the session.
        (full_runtime, "No space left on device", "To return: agent-relay attach"),
    ],
)
def test_where_nobody_can_be_started_the_terminal_says_why_and_what_to_type_next(
    fault: Callable[[RelayWorld], contextlib.AbstractContextManager[Toggle]], said_first: str, hint: str
) -> None:
    """It left with the status of whoever was killed and no word; and what was typed last reached nobody."""
    with mutable_world() as world, fault(world) as toggle:
        os.unlink(f"{world.home}/mute")
        with seat(world, "agent", "demo", shows="ready | demo") as person:
            session = find_session(world)
            toggle()
            person.type(f"{ASKED}\r".encode(), shows=said_first)
            # Keys count once nothing was typed for a moment.
            time.sleep(1)
            person.type(b"l")
            assert person.wait_for_end() == 3
            world.wait_for(session, lambda now: now.state is State.RESTING, "the session rests")
            said = " ".join(person.text().split())
        assert f"{hint} {session}".replace(" ", "") in said.replace(" ", "")
        assert ASKED not in read_understudy(world)
        toggle()
        with seat(world, "understudy", "--session", session) as person:
            person.wait_until(lambda: ASKED in read_understudy(world), "the prompt is with the understudy")
            person.type(b"\x1d/detach\r")
            assert person.wait_for_end() == 0
        found = world.wait_for(session, lambda now: len(now.done) == 1, "the handoff was made")
        assert found.agent == "understudy"
