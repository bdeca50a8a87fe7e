import glob
import os
import signal
import sys

import pytest

from tests.support.relay_world import RelayWorld, wait_until
from tests.support.shells import ShellPerson, list_prompts

pytestmark = pytest.mark.size("every")

SECRET = "sk-ant-api03-" + "Zq4" * 30


def find_lines(world: RelayWorld, end: str) -> list[str]:
    """The command lines of living processes that end so."""
    return [line for line in world.processes().values() if line.endswith(end)]


@pytest.mark.size("test")
def test_a_paste_of_several_lines_is_one_message(person: ShellPerson) -> None:
    """A pasted stack trace must not be sent line by line."""
    person.terminal.paste("line one\nline two\n/exit")
    person.wait_for("line two")
    person.press("\x0aand typed\r", shows="demo heard you")
    assert list_prompts(person.world, person.session()) == ["line one\nline two\n/exit\nand typed"]


def test_a_second_interrupt_leaves_and_what_waits_is_kept(person: ShellPerson) -> None:
    """Whoever wants out gets out, at once, without losing a word."""
    person.begin("slow work")
    person.type("later", shows="waits: later")
    person.terminal.send("\x03")
    person.terminal.send("\x03")
    assert person.terminal.wait_exit(120) == 0
    assert person.terminal.modes_left_on() == []
    again = ShellPerson(person.world)
    again.wait_for("1 unsent message from an earlier shell")
    assert "Shown only the first time" not in again.screen
    again.terminal.close()


def test_a_line_that_is_cleared_comes_back_with_the_key_for_earlier_ones(person: ShellPerson) -> None:
    """Ctrl-C on half a thought is often a slip."""
    person.press("half a thought", shows="> half a thought")
    person.terminal.send("\x03")
    person.terminal.wait_until(lambda: "half a thought" not in person.screen, "an empty line")
    person.press("\x1b[A", shows="> half a thought")


def test_what_was_typed_is_offered_in_the_next_shell_without_its_secrets(world: RelayWorld) -> None:
    """History outlives the shell, in a file for the user's eyes only."""
    first = ShellPerson(world)
    first.type(f"use the key {SECRET}", shows="demo heard you")
    first.terminal.send("\x04")
    assert first.terminal.wait_exit(120) == 0
    (path,) = glob.glob(f"{world.folders.state}/shell/history")
    assert os.stat(path).st_mode & 0o777 == 0o600
    second = ShellPerson(world)
    second.press("\x1b[A", shows="> use the key .redacted")
    assert SECRET not in second.screen


def test_tab_completes_commands_and_paths(person: ShellPerson) -> None:
    """Nobody remembers how a command was spelt."""
    with open(f"{person.world.project}/unmistakable.txt", "w", encoding="utf-8"):
        pass
    person.press("/und\t", shows="> /undo-handoff")
    person.terminal.send("\x03")
    person.terminal.wait_quiet(0.3)
    person.press("read @unm\t", shows="> read @unmistakable.txt")


def test_nothing_is_painted_while_nothing_happens(person: ShellPerson) -> None:
    """A shell left open overnight must not wake the machine, nor scroll a log of its terminal."""
    person.turn("hello")
    person.terminal.wait_quiet(1)
    before = len(person.terminal.raw)
    for _ in range(40):
        person.terminal.pump()
    assert len(person.terminal.raw) == before


def test_a_command_that_is_interrupted_leaves_the_shell_open(person: ShellPerson) -> None:
    """Ctrl-C ends what runs in front, as in every shell."""
    person.type("!echo begun; sleep 60", shows="(?m)^begun")
    # A Ctrl-C between its two commands would be the first one's.
    wait_until(
        lambda: any(line.startswith("sleep 60") for line in find_lines(person.world, "sleep 60 ")),
        "it sleeps",
    )
    person.press("\x03", shows="exit status 130")
    person.type("!echo still here", shows="(?m)^still here")


def test_an_interrupt_before_the_turn_has_begun_still_stops_it(person: ShellPerson) -> None:
    """Whoever sent the wrong message notices within the first second."""
    person.press("slow work\r\x03", shows="demo was stopped|1 not sent .stopped in time")
    assert "I end" not in person.screen


def test_leaving_says_what_goes_on_and_what_is_kept(person: ShellPerson) -> None:
    """A person who leaves in the middle of things should know the way back."""
    person.begin("soon, please")
    person.type("later", shows="waits: later")
    person.type("/exit", shows=r"The turn goes on\. To return: agent-relay resume 01")
    person.wait_for("1 message not sent; kept for the next shell here")
    assert person.terminal.wait_exit(120) == 0


def test_a_program_that_leaves_the_terminal_refusing_costs_no_words(person: ShellPerson) -> None:
    """Some leave standard output so that it does not wait, and much is more than it takes at once."""
    code = "import os; os.set_blocking(1, False)"
    person.type(f"!{sys.executable} -c '{code}'")
    person.type("much", shows="demo > much")
    person.terminal.wait_until(
        lambda: person.terminal.raw.count(b"0123456789") >= 250_000 - 1000, "all of it", limit_s=60
    )


def test_the_history_is_searched_with_its_own_keys(person: ShellPerson) -> None:
    """Ctrl-R, a few letters and Enter bring an earlier message back, as in every shell; Ctrl-C lets it be."""
    for message in ("first words", "second"):
        person.turn(message)
    person.press("\x12fir", shows=r"(?m)^> first words")
    person.terminal.send("\r")
    person.terminal.wait_until(lambda: "I-search" not in person.screen, "the search's end")
    person.press("\r", shows=r"(?s)demo > second.*demo > first words\s+demo heard you")


def test_what_a_command_left_on_its_row_stays_readable(person: ShellPerson) -> None:
    """Output does not always end with a line; the prompt must not be glued to it."""
    person.type("!printf unfinished; printf half >&2", shows=r"(?m)^unfinishedhalf\s*$")
    person.wait_for(r"(?m)^unfinishedhalf\s*\ndemo\s*\n>")


def test_a_closed_terminal_ends_what_it_runs(person: ShellPerson) -> None:
    """Whoever closes a window wants what runs in it to end, and no shell to wait for it in the dark."""
    person.type("!echo begun; exec sleep 60", shows="(?m)^begun")
    os.kill(person.terminal.pid, signal.SIGHUP)
    assert person.terminal.wait_exit(120) == 129
    wait_until(lambda: not find_lines(person.world, "sleep 60 "), "what ran in it has ended")
    wait_until(lambda: not find_lines(person.world, "agent_relay/__main__.py "), "nothing of it is left")
