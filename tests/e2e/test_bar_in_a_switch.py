"""A switch of agents as the person at the terminal sees and types through it, holder, client and daemon."""

import time
from collections.abc import Iterator

import pytest

from tests.support.asked import list_asked
from tests.support.handoffs import write_screenplays
from tests.support.person import Person
from tests.support.relay_world import RelayWorld
from tests.support.seats import find_session, seat, seated_world


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A world with two scripted agents."""
    with seated_world() as made:
        yield made


def read_lowest(person: Person) -> str:
    return person.emulator.text()[-1].strip()


def test_the_bar_stands_from_the_limit_until_the_successor_works(world: RelayWorld) -> None:
    """The screen said nothing at the moment at which everything stops."""
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"limit\r")
        person.wait_until(lambda: "demo → understudy" in read_lowest(person), "the bar")
        said: list[str] = []
        deadline = time.monotonic() + 60
        while "understudy goes on" not in person.text() and time.monotonic() < deadline:
            said.append(read_lowest(person))
            person.look(0.02)
        assert "understudy goes on" in person.text()
        missing = [
            row
            for row in said
            if not row.removeprefix("relay: ").startswith(
                ("demo → understudy · limit until ", "demo → understudy · demo hit its session limit ")
            )
        ]
        # The moment at which the successor's first work is painted may be a sample, too.
        assert missing[:-1] == []
        awaited = list(dict.fromkeys(row.split(" · ")[2] for row in said if row not in missing))
        assert awaited[0] == "demo is ending"
        assert "understudy is starting" in awaited
        person.wait_until(lambda: "→" not in read_lowest(person), "the bar has gone")


@pytest.mark.size("test")
def test_what_is_typed_in_a_switch_follows_the_packet_once_and_in_order(world: RelayWorld) -> None:
    """A return on a stray line sent it ahead of all that the successor was to know."""
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"limit\r")
        person.wait_until(lambda: "demo → understudy" in read_lowest(person), "the bar")
        person.type(b"and be quick\r", shows="understudy goes on")
        person.wait_for("understudy heard you")
        first, second = list_asked(world, "understudy")
        assert first.count("<handoff-context>") == 1
        assert second == "and be quick"
        names = [event.body.name for event in world.events(find_session(world))]
        assert names.count("handoff.delivered") == 1


def test_what_was_half_typed_at_the_limit_stands_in_the_successors_line(world: RelayWorld) -> None:
    """It was lost with the agent in whose line it stood; nobody sent it, so nobody sends it now."""
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"limit\r")
        person.type(b"then look at th", shows="understudy goes on")
        person.wait_for("> then look at th")
        assert len(list_asked(world, "understudy")) == 1
        person.type(b"e tests\r", shows="understudy heard you")
        assert list_asked(world, "understudy")[1:] == ["then look at the tests"]


def test_a_question_of_the_successor_is_not_answered_by_keys_of_the_switch(world: RelayWorld) -> None:
    """It asks whether it may run something, while what was typed before is still on its way."""
    scene = {
        "when": "handoff-context",
        "do": [{"say": "understudy goes on"}, {"ask": "Run it?"}, {"say": "it was run"}],
    }
    heard = {"again": True, "do": [{"say": "understudy heard you"}]}
    write_screenplays(f"{world.folder}/plays", understudy=[scene, heard])
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"limit\r")
        person.wait_until(lambda: "demo → understudy" in read_lowest(person), "the bar")
        # Arrows mean nothing to it, and are typed one by one.
        person.type(b"\x1b[D" * 100 + b"yes\r", shows="Run it?")
        person.wait_until(lambda: "needs an answer" in read_lowest(person), "what the keys wait for")
        person.type(b"n", shows="understudy heard you")
        assert "it was run" not in person.text()
        assert list_asked(world, "understudy")[1:] == ["yes"]
