"""A long answer behind the relay key is turned page by page and leaves the agent's screen as it was."""

import pytest

from agent_relay.client.attach.prompt_input import fold
from tests.support.attached import WAYS, Attach
from tests.support.person import Person

pytestmark = pytest.mark.size("test")

# A screen that is full to its last cell, in colours: whatever moved or stayed behind would be seen.
PICTURE = """
for row in range(1, 25):
    say("\\x1b[%d;1H\\x1b[3%dm" % (row, row % 8) + ("%02d picture " % row * 9)[:80])
say("\\x1b[5;7H")
while True:
    data = os.read(0, 1 << 16)
    if data == b"z": say("<heard>")
"""


def rows(person: Person) -> list[str]:
    return [row.rstrip() for row in person.emulator.text()]


def open_long(person: Person) -> None:
    """The person asks relay something whose answer takes several pages."""
    person.type(b"\x1d")
    person.wait_for("/use AGENT")
    person.type(b"/long\r")
    person.wait_for("row 1 of the long answer")


@WAYS
def test_a_long_answer_is_read_page_by_page_and_the_agents_screen_comes_back(attach: Attach) -> None:
    """Thirty lines over a small window must neither be lost nor push the agent's screen away."""
    person, _ = attach(PICTURE, shows="24 picture")
    before, cursor = tuple(person.emulator.text()), person.emulator.cursor()
    open_long(person)
    person.wait_for("1-23 of 100")
    assert rows(person)[22] == "row 23 of the long answer"
    person.type(b" ")
    person.wait_for("24-46 of 100")
    assert rows(person)[0] == "row 24 of the long answer"
    person.type(b"\x1b[B\x1b[6~ ")
    person.wait_for("93-100 of 100")
    assert rows(person)[:9] == [f"row {number} of the long answer" for number in range(93, 101)] + [""]
    person.type(b"\x1b[5~")
    person.wait_for("70-92 of 100")
    person.type(b"q")
    person.wait_until(lambda: tuple(person.emulator.text()) == before, "the agent's screen as it was")
    person.wait_until(lambda: person.emulator.cursor() == cursor, "the cursor where it was")
    assert b"long answer" not in bytes(person.received).split(b"\x1b[?7l")[0]
    person.type(b"z")
    person.wait_for("<heard>")


@WAYS
def test_the_last_page_ends_with_the_key_that_turned_the_pages(attach: Attach) -> None:
    """Who keeps pressing Space has read it all and is back at work."""
    person, _ = attach(PICTURE, shows="24 picture")
    open_long(person)
    for seen in ("1-23 of", "24-46 of", "47-69 of", "70-92 of", "93-100 of"):
        person.wait_for(seen)
        person.type(b" ")
    person.wait_until(lambda: "long answer" not in person.text(), "the agent's screen")
    person.type(b"z")
    person.wait_for("<heard>")


def test_nothing_of_a_long_answer_reaches_the_scrollback(attach: Attach) -> None:
    """What a terminal scrolled away cannot be repainted."""
    person, _ = attach(PICTURE, shows="24 picture")
    open_long(person)
    person.emulator.take_scrolled()
    person.type(b" \x1b[5~ ")
    person.wait_for("24-46 of 100")
    person.type(b"q")
    person.wait_until(lambda: "long answer" not in person.text(), "the agent's screen")
    assert list(person.emulator.take_scrolled()) == []


def test_a_paste_into_a_long_answer_ends_it_and_reaches_the_agent(attach: Attach) -> None:
    """Its spaces turn no pages: it was meant for the agent."""
    agent = "say('\\x1b[?2004h')\n" + PICTURE.replace('if data == b"z": say', "say(data.hex()); say")
    person, wire = attach(agent, shows="24 picture")
    open_long(person)
    paste = b"\x1b[200~go on\x1b[201~"
    person.type(paste)
    person.wait_until(lambda: paste.hex().encode() in wire.output(), "the paste arrives whole")


@pytest.mark.size("check")
def test_long_lines_go_on_in_the_next_row() -> None:
    """A path cut off at the window's edge cannot be copied."""
    rows = {
        ("", 5): [""],
        ("short", 5): ["short"],
        ("two words", 5): ["two", "words"],
        ("abcdefgh", 3): ["abc", "def", "gh"],
        ("ab cdefgh ij", 5): ["ab", "cdefg", "h ij"],
        ("漢字漢字", 5): ["漢字", "漢字"],
        ("exact fit", 9): ["exact fit"],
        ("12345 ", 5): ["12345", ""],
    }
    assert {given: fold(*given) for given in rows} == rows
