"""Nothing typed around the relay prompt vanishes: it is in the prompt's line, or it reaches the agent."""

import hashlib

import pytest

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
    person.type(b"\x1d")
    person.wait_for("/use AGENT")


def open_notice(person: Person) -> None:
    """The person asks relay something and sees the answer."""
    open_prompt(person)
    person.type(b"/status\r")
    person.wait_for("any key")


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
    person.type(paste)
    person.wait_for("got " + hashlib.sha256(paste).hexdigest())


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
    person.type(b"\x1d/status\rhello\x1b[200~pas")
    person.wait_for("any key")
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
    person.type(b"/x \x1b[200~one\rtwo\x1b[A\x7fthree\x1b[201~ four\r")
    person.wait_for("any key")
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
    person.type(b"/sta\x1b[?62;22ctus\r")
    person.wait_for("said /status")
    person.type(b"\x1b]11;rgb:0/0/0\x07")
    person.type(b"x")
    wait_to_hear(person, wire, b"\x1b[?62;22c\x1b]11;rgb:0/0/0\x07")
