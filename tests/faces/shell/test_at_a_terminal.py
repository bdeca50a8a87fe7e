import os

import pytest

from tests.support import preloaded
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.shells import ShellPerson, list_natives, list_prompts

pytestmark = pytest.mark.size("every")

ALTERNATE = 1049
"""The mode of the screen that programs take for themselves."""


@pytest.mark.size("test")
def test_many_turns_are_one_session_and_one_conversation_of_the_agent(person: ShellPerson) -> None:
    """The agent remembers what was said a turn ago, because it is its own conversation that goes on."""
    for number in ("one", "two", "three"):
        person.turn(f"turn {number}")
    natives = list_natives(person.world, person.session())
    assert len(natives) == 3
    assert len(set(natives)) == 1
    assert list_prompts(person.world, person.session()) == ["turn one", "turn two", "turn three"]


@pytest.mark.size("test")
def test_a_stopped_turn_keeps_what_waits_until_it_is_sent_on(person: ShellPerson) -> None:
    """Whoever stops an agent, by the key of its own screen, wants to think; what they typed is theirs."""
    person.begin("slow work")
    person.type("and then this", shows="waits: and then this")
    person.press("\x1b", shows="demo was stopped")
    person.wait_for("1 not sent")
    person.press("\x1b[A", shows="> and then this")
    person.press(", edited\r", shows=r"demo > and then this, edited\s+demo heard you")


def test_only_a_second_key_soon_after_the_first_one_leaves(person: ShellPerson) -> None:
    """One pressed in thought must not make the next one, minutes later, the end of the shell."""
    for _ in range(2):
        person.press("\x03", shows="Ctrl-C once more leaves")
        person.terminal.wait_until(lambda: "once more" not in person.screen, "the hint is over")
    person.turn("hello")


def test_another_session_is_begun_and_the_one_before_is_taken_up_again(person: ShellPerson) -> None:
    """Two things a person works on are two conversations, without a second terminal."""
    person.turn("one thing")
    first = person.session()
    person.type("/new", shows=f"begins a new session. To return: /resume {first}")
    person.turn("another thing")
    assert list_prompts(person.world, first) == ["one thing"]
    person.type(f"/resume {first}")
    person.turn("more of the one")
    assert list_prompts(person.world, first) == ["one thing", "more of the one"]


def test_the_commands_are_the_plain_ones(person: ShellPerson) -> None:
    """What is known from the command line is known here."""
    person.type("/order understudy demo", shows=r"> /order understudy demo\s+understudy demo")
    person.type("/limits", shows="No agent is resting")
    person.type("/oder", shows=r"there is no command '/oder' here\s+Did you mean /order")
    person.type("/log")
    person.wait_for(
        r"there is no command '/log' here\s+It is typed behind the relay key[^;]*;\s+here:\s+/watch"
    )
    person.type("/use --help", shows="On the command line: agent-relay AGENT --session ID")
    person.type("!echo $((6*7))", shows=r"(?m)^42")


def test_a_killed_shell_loses_neither_the_turn_nor_what_waits(world: RelayWorld) -> None:
    """A closed laptop, a dropped connection: the turn is the daemon's, the words are on disk."""
    first = ShellPerson(world)
    first.begin("soon, please")
    first.type("my second thought", shows="waits: my second thought")
    session = first.session()
    first.terminal.kill()
    wait_until(lambda: world.session(session).state.value == "ended", "the turn ends by itself")
    turn = world.session(session).turn
    assert turn is not None
    assert turn.outcome == "done"
    second = ShellPerson(world)
    second.wait_for("1 unsent message from an earlier shell")
    second.press("\r", shows=r"demo > my second thought\s+demo heard you")


@pytest.mark.size("test")
def test_without_a_terminal_nothing_is_waited_for(tmp_path: os.PathLike[str]) -> None:
    """A script that forgot its arguments must fail at once, not hang."""
    env = {"HOME": f"{tmp_path}", "AGENT_RELAY_HOME": f"{tmp_path}/relay", "PATH": os.environ["PATH"]}
    done = preloaded.run([], env=env, cwd=f"{tmp_path}", timeout=120)
    assert done.returncode == 2
    assert done.stdout.startswith(b"A coding agent hits its limit")


def test_figures_packets_and_the_view_of_all_sessions_are_a_command_away(person: ShellPerson) -> None:
    """They take the terminal for a moment and give it back."""
    person.turn("hello")
    person.type("/metrics", shows=r"(?s)> /metrics.*turns")
    person.type("/use understudy go on", shows="understudy goes on")
    person.wait_idle()
    person.type("/packet", shows=r"(?s)> /packet.*Packet 1: demo → understudy.*Sources")
    person.type("/handoff history", shows=r"(?s)> /handoff history.*understudy")
    person.type("/watch")
    # A key typed while the view takes the terminal over would be lost.
    person.terminal.wait_until(lambda: ALTERNATE in person.terminal.modes_left_on(), "the view")
    person.terminal.wait_quiet(0.7)
    person.terminal.send("q")
    person.terminal.wait_until(lambda: ALTERNATE not in person.terminal.modes_left_on(), "its end")
    person.type("!echo back from there", shows="(?m)^back from there")


def test_lines_typed_while_a_command_has_the_terminal_run_after_it_in_order(person: ShellPerson) -> None:
    """Enter became a line feed there: all of it was one message, which the next Enter sent to the agent."""
    person.type("!echo begun; sleep 1", shows="(?m)^begun")
    person.press("!echo one-$((1+1))\r/help order\r!echo two-$((2+2))\r", shows=r"(?s)one-2.*two-4")


def test_what_is_typed_before_the_prompt_is_there_arrives_as_the_keys_that_were_pressed(
    world: RelayWorld,
) -> None:
    """Enter became a line feed, which made two lines one message, and Ctrl-D was lost."""
    terminal = Terminal(Command([], world.environ, world.project))
    terminal.send("!echo one-$((1+1))\r!echo two-$((2+2))\r\x04")
    terminal.wait_for(r"(?s)one-2.*two-4")
    assert terminal.wait_exit() == 0
    terminal.close()
