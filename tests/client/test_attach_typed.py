"""Nothing typed around the relay prompt vanishes, and a long answer there is turned page by page."""

import hashlib

import pytest

from agent_relay.client.attach.prompt_input import fold
from tests.support.attached import DIGEST, ECHO, MARKED, WAYS, Attach, wait_to_hear
from tests.support.person import Person
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

BEHIND_A_NOTICE = [
    (b"x", b""),
    (b"\x1b[A", b""),
    ("ü".encode(), b""),
    (b"xhello\r", b"hello\r"),
    (b"\x1b[Ahello", b"hello"),
    (b"x\x1b", b"\x1b"),
    (b"\x1b[200~one\rtwo\x1b[201~", b"\x1b[200~one\rtwo\x1b[201~"),
    (b"x\x1b[200~one\x1b[201~y", b"\x1b[200~one\x1b[201~y"),
]
BEHIND_A_COMMAND = [(b"/quiet\rhello", b"hello"), (b"ab\x03hello", b"hello"), (b"\x1d\x1b[B", b"\x1d\x1b[B")]


def open_prompt(person: Person) -> None:
    """The person is asked for a command of relay's."""
    person.type(b"\x1d", shows="/use AGENT")


def open_notice(person: Person) -> None:
    """The person asks relay something and sees the answer."""
    open_prompt(person)
    person.type(b"/status\r", shows="any key")


@pytest.mark.size("every")
@pytest.mark.parametrize("way", ["tty", "socket"])
@pytest.mark.parametrize(("typed", "reaches"), sized(BEHIND_A_NOTICE, BEHIND_A_NOTICE[-1:]))
def test_what_follows_the_key_that_ends_a_notice_reaches_the_agent(
    attach: Attach, typed: bytes, reaches: bytes
) -> None:
    """Who pastes the next task while a notice stands means the agent."""
    person, wire = attach(MARKED)
    open_notice(person)
    person.type(typed)
    person.wait_until(lambda: "any key" not in person.text(), "the notice's end")
    wait_to_hear(person, wire, reaches)
    person.type(b"z")
    wait_to_hear(person, wire, reaches + b"z")


@WAYS
def test_a_large_paste_into_a_notice_arrives_whole(attach: Attach) -> None:
    """It comes in many reads: some are the client's, the rest the holder's."""
    paste = b"\x1b[200~" + b"".join(b"line %06d\r" % number for number in range(20_000)) + b"\x1b[201~"
    person, _ = attach(DIGEST.replace("LENGTH", str(len(paste))))
    open_notice(person)
    person.type(paste, shows="got " + hashlib.sha256(paste).hexdigest())


@WAYS
def test_an_agent_without_marked_pastes_gets_none(attach: Attach) -> None:
    """The prompt asked the terminal for the marks; to this agent they would be words."""
    person, wire = attach(ECHO)
    open_notice(person)
    text = b"0123456789abcdef" * 1000
    person.type(b"\x1b[200~" + text + b"\x1b[201~")
    wait_to_hear(person, wire, text)
    person.type(b"z")
    wait_to_hear(person, wire, text + b"z")


@WAYS
def test_what_was_typed_before_a_notice_stands_does_not_end_it(attach: Attach) -> None:
    """A notice that is gone before anybody read it told nothing, and the keys were for the agent."""
    person, wire = attach(MARKED)
    person.type(b"\x1d/status\rhello\x1b[200~pas", shows="any key")
    person.type(b" ")
    person.wait_until(lambda: "any key" not in person.text(), "the notice's end")
    person.type(b"te\x1b[201~")
    wait_to_hear(person, wire, b"hello\x1b[200~paste\x1b[201~")


@pytest.mark.size("every")
@pytest.mark.parametrize("way", ["tty", "socket"])
@pytest.mark.parametrize(("typed", "reaches"), BEHIND_A_COMMAND)
def test_what_follows_a_command_without_a_notice_reaches_the_agent(
    attach: Attach, typed: bytes, reaches: bytes
) -> None:
    """Fast typists do not wait for the agent's screen."""
    person, wire = attach(MARKED)
    person.type(b"\x1d" + typed)
    wait_to_hear(person, wire, reaches)


@WAYS
def test_a_second_relay_key_behind_a_command_opens_the_prompt_again(attach: Attach) -> None:
    """Several commands in one go, as scripts send them."""
    person, _ = attach(MARKED)
    person.type(b"\x1d/quiet\r\x1d/detach\r")
    assert person.wait_for_end() == 0
    assert "outcome detached" in person.text()


@WAYS
def test_a_paste_into_the_prompt_is_one_line_of_text(attach: Attach) -> None:
    """Its line ends would run commands, and what follows them would be lost."""
    person, _ = attach(MARKED)
    open_prompt(person)
    person.type(b"/x \x1b[200~one\rtwo\x1b[A\x7fthree\x1b[201~ four\r", shows="any key")
    assert "said /x one two [A three four" in person.text().replace("\x7f", " ")


def test_a_line_that_is_full_rings_the_bell(attach: Attach) -> None:
    """What cannot be taken is refused aloud."""
    person, _ = attach(MARKED)
    open_prompt(person)
    person.type(b"\x1b[200~" + b"x" * 4097 + b"\x1b[201~")
    person.wait_until(lambda: b"\x07" in person.received, "the bell")


@WAYS
def test_a_late_answer_at_the_prompt_is_the_agents(attach: Attach) -> None:
    """The agent asked before the relay key was pressed, and waits."""
    person, wire = attach(MARKED)
    open_prompt(person)
    person.type(b"/sta\x1b[?62;22ctus\r", shows="said /status")
    person.type(b"\x1b]11;rgb:0/0/0\x07")
    person.type(b"x")
    wait_to_hear(person, wire, b"\x1b[?62;22c\x1b]11;rgb:0/0/0\x07")


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
    open_prompt(person)
    person.type(b"/long\r", shows="row 1 of the long answer")


@WAYS
def test_a_long_answer_is_read_page_by_page_and_the_agents_screen_comes_back(attach: Attach) -> None:
    """Thirty lines over a small window must neither be lost nor push the agent's screen away."""
    person, _ = attach(PICTURE, shows="24 picture")
    before, cursor = tuple(person.emulator.text()), person.emulator.cursor()
    open_long(person)
    person.wait_for("1-23 of 100")
    assert rows(person)[22] == "row 23 of the long answer"
    person.type(b" ", shows="24-46 of 100")
    assert rows(person)[0] == "row 24 of the long answer"
    person.type(b"\x1b[B\x1b[6~ ", shows="93-100 of 100")
    assert rows(person)[:9] == [f"row {number} of the long answer" for number in range(93, 101)] + [""]
    person.type(b"\x1b[5~", shows="70-92 of 100")
    person.type(b"q")
    person.wait_until(lambda: tuple(person.emulator.text()) == before, "the agent's screen as it was")
    person.wait_until(lambda: person.emulator.cursor() == cursor, "the cursor where it was")
    assert b"long answer" not in bytes(person.received).split(b"\x1b[?7l")[0]
    person.type(b"z", shows="<heard>")


@WAYS
def test_the_last_page_ends_with_the_key_that_turned_the_pages(attach: Attach) -> None:
    """Who keeps pressing Space has read it all and is back at work."""
    person, _ = attach(PICTURE, shows="24 picture")
    open_long(person)
    for seen in ("1-23 of", "24-46 of", "47-69 of", "70-92 of", "93-100 of"):
        person.wait_for(seen)
        person.type(b" ")
    person.wait_until(lambda: "long answer" not in person.text(), "the agent's screen")
    person.type(b"z", shows="<heard>")


def test_nothing_of_a_long_answer_reaches_the_scrollback(attach: Attach) -> None:
    """What a terminal scrolled away cannot be repainted."""
    person, _ = attach(PICTURE, shows="24 picture")
    open_long(person)
    person.emulator.take_scrolled()
    person.type(b" \x1b[5~ ", shows="24-46 of 100")
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
