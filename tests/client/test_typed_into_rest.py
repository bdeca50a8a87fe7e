"""What is typed while the resting screen comes: kept, shown to who asks, and nothing of a sign-in."""

import contextlib
import re
import termios
from collections.abc import Iterator

import pytest

from tests.support.attached import wait_to_hear
from tests.support.legs import Wire
from tests.support.person import Person
from tests.support.switches import Switches

pytestmark = pytest.mark.size("test")


def _type_into_rest(switches: Switches, first: Wire, line: str, seen: str) -> str:
    """Type digits while every agent comes to rest, until the screen shows `seen`; return them."""
    person, typed = switches.person, ""
    switches.answer("resting", leg="one", rest={"agents": []})

    def type_on() -> bool:
        nonlocal typed
        if re.search(seen, person.text()):
            return True
        if len(typed) == 20:
            first.ask("say", text="every agent rests", kind="rest", line=line)
        typed += f"{len(typed) % 10}"
        person.type(typed[-1:].encode())
        person.look(0.05)
        return False

    person.wait_until(type_on, seen)
    return typed


def test_what_was_typed_while_the_resting_screen_came_is_shown_to_who_asks(
    first: Wire, switches: Switches
) -> None:
    """It may be a password, and somebody may look on; who is asked for it by a key knows what it was."""
    person = switches.person
    typed = _type_into_rest(switches, first, "typed", r"(2[5-9]|[3-9]\d|\d{3}) typed characters")
    for _ in range(3):
        person.look(1)
    told = re.search(r"(\d+) typed characters are kept", person.text())
    assert told is not None
    count = int(told[1])
    assert count > 20, "the half typed line, too"
    assert typed[:9] not in person.text()
    switches.person.press(b"k", lambda: "continues: " in person.text())
    shown = person.text().split("continues: ")[1].split()[0]
    assert (len(shown), shown) == (count, typed)
    switches.person.press(b"k", lambda: typed[:9] not in person.text())
    switches.person.press(b"l", lambda: "l leave" not in person.text())
    person.wait_for("status 3")
    assert re.search(r"\d+ typed characters were not delivered\.", person.text())
    assert typed[21:30] not in person.text()


def test_what_was_typed_while_the_resting_screen_came_can_be_dropped(
    first: Wire, second: Wire, switches: Switches
) -> None:
    """A password is for no agent."""
    _type_into_rest(switches, first, "typed", "d discard it")
    switches.person.press(b"d", lambda: "d discard it" not in switches.person.text())
    switches.hand_on()
    switches.person.type(b"!")
    wait_to_hear(switches.person, second, b"!")


def read_flags(person: Person) -> int:
    """Return the local modes of the person's terminal."""
    return int(termios.tcgetattr(person.slave)[3])


@contextlib.contextmanager
def between_screens(switches: Switches, first: Wire, line: str) -> Iterator[None]:
    """Meanwhile the agent's screen is gone and the resting screen is not there yet."""
    with switches.hanging():
        switches.answer("resting", leg="one", rest={"agents": []})
        first.ask("say", text="every agent rests", kind="rest", line=line)
        switches.person.wait_until(
            lambda: bool(read_flags(switches.person) & termios.ISIG), "the agent has the keys no more"
        )
        assert not read_flags(switches.person) & termios.ECHO
        yield


@pytest.mark.parametrize(("line", "is_kept"), [("typed", True), ("hidden", False)])
def test_keys_between_the_agents_screen_and_the_resting_screen_are_not_echoed(
    line: str, first: Wire, second: Wire, switches: Switches, *, is_kept: bool
) -> None:
    """The terminal was the shell's in that moment: it showed a password, and Enter was lost."""
    person = switches.person
    with between_screens(switches, first, line):
        person.type(b"pass\rword")
        person.look(0.5)
        assert "pass" not in person.text()
    person.wait_for("l leave")
    assert "pass" not in person.text()
    switches.hand_on()
    person.type(b"!")
    wait_to_hear(switches.person, second, b"pass\rword!" if is_kept else b"!")


def test_keys_that_edit_the_line_do_so_in_what_is_kept_of_it(
    first: Wire, second: Wire, switches: Switches
) -> None:
    """Words that were taken back with Ctrl-W or Ctrl-U came back with the next agent."""
    person = switches.person
    with between_screens(switches, first, "typed"):
        person.type(b"one\x15two three\x17")
        # There is nobody to suspend, and the keys before it must not be dropped.
        person.type(b"\x1afours\x7f")
    person.wait_for("8 typed characters are kept")
    switches.person.press(b"k", lambda: "continues: two four" in person.text())
    switches.hand_on()
    wait_to_hear(switches.person, second, b"one\x15two three\x17fours\x7f")


def test_nothing_typed_where_no_input_line_is_shown_is_kept(first: Wire, switches: Switches) -> None:
    """The rest of a sign-in's code is for no other agent, as its beginning is not."""
    person = switches.person
    _type_into_rest(switches, first, "hidden", "l leave")
    for _ in range(10):
        person.type(b"7")
        person.look(0.1)
    assert "kept" not in person.text()
    switches.person.press(b"l", lambda: "l leave" not in person.text())
    person.wait_for("status 3")
    assert "delivered" not in person.text()
