"""What relay says while an agent has the screen: seen at the bottom or called out, no key or row lost."""

import subprocess

import pytest

from agent_relay.client.attach.tty import render_line
from tests.support.attached import ECHO, WAYS, Attach
from tests.support.legs import Wire, hold, raw_python, wait_until
from tests.support.person import Person, client

pytestmark = pytest.mark.size("test")


def read_output(wire: Wire) -> str:
    """What the agent wrote."""
    return str(wire.ask("tail", offset=0, limit=4096)["data"])


def hears_below(person: Person, wire: Wire) -> bool:
    """Whether the agent heard two keys, each by itself, while a line stood over its screen all the time."""
    wire.ask("say", text="cas is available again")
    person.wait_for("cas is available again")
    before = read_output(wire)
    for key, heard in ((b"\x1b", "<1b>"), (b"x", "<1b><78>")):
        person.type(key)
        wait_until(lambda heard=heard: read_output(wire) == before + heard, "the agent hears the key")
    return "is available again" in person.text()


@WAYS
def test_a_line_is_shown_and_a_key_is_the_agents(attach: Attach) -> None:
    """The person is told where they look, and goes on typing as if nothing had been."""
    person, wire = attach()
    assert wire.ask("say", text="cas can be\x1b[2J had again") == {"id": None, "ok": True, "told": 1}
    person.wait_for("relay  cas can be [2J had again")
    assert "ready" in person.text()
    person.type(b"ab", shows="ready <61")
    person.wait_until(lambda: "can be" not in person.text(), "the agent's screen alone")
    person.type(b"c", shows="63>")
    person.type(b"q")
    assert person.wait_for_end() == 0


@WAYS
def test_a_key_reaches_the_agent_while_a_line_is_shown(attach: Attach) -> None:
    """Escape stops an agent: late, and together with the next key, it would be another key."""
    person, wire = attach()
    # On a busy machine the line may be gone before both are pressed: then it is told again.
    wait_until(lambda: hears_below(person, wire), "the agent to hear two keys below a line")
    person.wait_for("<1b><78>")
    person.wait_until(lambda: "is available again" not in person.text(), "the agent's screen alone")


@WAYS
def test_the_relay_key_opens_the_prompt_while_a_line_is_shown(attach: Attach) -> None:
    """What the line says to do is done there and then."""
    person, wire = attach()
    wire.ask("say", text="cas is available again")
    person.wait_for("cas is available again")
    person.type(b"\x1d/status\r", shows="said /status")
    person.type(b"x")
    person.wait_until(lambda: "said" not in person.text(), "the agent's screen")
    person.type(b"q")
    assert person.wait_for_end() == 0


@WAYS
def test_a_line_waits_for_the_prompt_and_goes_with_the_agent(attach: Attach) -> None:
    """Half a command typed to relay is not thrown away, and an agent's end is not kept waiting."""
    person, wire = attach()
    person.type(b"\x1d/stat", shows="relay  /stat")
    wire.ask("say", text="the second line")
    person.type(b"us\r", shows="said /status")
    person.type(b"x", shows="the second line")
    wire.ask("input", data="q", unless_typed=False)
    assert person.wait_for_end() == 0
    assert "outcome ended 3" in person.text()


def test_a_pipe_is_not_painted_on(tmp_path: object) -> None:
    """What a program reads is what the agent wrote."""
    with hold(str(tmp_path), raw_python(ECHO)) as held, Wire(held.folder) as wire:
        with subprocess.Popen(client(held.socket), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as piped:
            wait_until(lambda: wire.ask("status")["attached"] == 1, "the pipe is attached")
            assert wire.ask("say", text="cas is available again")["told"] == 1
            assert piped.stdout is not None
            # What is typed before the agent has made its terminal raw is thrown away with that.
            out = piped.stdout.read(len(b"ready"))
            wire.ask("input", data="q")
            out += piped.communicate()[0]
        assert b"bye" in out
        assert b"is available again" not in out


def test_what_is_no_line_is_refused(tmp_path: object) -> None:
    """One caller's mistake is that caller's."""
    with hold(str(tmp_path), raw_python(ECHO)) as held, Wire(held.folder) as wire:
        assert wire.ask("say", text="to nobody")["told"] == 0
        for text in (None, 5, "x" * 2001):
            answer = wire.ask("say", text=text)
            assert (answer["ok"], answer["code"]) == (False, "bad-request")


@pytest.mark.size("check")
def test_a_long_line_takes_as_many_rows_as_it_needs() -> None:
    """Words cut off at the edge would be the command somebody has to type."""
    painted = render_line("one two three", 10, 17).decode()
    assert painted.endswith(
        "\x1b[9;1H\x1b[2K\x1b[7m relay \x1b[0m one two \x1b[10;1H\x1b[2K\x1b[7m       \x1b[0m three"
    )
    assert render_line("x" * 900, 2, 9).decode().count("\x1b[2K") == 1
    # Signs of two columns: what a terminal wraps by itself would stand in the row below.
    painted = render_line("项目项目项目", 10, 17).decode()
    assert painted.endswith(
        "\x1b[9;1H\x1b[2K\x1b[7m relay \x1b[0m 项目项目\x1b[10;1H\x1b[2K\x1b[7m       \x1b[0m 项目"
    )


ALONE = ["env", "-u", "TMUX", "-u", "STY", "-u", "KITTY_WINDOW_ID", "-u", "WT_SESSION", "-u", "VTE_VERSION"]
ITERM = [*ALONE, "TERM_PROGRAM=iTerm.app"]
TOLD = {"title": "shop: bob goes on", "text": "ann hit its usage limit.", "bell": True, "osc": True}
SHOWN = b"\x07\x1b]9;shop: bob goes on: ann hit its usage limit.\x1b\\"
WAITS = 'say("ready"); os.read(0, 1)'
TITLES = """
say("ready\\x1b]2;half of a")
os.read(0, 1)
say(" title\\x07 done")
os.read(0, 1)
"""


@WAYS
def test_a_terminal_shows_a_notification_in_its_own_form(attach: Attach) -> None:
    """The person reads elsewhere; the agent's screen is not theirs to lose."""
    person, wire = attach(WAITS, prefix=ITERM)
    before = person.text()
    assert wire.ask("notify", **TOLD) == {"id": None, "ok": True, "told": 1}
    person.wait_until(lambda: SHOWN in person.received, "the notification")
    assert person.text() == before


def test_a_terminal_of_no_known_form_only_rings(attach: Attach) -> None:
    """What it does not know could stand on the screen as text."""
    person, wire = attach(WAITS, prefix=[*ALONE, "TERM_PROGRAM=Apple_Terminal"])
    assert wire.ask("notify", **TOLD)["told"] == 1
    person.wait_until(lambda: b"\x07" in person.received, "the bell")
    assert b"]9;" not in person.received


@WAYS
def test_the_halves_of_a_sequence_of_the_agents_stay_together(attach: Attach) -> None:
    """Bytes in between would end the one and print the rest of it."""
    person, wire = attach(TITLES, prefix=ITERM)
    person.wait_until(lambda: b"half of a" in person.received, "half of a sequence")
    wire.ask("notify", **TOLD)
    person.type(b"x", shows="done")
    assert b"\x1b]2;half of a title\x07" in person.received
    wire.ask("notify", **TOLD)
    person.wait_until(lambda: SHOWN in person.received, "the notification")


def test_without_a_terminal_nobody_is_told(tmp_path: object) -> None:
    """The daemon asks the desktop instead."""
    with hold(str(tmp_path), raw_python(WAITS)) as held, Wire(held.folder) as wire:
        assert wire.ask("notify", **TOLD)["told"] == 0
        assert wire.ask("notify", title="x" * 2001, text="")["code"] == "bad-request"
        wait_until(lambda: wire.ask("status")["attached"] == 0, "nobody")
