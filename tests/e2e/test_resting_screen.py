"""A person at their terminal while every agent rests: told at once, one key to choose, nothing lost."""

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.support.asked import list_asked
from tests.support.handoffs import write_screenplays
from tests.support.person import Person
from tests.support.relay_world import RelayWorld, kill
from tests.support.seats import assert_given_back, find_session, seat, seated_world, wait_for_daemon

LATER = 3600
SOON = 25
FIRST = re.compile(r"Every agent rests\. First reset: demo at .*\d\d:\d\d, in (\d+:\d\d:\d\d)")


def _limit(resets_in_s: int) -> dict[str, object]:
    return {"wait_s": 0.2, "limit": "You've hit your session limit", "resets_in_s": resets_in_s}


@contextlib.contextmanager
def resting_world(
    resets_in_s: int = LATER, *, order: tuple[str, ...] = ("demo",), configured: str = ""
) -> Iterator[RelayWorld]:
    """A user all of whose agents meet their limit at the word."""
    with seated_world(order=order) as world:
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write(configured)
        for name in ("demo", "understudy"):
            scenes = [
                {"when": "handoff-context", "again": True, "do": [{"say": f"{name} goes on"}]},
                {"when": "limit", "do": [_limit(resets_in_s)]},
                {"again": True, "do": [{"say": f"{name} heard you"}]},
            ]
            write_screenplays(f"{world.folder}/plays", **{name: scenes})
        yield world


@contextlib.contextmanager
def resting_person(world: RelayWorld, *, rows: int = 24, cols: int = 80) -> Iterator[Person]:
    """They asked their only agent for something, and it has hit its limit."""
    with seat(world, "agent", "demo", rows=rows, cols=cols, shows="ready | demo") as person:
        person.type(b"limit\r", shows="l leave")
        yield person


def shows(person: Person, text: str) -> Callable[[], bool]:
    return lambda: text in " ".join(person.text().split())


def leave(person: Person) -> None:
    person.press(b"l", lambda: "l leave" not in person.text(), "the end")
    assert person.wait_for_end() == 3
    assert "Toreturn:agent-relayattach" in "".join(person.text().split())
    assert_given_back(person)


@pytest.mark.size("test")
def test_who_is_attached_is_told_at_once_that_every_agent_rests() -> None:
    """Today's person sat before an agent that said nothing of the others, or was back in their shell."""
    with resting_world() as world, resting_person(world) as person:
        found = FIRST.search(person.text())
        assert found is not None, person.text()
        person.wait_until(
            lambda: (now := FIRST.search(person.text())) is not None and now[1] != found[1], "the countdown"
        )
        rows = person.text().splitlines()
        assert rows[-1] == "w continue at reset   a always continue at reset   v show its screen   l leave"
        assert "Work will not continue automatically." in rows
        leave(person)
        # Whoever comes back sees the same, and the agent's own screen behind it.
        with seat(world, "attach", shows="l leave") as again:
            again.press(b"v", lambda: "l leave" not in again.text(), "the key")
            again.wait_for("ready | demo")
            again.wait_until(
                shows(again, "press Ctrl-] and type /detach, then agent-relay attach"), "the way back"
            )
            again.type(b"/quit\r", shows="l leave")
            assert "v show its screen" not in again.text()
            leave(again)


def test_words_typed_there_choose_nothing_and_leaving_paints_over_nothing() -> None:
    """Their first letter was taken for a choice: it saved a setting, or gave the rest of them to a shell."""
    with resting_world() as world, resting_person(world) as person:
        settings = f"{world.folders.config}/config.toml"
        before = Path(settings).read_text("utf-8")
        for word in (b"wait", b"always do that", b"leave it"):
            person.type(word[:1])
            person.type(word[1:])
            person.look(1.5)
        leave(person)
        assert Path(settings).read_text("utf-8") == before
        # Under its last row nothing of the agent's is left.
        assert re.search(r"(?m)(reset|^set) is at (\w+ \d+, )?\d\d:\d\d\.$", person.text())


def test_the_relay_key_opens_its_prompt_there_too() -> None:
    """It was ignored, and the words behind it were keys: the "a" of "/handoff" changed the configuration."""
    with resting_world() as world, resting_person(world) as person:
        person.type(b"\x1d/handoff plan --help\r", shows="any key")
        assert "agent-relay handoff plan" in person.text()
        person.type(b" ", shows="l leave")
        person.type(b"\x1d/nonsense\r", shows="there is no command '/nonsense' here")
        person.type(b" ", shows="l leave")
        assert Path(f"{world.folders.config}/config.toml").read_text("utf-8") == 'order = ["demo"]\n'
        person.type(b"\x1d/detach\r")
        assert person.wait_for_end() == 3
        assert_given_back(person)


def test_a_text_typed_while_the_screen_comes_is_for_the_agent_that_goes_on() -> None:
    """Its first half stood in the line of the agent that rests, and the second was dropped with a bell.

    That agent is one number away although it rests: a limit may be believed wrongly, or be small.
    """
    with (
        resting_world(order=("demo", "understudy")) as world,
        seat(world, "agent", "demo", cols=200) as person,
    ):
        person.wait_for("ready | demo")
        person.type(b"limit\r", shows="ready | understudy")
        person.type(b"limit\r")
        text = _type_until(person, lambda: "kept for the agent that continues." in person.text())
        for _ in range(3):
            person.look(1)
        person.press(
            b"n", shows(person, "a resting agent is started anyway. 1 demo (rests until"), "the choice"
        )
        person.press(b"1", lambda: "Esc  back" not in person.text(), "the number")
        person.wait_for("demo goes on")
        person.wait_until(lambda: text[-20:] in person.text(), "the text")
        person.type(b"\r", shows="demo heard you")
        assert list_asked(world, "demo")[-1] == text
        assert world.session(find_session(world)).agent == "demo"


def test_a_text_kept_there_is_not_typed_into_the_agent_that_rests() -> None:
    """It may ask what to do about its limit, and a digit of the text would be the answer."""
    with resting_world() as world, seat(world, "agent", "demo", cols=200, shows="ready | demo") as person:
        person.type(b"limit\r")
        kept = re.compile(r"(\d\d) typed characters are kept")
        _type_until(person, lambda: kept.search(person.text()) is not None)
        for _ in range(3):
            person.look(1)
        assert "0123456" not in person.text()
        found = kept.search(person.text())
        person.press(b"v", lambda: "l leave" not in person.text(), "the key")
        person.wait_until(shows(person, "To choose what follows"), "relay's line")
        person.type(b"\x1d/detach\r")
        assert person.wait_for_end() == 0
        told = re.search(r"(\d+) typed characters? (?:was|were) not delivered\.", person.text())
        assert found is not None
        assert told is not None
        # What stands in the input line of the agent is still there.
        assert 0 < int(told[1]) < int(found[1])
        shown = "".join(person.text().split())
        assert "Detached;thesessionisresting.Workwillnotcontinueautomatically.Toreturn:" in shown
        assert "keeps" not in shown
        assert "Tochoosewhatfollows" not in shown
        assert shown.index("ready|demo") < shown.index("Detached;")
        assert_given_back(person)


def _type_until(person: Person, seen: Callable[[], bool]) -> str:
    """Type digits as a person does, until something is so; return them."""
    text = ""

    def type_on() -> bool:
        nonlocal text
        if not seen():
            text += f"{len(text) % 10}"
            person.type(text[-1:].encode())
            person.look(0.1)
        return seen()

    person.wait_until(type_on, "what is typed to be kept")
    return text


def test_at_the_reset_work_goes_on_in_the_same_terminal_where_that_was_chosen() -> None:
    """One key, and the person may go to lunch."""
    with resting_world(SOON, configured="reset_grace_s = 0\n") as world, resting_person(world) as person:
        person.press(b"w", shows(person, "Work will continue automatically at"), "the promise")
        assert world.session(find_session(world)).agreed
        person.wait_for("demo goes on")
        person.wait_for("ready | demo")
        session = world.wait_for(find_session(world), lambda found: len(found.done) == 1, "it is confirmed")
        assert (len(session.legs), session.done[-1].why) == (2, "the first reset has passed")
        assert not session.agreed


def test_without_a_choice_who_is_back_is_offered_by_name() -> None:
    """Nobody agreed to anything: one key goes on, and nothing else does."""
    with resting_world(SOON) as world, resting_person(world) as person:
        person.wait_for("demo is available again. Press Enter to continue.")
        assert len(world.session(find_session(world)).legs) == 1
        person.press(b"\r", lambda: "Enter continue" not in person.text(), "Enter")
        person.wait_for("demo goes on")
        person.wait_for("ready | demo")


def test_the_screen_survives_its_daemon_odd_keys_and_a_window_of_twenty_columns() -> None:
    """It may stand there for days, on a phone, with a cat on the keyboard."""
    with resting_world() as world, resting_person(world) as person:
        daemon = wait_for_daemon(world)
        kill(daemon)
        for keys in (
            b"\x1b[",
            b"A\x1b]11;rgb:0/0/0\x07",
            b"\x1b[200~walnut\x1b[201~",
            b"wanna\x00\xff\xfe",
            b"\x1b",
        ):
            person.type(keys)
            person.look(0.2)
        person.resize(9, 20)
        os.kill(person.pid, signal.SIGWINCH)
        person.wait_until(shows(person, "Every agent rests."), "the narrow screen")
        assert all(len(row) <= 20 for row in person.text().splitlines())
        wait_for_daemon(world, other_than=daemon)
        person.resize(24, 80)
        os.kill(person.pid, signal.SIGWINCH)
        person.press(b"a", shows(person, "Saved resume_at_reset = true in config.toml"), "the wish")
        with open(f"{world.folders.config}/config.toml", encoding="utf-8") as file:
            assert file.read() == 'resume_at_reset = true\norder = ["demo"]\n'
        person.wait_until(shows(person, "Work will continue automatically at"), "the plan")
        leave(person)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_terminal_as_it_was(number: signal.Signals) -> None:
    """Whoever ends the command must not be left with a terminal that shows nothing."""
    with resting_world() as world, resting_person(world) as person:
        os.kill(person.pid, number)
        assert person.wait_for_end() == 128 + number
        assert_given_back(person)
        assert world.session(find_session(world)).state is State.RESTING
