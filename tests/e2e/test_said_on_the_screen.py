"""What relay has to say while an agent has the screen: the person at the terminal sees it there."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.limits import Rest
from agent_relay.store.ledger import update_ledger
from agent_relay.system.disk.folders import ensure_private
from tests.support.handoffs import write_screenplays
from tests.support.mute_agent import mutable_world
from tests.support.person import Person
from tests.support.relay_world import RelayWorld
from tests.support.seats import PLAYS, assert_given_back, seat, seated_world

REFUSED = {"limit": "Invalid API key", "resets_in_s": 0}
SOON = {"limit": "You've hit your session limit", "resets_in_s": 15}
WARNING = {"warn": "You've used 92% of your session limit"}
SCENES = [
    {"when": "near", "again": True, "do": [WARNING, {"say": "demo goes on"}]},
    {"when": "refuse", "do": [REFUSED]},
    {"when": "limit", "do": [SOON]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A world whose first agent can be signed out, and has limits that are soon over."""
    with seated_world() as made:
        write_screenplays(f"{made.folder}/plays", demo=SCENES, understudy=PLAYS["understudy"])
        yield made


def reads(person: Person, words: str) -> None:
    """The person can read `words`, over however many rows they go."""
    said = "".join(words.split())
    person.wait_until(lambda: said in "".join(person.text().replace(" relay  ", "").split()), words)


@pytest.mark.size("test")
def test_a_signed_out_agent_is_told_where_the_person_looks_and_ends_with_a_failure(world: RelayWorld) -> None:
    """No failover, no retry: one line, the agent as it was, and an exit status scripts can read."""
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"refuse\r")
        reads(person, "demo is signed out or its key is refused (Invalid API key). Sign in there and go on")
        person.type(b"\x1d/status\r")
        reads(person, "demo is signed out, or its key refused: Invalid API key")
        person.type(b" ")
        person.wait_until(lambda: "any key" not in person.text(), "the agent's screen")
        person.type(b"\x04")
        assert person.wait_for_end() == 1
        reads(person, "Sign in, then go on: agent-relay agent demo --session")
        assert_given_back(person)


def test_a_limit_that_is_near_is_told_once_over_the_agents_screen_and_then_it_is_whole_again(
    world: RelayWorld,
) -> None:
    """The person learns it in time to hand over, and the agent's lines stand where they stood."""
    told = "demo is near its session limit (You've used 92% of your session limit)"
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"near\r")
        reads(
            person,
            f"{told}. It keeps working, then understudy takes over; to hand over sooner: "
            "press Ctrl-] and type /relay",
        )
        person.wait_until(lambda: "is near its session limit" not in person.text(), "the agent's screen")
        assert "demo goes on" in person.text()
        person.type(b"near\r")
        person.wait_until(lambda: person.text().count("demo goes on") == 2, "the second turn")
        person.type(b"hello\r", shows="demo heard you")
        assert "is near its session limit" not in person.text()
        person.type(b"\x04")
        assert person.wait_for_end() == 0
        assert_given_back(person)


def test_an_offer_to_return_is_shown_and_taken_behind_the_relay_key(world: RelayWorld) -> None:
    """The person need not ask `status` whether their preferred agent is back."""
    with seat(world, "agent", "demo", shows="ready | demo") as person:
        person.type(b"limit\r", shows="understudy goes on")
        reads(person, "demo is available again. To switch back: press Ctrl-] and type /use demo")
        person.type(b"\x1d/use demo\r", shows="demo heard you")


def test_a_session_begun_under_a_resting_agent_says_so_over_its_screen(world: RelayWorld) -> None:
    """A line above the agent's first screen is scrolled away before anybody reads it."""
    now = datetime.now(UTC)
    ensure_private(world.folders.state)
    rest = Rest("demo", "", "account", now + timedelta(hours=1), evidence="session limit", seen_at=now)
    update_ledger(world.folders.ledger, lambda _: (rest,))
    with seat(world, "agent", "demo") as person:
        reads(person, "as far as relay knows; it was started all the same")
        person.wait_for("ready | demo")
        person.type(b"hello\r", shows="demo heard you")
        assert "as far as relay knows" not in person.text()


def test_an_attached_terminal_calls_its_person_at_a_handover(world: RelayWorld) -> None:
    """The bell, and a notification as this terminal shows them: once, with who goes on and why."""
    told = b"\x07\x1b]9;project: understudy took over: demo hit its session limit.\x1b\\"
    with seat(world, "agent", "demo", variables={"TERM_PROGRAM": "iTerm.app"}) as person:
        person.wait_for("ready | demo")
        person.type(b"limit\r", shows="understudy goes on")
        person.wait_until(lambda: told in person.received, "the terminal's call")
        person.type(b"hello\r", shows="understudy heard you")
        assert person.received.count(told) == 1


def test_an_agent_that_shows_no_prompt_for_ten_seconds_is_told_of_on_its_terminal() -> None:
    """An empty screen looks like a mistake of ours, or of the person's."""
    with mutable_world() as world, seat(world, "agent", "understudy") as person:
        person.wait_for("understudy is still starting: waiting for its prompt")
