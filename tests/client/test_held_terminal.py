"""From one agent to the next: the bar stays on the screen, and what is typed reaches the next one once."""

import os
import signal
import termios

import pytest

from agent_relay.terminal.holder.child import count_unread
from tests.support.attached import WAYS, heard, wait_to_hear
from tests.support.legs import Wire, wait_until
from tests.support.switches import BAR, NEXT, Switches, at_switches

pytestmark = pytest.mark.size("test")


def wait_for_end(switches: Switches, status: int) -> None:
    """The client has left the terminal as it was."""
    switches.person.wait_for(f"status {status}")
    assert switches.person.wait_for_end() == 0
    assert termios.tcgetattr(switches.person.slave) == switches.person.before
    modes = switches.person.emulator.modes()
    assert (modes["2004"], modes["1003"], modes["1"], modes["7"], modes["cursor_visible"]) == (0, 0, 0, 1, 1)


def wait_between(switches: Switches) -> None:
    """The client has the terminal, whose cursor it hides; the bar is there all the time."""
    modes = switches.person.emulator.modes
    switches.watch(BAR[0], lambda: modes()["cursor_visible"] == 0, "the agent's end")


def show_bar(switches: Switches, wire: Wire) -> None:
    """The bar is shown on the agent."""
    assert wire.ask("bar", texts=BAR, holds_keys=True)["ok"]
    switches.person.wait_for(BAR[0])


def end_under_bar(switches: Switches, wire: Wire, typed: bytes = b"") -> None:
    """The bar is shown on the agent, `typed` is held, and the agent ends; another is awaited."""
    show_bar(switches, wire)
    switches.person.type(typed)
    wait_until(lambda: wire.ask("status")["held"] == len(typed), "the keys to be held")
    switches.answer("handing-off", bar=BAR)
    wire.type(b"q")
    assert wire.event("exit") if wire.ask("watch")["exit"] is None else True


@WAYS
def test_keys_of_a_whole_switch_reach_the_successor_below_a_bar_that_is_always_there(
    first: Wire, second_below_bar: Wire, switches: Switches
) -> None:
    """On the first agent, between the two, and on the second before it works: in order, once."""
    person = switches.person
    end_under_bar(switches, first, b"abc\x1b[A")
    person.type(b"d\x1b[200~e\rf")
    wait_between(switches)
    person.type(b"g\x1b[201~\r")
    assert "last words of ada" in person.text()
    switches.answer("starting", bar=NEXT, message="→ ada hit its limit. Continuing with bob.")
    person.wait_for(NEXT[0])
    person.resize(24, 20)
    person.wait_until(lambda: person.emulator.text()[-1] == NEXT[1], "the bar in 20 columns")
    person.resize(24, 80)
    person.wait_until(lambda: person.emulator.text()[-1] == NEXT[0], "the bar in 80 columns")
    switches.answer("starting", leg="two", bar=NEXT, message="→ ada hit its limit.")
    switches.watch(NEXT[0], lambda: "I am bob" in person.text(), "the successor")
    assert "last words of ada" in "\n".join(person.emulator.take_scrolled())
    person.type(b"h")
    wait_until(lambda: second_below_bar.ask("status")["held"] == 25, "all of it to be held")
    assert heard(second_below_bar) == b""
    assert second_below_bar.ask("bar", texts=[], holds_keys=False)["ok"]
    wait_to_hear(switches.person, second_below_bar, b"abc\x1b[Ad\x1b[200~e\rfg\x1b[201~\rh")
    person.type(b"i")
    wait_to_hear(switches.person, second_below_bar, b"abc\x1b[Ad\x1b[200~e\rfg\x1b[201~\rhi")
    assert "Continuing" not in bytes(person.received).decode()
    assert person.emulator.modes()["1003"] == 1
    switches.answer("ended")
    second_below_bar.type(b"q")
    wait_for_end(switches, 0)


def test_a_handoff_asked_for_elsewhere_shows_the_bar_first(tmp_path: object, second: Wire) -> None:
    """Whoever opens a session that is being handed over sees why nothing is there yet."""
    with at_switches(f"{tmp_path}/daemon", "tty", "", bar=BAR) as switches:
        switches.person.wait_for(BAR[0])
        switches.person.type(b"abc")
        switches.hand_on()
        wait_to_hear(switches.person, second, b"abc")


@WAYS
def test_a_half_typed_line_reaches_the_successor_before_the_held_keys(
    first: Wire, second_below_bar: Wire, switches: Switches
) -> None:
    """It stood in the input line of the agent that was ended, and was gone with it."""
    switches.person.type(b"sent\rnext dp\x7fo th")
    wait_to_hear(switches.person, first, b"sent\rnext dp\x7fo th")
    assert first.ask("bar", texts=BAR, holds_keys=True, line="typed")["ok"]
    switches.person.wait_for(BAR[0])
    # So the daemon ends it; that clears the line there, and nobody sent it.
    first.type(b"\x15")
    end_under_bar(switches, first, b"is\r")
    wait_between(switches)
    switches.answer("starting", leg="two", bar=NEXT)
    switches.person.wait_for("I am bob")
    assert second_below_bar.ask("bar", texts=[], holds_keys=False)["ok"]
    wait_to_hear(switches.person, second_below_bar, b"next dp\x7fo this\r")


@WAYS
def test_a_half_typed_line_stays_where_it_is_if_the_switch_is_held_back(
    first: Wire, switches: Switches
) -> None:
    """The agent that keeps the session has it in its input line already."""
    switches.person.type(b"half")
    wait_to_hear(switches.person, first, b"half")
    show_bar(switches, first)
    switches.person.type(b"\x1b")
    switches.watch(BAR[0], lambda: "ada keeps the session" in switches.person.text(), "the answer")
    assert first.ask("bar", texts=[], holds_keys=False)["ok"]
    assert first.ask("status")["typed"] == 4
    switches.person.type(b"!")
    wait_to_hear(switches.person, first, b"half!")


def test_the_answer_to_a_question_is_no_half_typed_line(first: Wire, switches: Switches) -> None:
    """One key answers it, without Enter: the daemon sees that the input line is empty."""
    switches.person.type(b"y")
    wait_to_hear(switches.person, first, b"y")
    # Just typed, it may stand there although the daemon has not seen it yet.
    assert first.ask("bar", texts=BAR, holds_keys=True, line="empty")["ok"]
    assert first.ask("status")["typed"] == 1
    wait_until(lambda: float(str(first.ask("status")["key_age_s"])) > 2, "the key to be an old one")
    assert first.ask("bar", texts=NEXT, holds_keys=True, line="empty")["ok"]
    assert first.ask("status")["typed"] == 0


@WAYS
def test_escape_holds_the_switch_back_between_two_agents_and_ctrl_c_is_kept(
    first: Wire, second: Wire, switches: Switches
) -> None:
    """Who presses Ctrl-C cannot see which moment that is; keys that only begin like Escape are kept, too."""
    end_under_bar(switches, first)
    wait_between(switches)
    switches.person.type(b"a\x1b[")
    switches.person.type(b"B\x1b[?1;2c\x03")
    switches.person.type(b"c")
    switches.watch(BAR[0], lambda: count_unread(switches.person.slave) == 0, "the keys to be read")
    switches.person.type(b"\x1b")
    switches.watch(BAR[0], lambda: "ada keeps the session" in switches.person.text(), "the answer")
    assert switches.held_back() == 1
    switches.hand_on()
    wait_to_hear(switches.person, second, b"a\x1b[B\x03c")


@WAYS
def test_escape_below_the_bar_of_an_agent_holds_the_switch_back(first: Wire, switches: Switches) -> None:
    """What the daemon says to it is shown as any line of relay's; Ctrl-C is a key like others there."""
    show_bar(switches, first)
    switches.person.type(b"\x03")
    wait_until(lambda: first.ask("status")["held"] == 1, "Ctrl-C to be held")
    switches.person.type(b"\x1b")
    switches.watch(BAR[0], lambda: "ada keeps the session" in switches.person.text(), "the answer")
    assert switches.held_back() == 1
    assert first.ask("bar", texts=[], holds_keys=False)["ok"]
    wait_to_hear(switches.person, first, b"\x03")


def test_the_line_about_a_killed_agent_stands_below_its_screen(first: Wire, switches: Switches) -> None:
    """It was painted over the row in which the agent had left the cursor."""
    switches.person.type(b"x", shows="<78>")
    switches.answer("ended", message="→ ada was ended by signal 9.")
    os.kill(int(str(first.ask("hello")["child"])), signal.SIGKILL)
    wait_for_end(switches, 137)
    assert "<78>" in switches.person.emulator.take_scrolled()
    assert "→ ada was ended by signal 9." in switches.person.text().splitlines()


@WAYS
def test_what_was_said_above_the_bar_goes_with_it(first: Wire, switches: Switches) -> None:
    """The lines that follow say what came of it; what is left of the bar's would only be in their way."""
    person = switches.person
    show_bar(switches, first)
    person.type(b"\x1b")
    switches.watch(BAR[0], lambda: "ada keeps the session" in person.text(), "the answer")
    switches.answer("handing-off", bar=BAR)
    first.type(b"q")
    wait_between(switches)
    switches.answer("handing-off", bar=NEXT)
    person.wait_for(NEXT[0])
    assert "ada keeps the session" in person.text()
    switches.answer("ended", message="→ The handoff was cancelled.")
    wait_for_end(switches, 0)
    assert "ada keeps the session" not in person.text()
    assert "→ The handoff was cancelled." in person.text()


@WAYS
def test_what_no_agent_was_given_is_told_when_the_session_is_over(first: Wire, switches: Switches) -> None:
    """Once the terminal is the person's again: a prompt they typed should not be lost in silence."""
    end_under_bar(switches, first, b"fix the\x1b[A\r")
    wait_between(switches)
    switches.person.type(b"cents")
    switches.answer("ended", message="→ The handoff failed.")
    wait_for_end(switches, 0)
    shown = switches.person.text()
    assert "13 typed characters were not delivered: fix the cents" in shown
    assert shown.index("→ The handoff failed.") > 0
    assert "relay" not in shown


def test_ctrl_c_leaves_where_nothing_can_be_held_back(first: Wire, switches: Switches) -> None:
    """A daemon that does not answer must not keep somebody's terminal."""
    switches.refuse()
    end_under_bar(switches, first, b"typed")
    wait_between(switches)
    switches.person.type(b"\x1b", shows="there is nothing to hold back (Ctrl-C leaves)")
    switches.person.type(b"\x03")
    wait_for_end(switches, 130)
    assert "5 typed characters were not delivered: typed" in switches.person.text()


@WAYS
def test_who_detaches_below_the_bar_is_told_what_was_not_delivered(first: Wire, switches: Switches) -> None:
    """The keys were this terminal's, and go with it."""
    person = switches.person
    show_bar(switches, first)
    person.type(b"abc\x1d/detach\r")
    wait_for_end(switches, 0)
    assert "3 typed characters were not delivered: abc" in person.text()


def test_an_agent_that_cannot_be_attached_costs_no_key(
    first: Wire, second: Wire, switches: Switches, tmp_path: object
) -> None:
    """The next one gets them."""
    end_under_bar(switches, first, b"abc")
    os.makedirs(f"{tmp_path}/none")
    switches.answer("starting", leg="none", bar=BAR)
    wait_between(switches)
    switches.person.type(b"def")
    switches.hand_on()
    wait_to_hear(switches.person, second, b"abcdef")
