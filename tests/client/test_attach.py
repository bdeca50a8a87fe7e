"""Attaching a terminal to a leg: what is typed and shown, the relay key, sizes, several people, pipes."""

import hashlib
import os
import signal
import subprocess
import termios

import pytest

from tests.support.attached import DIGEST, ECHO, WAYS, Attach
from tests.support.legs import Wire, hold, python, raw_python
from tests.support.person import at_terminal, client
from tests.support.relay_world import is_stopped

pytestmark = pytest.mark.size("test")


@pytest.mark.parametrize("way", ["tty", "socket"])
def test_keys_reach_the_agent_and_its_words_the_person(attach: Attach) -> None:
    """The whole point: the terminal is the agent's, whichever way its bytes travel."""
    person, _ = attach()
    person.type(b"ab", shows="<6162>")
    person.type(b"\x03\x1a\x1c", shows="<031a1c>")
    person.type(b"\x1b", shows="<1b>")
    person.type(b"q")
    assert person.wait_for_end() == 0
    assert "bye" in person.text()
    assert "outcome ended 3" in person.text()


@WAYS
def test_a_paste_of_twenty_megabytes_arrives_whole(attach: Attach) -> None:
    """Other relays lose pasted bytes or take minutes."""
    data = b"\x1b[200~" + bytes(range(256)).replace(b"\x1b", b"") * 78431 + b"x" * 95 + b"\x1b[201~"
    assert len(data) == 20_000_012
    person, _ = attach(DIGEST.replace("LENGTH", "20_000_012"))
    person.type(data, shows=f"got {hashlib.sha256(data).hexdigest()}")


@WAYS
def test_attaching_again_shows_exactly_what_was_there(tmp_path: object, way: str) -> None:
    """A person comes back from another terminal and goes on as if never gone."""
    modes = "\\x1b[?2004h\\x1b[?25l\\x1b[4 q\\x1b[?1000h\\x1b]2;its title\\x07"
    code = f"say('one\\x1b[5;10H\\x1b[32mgreen{modes}'); os.read(0,1)"
    with hold(str(tmp_path), raw_python(code)) as held, Wire(held.folder) as wire:
        screen = wire.wait_for_text("green")
        with at_terminal(client(held.socket, way=way)) as person:
            person.wait_for("green")
            # It may take several reads until all of it is here.
            person.wait_until(lambda: person.emulator.cursor() == screen.cursor, "the cursor")
            person.wait_until(lambda: person.emulator.title() == "its title", "the title")
            names = ("2004", "1000", "cursor_visible", "cursor_shape")
            person.wait_until(
                lambda: [person.emulator.modes()[name] for name in names] == [1, 1, 0, 4], "the modes"
            )
            assert tuple(person.emulator.text()) == tuple(row.text for row in screen.rows)


@WAYS
def test_the_relay_key_opens_a_prompt_and_leaves_no_trace(attach: Attach) -> None:
    """Commands are given without leaving the agent, which must not notice."""
    person, _ = attach()
    person.type(b"\x1d", shows="relay")
    person.wait_for("/use AGENT")
    person.type(b"/stazz\x7f\x7ftus\r", shows="said /status")
    person.wait_for("any key")
    assert " [31mharmless" in person.text()
    person.type(b"x")
    person.wait_until(lambda: person.text() == "ready", "the agent's screen alone")
    person.type(b"z", shows="ready <7a>")


@pytest.mark.size("every")
@pytest.mark.parametrize("way", ["tty", "socket"])
@pytest.mark.parametrize("leave", [b"\x1b", b"\r", b"\x03", b"abc\x1d", b"/quiet\r"])
def test_the_prompt_is_left_without_doing_anything(attach: Attach, leave: bytes) -> None:
    """A key pressed by mistake must cost nothing."""
    person, _ = attach()
    person.type(b"\x1d", shows="relay")
    person.type(leave)
    person.wait_until(lambda: "relay" not in person.text(), "the prompt's end")
    person.type(b"z", shows="ready <7a>")


@pytest.mark.parametrize(
    ("modes", "key", "passed"),
    [("", b"\x1d\x1d", "<1d>"), ("\\x1b[>1u", b"\x1b[93;5u\x1d", "<1b5b39333b3575>")],
)
def test_the_relay_key_twice_reaches_the_agent(attach: Attach, modes: str, key: bytes, passed: str) -> None:
    """Ctrl-] may mean something to the agent, in the protocol it asked for."""
    person, _ = attach(f"say('{modes}')" + ECHO)
    person.type(key, shows=passed)


def test_what_is_typed_right_behind_the_relay_key_belongs_to_the_prompt(attach: Attach) -> None:
    """Scripts and fast typists send it all at once."""
    person, wire = attach()
    person.type(b"a\x1d/detach\r")
    assert person.wait_for_end() == 0
    assert "outcome detached" in person.text()
    assert "/detach" not in person.text()
    wire.wait_for_text("<61>")
    assert wire.ask("status")["attached"] == 0


@WAYS
def test_an_agent_that_ends_behind_the_prompt_ends_the_prompt(attach: Attach) -> None:
    """Nothing waits unseen."""
    person, wire = attach()
    person.type(b"\x1d", shows="relay")
    wire.type(b"q")
    assert person.wait_for_end() == 0
    assert "outcome ended 3" in person.text()


@WAYS
def test_the_agent_follows_the_windows_size(tmp_path: object, attach: Attach) -> None:
    """And the size of whoever typed last, where several people look."""
    code = """
import signal
def show(*_): say("size %dx%d " % os.get_terminal_size())
signal.signal(signal.SIGWINCH, show); show()
while True: os.read(0, 100)
"""
    person, _ = attach(code, shows="size 100x30", rows=30, cols=100)
    person.resize(20, 90)
    person.wait_for("size 90x20")
    with at_terminal(client(f"{tmp_path}/sock"), rows=12, cols=60) as other:
        other.wait_for("size 60x12")
        other.received.clear()
        person.type(b"x")
        other.wait_until(lambda: b"size 90x20" in other.received, "the first one's size")


def test_several_people_see_and_type_in_one_leg(tmp_path: object, attach: Attach) -> None:
    """A colleague looks over the shoulder; pastes of two do not mix."""
    one, _ = attach()
    with at_terminal(client(f"{tmp_path}/sock", way="socket")) as two:
        two.wait_for("ready")
        one.type(b"\x1b[200~one")
        two.wait_for("6f6e65>")
        two.type(b"two")
        one.type(b"more\x1b[201~")
        for person in (one, two):
            person.wait_for("74776f>")
            text = "".join(person.text().split())
            assert text.index("6d6f72651b5b3230317e") < text.index("74776f")


def test_a_command_of_relays_is_whole_whoever_types_meanwhile(attach: Attach) -> None:
    """Keys between it and its return would make another command of it, and submit somebody's half line."""
    person, wire = attach()
    assert wire.ask("input", data="one", unless_typed=True, goes_on=True)["ok"]
    person.type(b"two", shows="6f6e65>")
    assert wire.ask("input", data="\r")["ok"]
    person.wait_for("74776f>")
    text = "".join(person.text().split())
    assert text.index("6f6e65>") < text.index("0d") < text.index("74776f>")


def test_keys_are_free_again_where_a_command_is_never_finished(attach: Attach) -> None:
    """A daemon that died in the middle of it must not lock anybody out."""
    person, wire = attach()
    assert wire.ask("input", data="one", goes_on=True)["ok"]
    wire.sock.close()
    person.type(b"two", shows="74776f>")


def test_the_half_typed_line_of_a_person_is_known(attach: Attach) -> None:
    """The daemon never types into it: it asks in the same breath."""
    person, wire = attach()
    assert wire.ask("input", data="ok", unless_typed=True)["ok"]
    person.wait_for("<6f6b>")
    wire.ask("watch")
    person.type(b"half")
    assert wire.event("clients")["typed"] == 4
    assert wire.ask("input", data="no", unless_typed=True)["code"] == "typed"
    person.type(b"\r")
    assert wire.event("clients")["typed"] == 0
    assert wire.ask("input", data="ok", unless_typed=True)["ok"]
    age_s = wire.ask("status")["key_age_s"]
    assert isinstance(age_s, float)
    assert 0 <= age_s < 20


def test_everybody_can_be_detached_at_once(attach: Attach) -> None:
    """The daemon frees the terminals, the agent goes on."""
    person, wire = attach()
    assert wire.ask("detach")["detached"] == 1
    assert person.wait_for_end() == 0
    assert "outcome detached" in person.text()
    assert wire.ask("status")["exit"] is None


def test_a_stopped_client_gives_the_terminal_back_and_takes_it_again(attach: Attach) -> None:
    """Suspending the client must leave a usable shell; continuing it must repaint."""
    person, _ = attach("say('\\x1b[?1049h')" + ECHO)
    os.kill(person.pid, signal.SIGTSTP)
    person.wait_until(lambda: is_stopped(person.pid), "the client's stop")
    person.wait_until(lambda: not person.emulator.alternate(), "the shell's screen")
    person.wait_until(lambda: termios.tcgetattr(person.slave) == person.before, "the line discipline")
    os.kill(person.pid, signal.SIGCONT)
    person.wait_for("ready")
    person.wait_until(person.emulator.alternate, "the agent's screen")
    person.type(b"z", shows="<7a>")


def test_piped_input_is_given_to_the_agent_and_ends_as_ctrl_d(tmp_path: object) -> None:
    """`echo words | agent-relay attach` works as with `script`."""
    with hold(str(tmp_path), python("import sys; print('read', repr(sys.stdin.read()))")) as held:
        done = subprocess.run(
            client(held.socket), input=b"some\nwords", capture_output=True, timeout=60, check=True
        )
    assert b"read 'some\\nwords'" in done.stdout
    assert done.stdout.endswith(b"outcome ended 0\n")


def test_nobody_listening_is_a_sentence(tmp_path: object) -> None:
    """A leg that just ended is no reason for a traceback."""
    os.chmod(str(tmp_path), 0o700)
    with at_terminal(client(f"{tmp_path}/sock")) as person:
        assert person.wait_for_end() == 1
        assert "RelayError: the agent cannot be reached" in person.text()
