"""Nothing typed around the relay prompt vanishes: it is in the prompt's line, or it reaches the agent."""

import pytest

from tests.support.legs import Wire, hold, raw_python
from tests.support.person import Person, at_terminal, client

pytestmark = pytest.mark.size("test")

ECHO = """
say("ready ")
while True:
    data = os.read(0, 1 << 16)
    say("<" + data.hex() + ">")
"""
MARKED = "say('\\x1b[?2004h')" + ECHO
WAYS = pytest.mark.parametrize("way", ["tty", "socket"])


def heard(wire: Wire) -> bytes:
    """What the agent has read so far."""
    parts = [part for part in wire.output().split(b"<")[1:] if b">" in part]
    return b"".join(bytes.fromhex(part.split(b">")[0].decode()) for part in parts)


def wait_to_hear(person: Person, wire: Wire, expected: bytes) -> None:
    """The agent has read exactly this."""
    person.wait_until(lambda: len(heard(wire)) >= len(expected), f"{expected!r}")
    assert heard(wire) == expected


def open_notice(person: Person) -> None:
    """The person asks relay something and sees the answer."""
    person.wait_for("ready")
    person.type(b"\x1d")
    person.wait_for("/use AGENT")
    person.type(b"/status\r")
    person.wait_for("any key")


@WAYS
@pytest.mark.parametrize(
    ("typed", "reaches"),
    [
        (b"x", b""),
        (b"\x1b[A", b""),
        ("ü".encode(), b""),
        (b"xhello\r", b"hello\r"),
        (b"\x1b[Ahello", b"hello"),
        (b"x\x1b", b"\x1b"),
        (b"\x1b[200~one\rtwo\x1b[201~", b"\x1b[200~one\rtwo\x1b[201~"),
        (b"x\x1b[200~one\x1b[201~y", b"\x1b[200~one\x1b[201~y"),
    ],
)
def test_what_follows_the_key_that_ends_a_notice_reaches_the_agent(
    tmp_path: object, way: str, typed: bytes, reaches: bytes
) -> None:
    """Who pastes the next task while a notice stands means the agent."""
    with (
        hold(str(tmp_path), raw_python(MARKED)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        open_notice(person)
        person.type(typed)
        person.wait_until(lambda: "any key" not in person.text(), "the notice's end")
        wait_to_hear(person, wire, reaches)
        person.type(b"z")
        wait_to_hear(person, wire, reaches + b"z")


@WAYS
def test_a_large_paste_into_a_notice_arrives_whole(tmp_path: object, way: str) -> None:
    """It comes in many reads: some are the client's, the rest the holder's."""
    paste = b"\x1b[200~" + b"".join(b"line %06d\r" % number for number in range(20_000)) + b"\x1b[201~"
    code = f"""
import hashlib
say("\\x1b[?2004hready")
left, digest = {len(paste)}, hashlib.sha256()
while left:
    data = os.read(0, min(left, 1 << 16))
    left -= len(data); digest.update(data)
say("\\r\\ngot " + digest.hexdigest())
os.read(0, 1)
"""
    import hashlib

    with hold(str(tmp_path), raw_python(code)) as held, at_terminal(client(held.socket, way=way)) as person:
        open_notice(person)
        person.type(paste)
        person.wait_for("got " + hashlib.sha256(paste).hexdigest())


@WAYS
def test_an_agent_without_marked_pastes_gets_none(tmp_path: object, way: str) -> None:
    """The prompt asked the terminal for the marks; to this agent they would be words."""
    with (
        hold(str(tmp_path), raw_python(ECHO)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        open_notice(person)
        text = b"0123456789abcdef" * 1000
        person.type(b"\x1b[200~" + text + b"\x1b[201~")
        wait_to_hear(person, wire, text)
        person.type(b"z")
        wait_to_hear(person, wire, text + b"z")


@WAYS
def test_what_was_typed_before_a_notice_stands_does_not_end_it(tmp_path: object, way: str) -> None:
    """A notice that is gone before anybody read it told nothing, and the keys were for the agent."""
    with (
        hold(str(tmp_path), raw_python(MARKED)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for("ready")
        person.type(b"\x1d/status\rhello\x1b[200~pas")
        person.wait_for("any key")
        person.type(b" ")
        person.wait_until(lambda: "any key" not in person.text(), "the notice's end")
        person.type(b"te\x1b[201~")
        wait_to_hear(person, wire, b"hello\x1b[200~paste\x1b[201~")


@WAYS
@pytest.mark.parametrize(
    ("typed", "reaches"),
    [(b"/quiet\rhello", b"hello"), (b"ab\x03hello", b"hello"), (b"\x1d\x1b[B", b"\x1d\x1b[B")],
)
def test_what_follows_a_command_without_a_notice_reaches_the_agent(
    tmp_path: object, way: str, typed: bytes, reaches: bytes
) -> None:
    """Fast typists do not wait for the agent's screen."""
    with (
        hold(str(tmp_path), raw_python(MARKED)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for("ready")
        person.type(b"\x1d" + typed)
        wait_to_hear(person, wire, reaches)


@WAYS
def test_a_second_relay_key_behind_a_command_opens_the_prompt_again(tmp_path: object, way: str) -> None:
    """Several commands in one go, as scripts send them."""
    with hold(str(tmp_path), raw_python(MARKED)) as held, at_terminal(client(held.socket, way=way)) as person:
        person.wait_for("ready")
        person.type(b"\x1d/quiet\r\x1d/detach\r")
        assert person.wait_for_end() == 0
        assert "outcome detached" in person.text()


@WAYS
def test_a_paste_into_the_prompt_is_one_line_of_text(tmp_path: object, way: str) -> None:
    """Its line ends would run commands, and what follows them would be lost."""
    with hold(str(tmp_path), raw_python(MARKED)) as held, at_terminal(client(held.socket, way=way)) as person:
        person.wait_for("ready")
        person.type(b"\x1d")
        person.wait_for("/use AGENT")
        person.type(b"/x \x1b[200~one\rtwo\x1b[A\x7fthree\x1b[201~ four\r")
        person.wait_for("any key")
        assert "said /x one two [A three four" in person.text().replace("\x7f", " ")


def test_a_line_that_is_full_rings_the_bell(tmp_path: object) -> None:
    """What cannot be taken is refused aloud."""
    with hold(str(tmp_path), raw_python(MARKED)) as held, at_terminal(client(held.socket)) as person:
        person.wait_for("ready")
        person.type(b"\x1d")
        person.wait_for("/use AGENT")
        person.type(b"\x1b[200~" + b"x" * 4097 + b"\x1b[201~")
        person.wait_until(lambda: b"\x07" in person.received, "the bell")


@WAYS
def test_a_late_answer_at_the_prompt_is_the_agents(tmp_path: object, way: str) -> None:
    """The agent asked before the relay key was pressed, and waits."""
    with (
        hold(str(tmp_path), raw_python(MARKED)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for("ready")
        person.type(b"\x1d")
        person.wait_for("/use AGENT")
        person.type(b"/sta\x1b[?62;22ctus\r")
        person.wait_for("said /status")
        person.type(b"\x1b]11;rgb:0/0/0\x07")
        person.type(b"x")
        wait_to_hear(person, wire, b"\x1b[?62;22c\x1b]11;rgb:0/0/0\x07")
