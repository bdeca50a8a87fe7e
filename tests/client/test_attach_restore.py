"""A terminal given back: every mode off and the line discipline as before, whoever dies and however."""

import os
import shlex
import shutil
import signal
import termios
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.attached import WAYS, Attach
from tests.support.legs import Held, Wire, hold, raw_python, wait_until
from tests.support.person import Person, at_terminal, client
from tests.support.sizes import sized
from tests.support.tmux_pane import TmuxPane

if TYPE_CHECKING:
    from tests.support.real import World

pytestmark = pytest.mark.size("test")

EVERYTHING = (
    "\\x1b[>7u\\x1b[>4;2m\\x1b[?1049h\\x1b[?1000h\\x1b[?1002h\\x1b[?1003h\\x1b[?1006h\\x1b[?1004h\\x1b[?2004h"
    "\\x1b[?2031h\\x1b[?2027h\\x1b[?25l\\x1b[3 q\\x1b[2;5r\\x1b[1;31m\\x1b(0\\x1b[?1h\\x1b=\\x1b[4h\\x1b[?7l"
    "\\x1b]11;#102030\\x07\\x1b[?2026h"
)
AGENT = f"""
say("{EVERYTHING}READY")
while True:
    data = os.read(0, 100)
    if data == b"q": sys.exit(0)
    if data == b"s": say("\\x1b]2;half a title")
"""
UP = "say('up'); os.read(0, 1)"


def are_off(person: Person) -> bool:
    """Whether the terminal's modes are those of a new one."""
    fresh = Emulator(find_library() or "", 80, 24).modes()
    # Alternate scroll (1007) is saved and restored by the terminal itself, where it can.
    return {**person.emulator.modes(), "1007": 0} == {**fresh, "1007": 0}


def assert_restored(person: Person) -> None:
    """Nothing of the agent is left on the terminal, and a shell could go on."""
    assert are_off(person), person.emulator.modes()
    person.emulator.feed(b"\r\nlqk plain")
    assert "lqk plain" in person.text()
    row = person.emulator.text().index("lqk plain")
    assert person.emulator.color(0, row) == ""
    person.emulator.feed(b"\x1b[24;1H\r\n\r\nbottom")
    assert person.emulator.text()[23] == "bottom", "the scroll region is the whole screen"
    assert termios.tcgetattr(person.slave) == person.before


def leave_by_prompt(person: Person, _held: Held) -> None:
    """The person leaves."""
    person.type(b"\x1b[93;5u/detach\r")


def quit_agent(person: Person, _held: Held) -> None:
    """The agent ends without cleaning up."""
    person.type(b"q")


def kill_agent(_person: Person, held: Held) -> None:
    """The agent dies in the middle of everything."""
    os.kill(held.started.child_pid, signal.SIGKILL)


def kill_agent_in_a_sequence(person: Person, held: Held) -> None:
    """The agent dies with half a title on its lips."""
    person.type(b"s")
    person.wait_until(lambda: b"half a title" in person.received, "half a title")
    os.kill(held.started.child_pid, signal.SIGKILL)


def kill_holder(_person: Person, held: Held) -> None:
    """Nobody is left to say goodbye."""
    os.kill(held.started.holder_pid, signal.SIGKILL)


ENDINGS = [leave_by_prompt, quit_agent, kill_agent, kill_agent_in_a_sequence, kill_holder]


@pytest.mark.size("every")
@pytest.mark.parametrize("way", ["tty", "socket"])
@pytest.mark.parametrize(
    "ending", sized(ENDINGS, [leave_by_prompt, kill_agent], name=lambda one: one.__name__)
)
def test_the_terminal_is_restored_whoever_ends(tmp_path: object, way: str, ending: object) -> None:
    """A terminal left in mouse mode without echo is the worst thing a relay can leave behind."""
    with hold(str(tmp_path), raw_python(AGENT)) as held, at_terminal(client(held.socket, way=way)) as person:
        person.wait_for("READY")
        person.wait_until(lambda: person.emulator.modes()["1003"] == 1, "the agent's modes")
        assert callable(ending)
        ending(person, held)
        assert person.wait_for_end() == 0
        assert b"outcome" in person.received
        assert_restored(person)


SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]


@WAYS
@pytest.mark.size("every")
@pytest.mark.parametrize("number", sized(SIGNALS, [signal.SIGHUP]))
def test_the_terminal_is_restored_when_the_client_is_ended(attach: Attach, number: signal.Signals) -> None:
    """Closing a window, ending a login and `kill` are ordinary."""
    person, wire = attach(AGENT, shows="READY")
    os.kill(person.pid, number)
    assert person.wait_for_end() == 128 + number
    assert_restored(person)
    assert wire.ask("status")["exit"] is None


def test_the_holder_restores_the_terminal_of_a_client_that_was_killed(attach: Attach) -> None:
    """Not even SIGKILL (or a crash of Python) may cost the person their terminal."""
    person, _ = attach(AGENT, shows="READY")
    assert termios.tcgetattr(person.slave) != person.before
    os.kill(person.pid, signal.SIGKILL)
    assert person.wait_for_end() == 137
    person.wait_until(lambda: not person.emulator.alternate(), "the main screen")
    person.wait_until(lambda: termios.tcgetattr(person.slave) == person.before, "the line discipline")
    person.wait_until(lambda: are_off(person), "every mode to be off")
    assert_restored(person)


def test_what_was_on_the_screen_before_stays_in_the_scrollback(attach: Attach) -> None:
    """The person's shell session must not be painted over."""
    person, _ = attach(UP, shows="up", prefix=["sh", "-c", 'echo before; exec "$@"', "sh"])
    assert "before" not in person.text()
    assert "before" in person.emulator.take_scrolled()
    person.type(b"q")
    assert person.wait_for_end() == 0
    assert person.text().startswith("up")


@WAYS
@pytest.mark.parametrize("ending", [leave_by_prompt, quit_agent])
def test_the_palette_an_agent_changed_is_shown_again_and_given_back(
    tmp_path: object, way: str, ending: object
) -> None:
    """A theme that stays behind colors everything the person does next; their own must not be lost either."""
    theme = "say('\\x1b]4;1;rgb:12/34/56\\x07')" + AGENT
    with hold(str(tmp_path), raw_python(theme)) as held, Wire(held.folder) as wire:
        wire.wait_for_text("READY")
        with at_terminal(client(held.socket, way=way)) as person:
            person.wait_for("READY")
            assert bytes(person.received).count(b"\x1b]4;1;rgb:12/34/56") == 1
            assert b"\x1b]104" not in person.received
            assert callable(ending)
            ending(person, held)
            assert person.wait_for_end() == 0
            assert bytes(person.received).count(b"\x1b]104") == 1
            assert b"\x1b]104;1\x1b\\" in person.received
            assert_restored(person)


@WAYS
def test_clusters_are_as_wide_afterwards_as_the_person_had_them(attach: Attach) -> None:
    """Some terminals begin with mode 2027 on: off afterwards, every emoji in their shell moves the line."""
    person, _ = attach(UP, shows="up", prefix=["sh", "-c", 'printf "\\033[?2027h"; exec "$@"', "sh"])
    assert person.emulator.modes()["2027"] == 0
    person.type(b"q")
    assert person.wait_for_end() == 0
    assert person.emulator.modes()["2027"] == 1


LINES = "say('\\x1b[H\\x1b[2Jone\\r\\ntwo\\r\\nthree'); os.read(0, 1)"
TMUX = shutil.which("tmux")
PANE = (
    "#{alternate_on} #{cursor_flag} #{insert_flag} #{keypad_cursor_flag} #{keypad_flag} #{mouse_any_flag} "
    "#{mouse_sgr_flag} #{origin_flag} #{wrap_flag} #{scroll_region_upper} #{scroll_region_lower}"
)


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed here")
def test_leaving_moves_nothing_in_tmux_after_a_pager(tmp_path: object) -> None:
    """It keeps the cursor of the last program that took its screen: our words would be painted there."""
    with hold(f"{tmp_path}/leg", raw_python(LINES)) as held:
        before, after = f"{tmp_path}/before", f"{tmp_path}/after"
        pager = "printf '\\033[?1049h\\033[?1049l'"
        run = shlex.join(client(held.socket))
        script = f"{pager}; stty -a >{before}; read wait; {run}; stty -a >{after}; read wait"
        environ = {**os.environ, "LC_ALL": "C.UTF-8"}
        world = SimpleNamespace(prefix=[], root=f"{tmp_path}", project=f"{tmp_path}", env=lambda: environ)
        with TmuxPane(cast("World", world), ["sh", "-c", script], size=(24, 80)) as pane:
            wait_until(lambda: os.path.exists(before), "the pager's end")
            modes = pane.read(PANE)
            pane.press("Enter")
            wait_until(lambda: "three" in pane.rows, "the agent's lines")
            pane.press("q")
            wait_until(lambda: os.path.exists(after), "the client's end")
            wait_until(lambda: "outcome" in pane.screen, "its last words")
            shown = [row.removesuffix("outcome ended 0") for row in pane.screen.rstrip().split("\n")]
            assert shown == ["one", "two", "three"]
            assert pane.read(PANE) == modes
            with open(before, encoding="utf-8") as one, open(after, encoding="utf-8") as other:
                assert one.read() == other.read()


@WAYS
def test_leaving_moves_nothing_after_a_pager(attach: Attach) -> None:
    """The last words stand below what the agent said, not where a pager had found the cursor."""
    pager = 'printf "\\033[?1049h\\033[?1049l"; exec "$@"'
    person, _ = attach(LINES, shows="three", prefix=["sh", "-c", pager, "sh"])
    person.type(b"q")
    assert person.wait_for_end() == 0
    assert person.text().split("\n") == ["one", "two", "threeoutcome ended 0"]
