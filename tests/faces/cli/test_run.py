"""`agent-relay run` with two scripted agents, without a terminal and in front of somebody."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from agent_relay.domain.protocol.run_output import build_run_schema
from agent_relay.domain.state import State
from tests.support import preloaded
from tests.support.handoffs import write_screenplays
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import (
    LIMIT,
    SCENES,
    find_agents,
    find_sessions,
    read_lines,
    run,
    run_world,
    start,
    wait_begun,
)
from tests.support.seats import close_window, seat

pytestmark = pytest.mark.size("every")

TOO_LONG = ("x" * 500_001, "\U0001f600" * 100_000)


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents; `run` starts the daemon."""
    with run_world() as made:
        yield made


@pytest.mark.size("test")
def test_the_agents_words_are_the_output_and_nothing_else(world: RelayWorld) -> None:
    """`run … > answer.txt` holds the answer."""
    status, out, err = run(world, "demo", "hello")
    assert (status, out) == (0, "demo heard you\n")
    assert err.startswith("→ Session ")
    session = world.session(find_sessions(world)[0])
    assert (session.state, session.leg.headless if session.leg else None) == (State.ENDED, True)
    wait_until(lambda: os.listdir(world.folders.legs) == [], "nothing of the leg is left")


@pytest.mark.size("test")
def test_every_line_of_json_is_in_the_schema(world: RelayWorld) -> None:
    """A pipeline reads events, not prose."""
    status, out, err = run(world, "demo", "out", "--json")
    lines = read_lines(out)
    assert (status, err) == (0, "")
    kinds = [line["type"] for line in lines]
    assert [kinds[0], kinds[1], kinds[-1]] == ["turn", "leg", "end"]
    assert kinds.index("signal") < kinds.index("handoff") < len(kinds) - 2
    assert lines[-1]["outcome"] == "done"
    schema = run(world, "--schema")
    assert json.loads(schema[1]) == json.loads(json.dumps(build_run_schema()))


def test_the_next_turn_goes_on_where_the_last_one_ended(world: RelayWorld) -> None:
    """The same agent has its own conversation; another one gets a packet, and the new prompt."""
    run(world, "demo", "hello")
    (session,) = find_sessions(world)
    assert run(world, "demo", "and now?", "--continue", session[-8:])[:2] == (0, "demo heard you\n")
    first, second = world.session(session).legs
    assert (second.native_id, second.resumes) == (first.native_id, True)
    status, out, _ = run(world, "understudy", "finish it", "--continue", session, "--json")
    assert status == 0
    assert [line["to_agent"] for line in read_lines(out) if line["type"] == "handoff"] == ["understudy"]
    transcript = f"{world.home}/.demo-agent/understudy"
    with open(f"{transcript}/{os.listdir(transcript)[0]}", encoding="utf-8") as file:
        (prompt,) = [row["text"] for row in map(json.loads, file) if row["type"] == "prompt"]
    assert "<handoff-context" in prompt
    assert prompt.endswith("\n\nfinish it")


def test_a_turn_called_done_with_nothing_done_in_it_has_failed(world: RelayWorld) -> None:
    """An agent whose prompt was blocked calls that a success; a script must not take it for its answer."""
    status, out, err = run(world, "demo", "idle")
    assert (status, out) == (1, "")
    assert "demo ended its turn without doing anything\n" in err
    (session,) = find_sessions(world)
    turn = world.session(session).turn
    assert turn is not None
    assert (turn.outcome, turn.why) == ("failed", "demo ended its turn without doing anything")
    # Nor does anybody take over for a crash in the middle of work.
    status, out, err = run(world, "demo", "fail")
    assert (status, out) == (1, "")
    assert "→ demo failed: demo ended with status 4 before its turn was over" in err


def test_nobody_left_is_status_3_with_the_reset(world: RelayWorld) -> None:
    """What a script sleeps until."""
    world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES, understudy=[{"do": [LIMIT]}])
    status, out, err = run(world, "demo", "out")
    assert (status, out) == (3, "I try.\n")
    assert "The first reset is at " in err
    status, out, _ = run(world, "demo", "hello", "--json")
    assert status == 3
    assert [line["type"] for line in read_lines(out)] == ["turn", "end"]
    assert read_lines(out)[-1]["resets_at"]


def test_a_limit_hands_the_turn_on_and_who_works_instead_is_said(world: RelayWorld) -> None:
    """Both agents' words come in their order; whoever asks the one again would take the other's for its."""
    status, out, err = run(world, "demo", "out")
    assert (status, out) == (0, "I try.\nI have read what was handed over.\n")
    assert "→ demo hit its session limit (resets " in err
    assert "Continuing with understudy. Packet: " in err
    status, out, err = run(world, "demo", "hello")
    assert (status, out) == (0, "My screenplay has nothing for this prompt.\n")
    said = re.match(r"→ demo is not available \(rests until [^)]+\); understudy takes this turn\.\n", err)
    assert said is not None, err
    (leg,) = [line for line in read_lines(run(world, "demo", "hello", "--json")[1]) if line["type"] == "leg"]
    assert (leg["agent"], leg["asked"]) == ("understudy", "demo")
    assert leg["why"].startswith("rests until ")
    assert "is not available" not in run(world, "understudy", "hello")[2]


def test_a_turn_takes_no_more_legs_than_it_may(world: RelayWorld) -> None:
    """`-n 1`: no second attempt, whoever could make it."""
    status, out, err = run(world, "demo", "out", "-n", "1")
    assert (status, out) == (3, "I try.\n")
    assert "this turn may take no more than 1 leg" in err


def test_what_works_without_a_screen_is_attached_by_nobody_and_takes_no_second_turn(
    world: RelayWorld,
) -> None:
    """A terminal would stay empty; the conversation can be opened on a screen when the turn is over.

    Two processes in one conversation would answer each other.
    """
    process = start(world, "demo", "slow")
    session = wait_begun(world)
    for words in (
        ("attach", session),
        ("agent", "demo", "--session", session, "--json"),
        ("understudy", "--session", session, "--json"),
    ):
        done = preloaded.run(words, env=world.environ, cwd=world.project)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"works without a screen" in done.stderr
    status, _, err = run(world, "demo", "hello", "--continue", session)
    assert (status, "is at work" in err) == (2, True)
    # Somebody else's session here is not taken for it.
    assert world.open("demo")["session"] != session
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    first = world.session(session).legs[0]
    world.open("demo", session=session)
    found = world.wait_for(session, lambda found: found.state is State.READY, "its screen is there")
    assert found.leg is not None
    assert (found.leg.native_id, found.leg.headless) == (first.native_id, False)


def test_output_of_any_size_comes_whole(world: RelayWorld) -> None:
    """A reader that is slow, or asleep, loses nothing."""
    process = start(world, "demo", "much")
    wait_until(lambda: bool(find_sessions(world)), "a session")
    session = find_sessions(world)[-1]
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    out, _ = process.communicate(timeout=120)
    assert (len(out), out[:10], out[-11:]) == (2_500_001, b"0123456789", b"0123456789\n")


def test_a_task_may_come_on_standard_input_and_stands_in_no_command_line(world: RelayWorld) -> None:
    """`ps` shows command lines to everybody."""
    process = start(world, "demo", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"slow: a word nobody should see")
    process.stdin.close()
    process.stdin = None
    wait_begun(world)
    assert [line for line in world.processes().values() if "nobody should see" in line] == []
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)


@pytest.mark.size("test")
def test_wrong_words_are_told_in_one_sentence(world: RelayWorld) -> None:
    """Before anything is started."""
    for words, told in (
        (("demo",), "agent-relay run: an agent and a task are required"),
        (("demo", " "), "agent-relay run: the task is empty"),
        (("demo", "x", "-n", "0"), "-n needs a number from 1 to 1000"),
        (("demo", "x", "-n", "1" * 5000), "-n needs a number from 1 to 1000"),
        (("demo", "x", "-n"), "-n needs a value"),
        (("demo", "x", "--sideways"), "agent-relay run: unknown option '--sideways'"),
        (("nobody", "x"), "there is no agent and no command 'nobody'"),
        (("demo", "x", "--continue", "01J"), "01J"),
        # Letters beyond ASCII take more room on their way to the daemon.
        *((("demo", "-", text), "the task is longer than 500,000 characters") for text in TOO_LONG),
    ):
        given = words[2] if words[1:2] == ("-",) else ""
        status, out, err = run(world, *(words[:2] if given else words), given=given)
        assert (told, status, out) == (told, 2, "")
        assert told in err
    assert find_sessions(world) == []


def test_attach_means_the_session_that_has_a_screen(world: RelayWorld) -> None:
    """A script's turn may be the newest session here, and is nothing to look at."""
    mine = str(world.open("demo")["session"])
    world.wait_for(mine, lambda found: found.state is State.READY, "its screen is there")
    process = start(world, "demo", "slow")
    wait_until(lambda: len(find_sessions(world)) == 2, "the script's session")
    other = wait_begun(world)
    with seat(world, "attach", shows="a scripted agent, no account needed") as person:
        world.ask("session.stop", session=mine)
        person.wait_for_end()
    assert world.session(other).state is State.BUSY
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)


def sit_down(world: RelayWorld, *words: str) -> Terminal:
    """A terminal on which a turn runs."""
    return Terminal(Command(["run", *words], world.environ, world.project))


def test_ctrl_c_ends_the_agent_and_shows_its_last_words(world: RelayWorld) -> None:
    """What the agent said before stays readable, and nothing works on in the dark."""
    terminal = sit_down(world, "demo", "slow")
    terminal.wait_for("I begin")
    terminal.send("\x03")
    assert terminal.wait_exit(60) == 130
    assert "→ demo was stopped" in terminal.screen
    assert "Its next turn: agent-relay run " in terminal.screen
    assert terminal.modes_left_on() == []
    wait_until(lambda: find_agents(world) == [], "the agent is gone")
    terminal.close()


def test_a_terminal_that_goes_away_ends_the_agent_too(world: RelayWorld) -> None:
    """A closed window must not leave an agent editing files that nobody watches."""
    with seat(world, "run", "demo", "slow", shows="I begin") as person:
        close_window(person)
        person.wait_for_end()
    wait_until(lambda: find_agents(world) == [], "the agent is gone")


def test_a_long_answer_comes_whole(world: RelayWorld) -> None:
    """Two and a half megabytes on one line, to the last of them."""
    terminal = sit_down(world, "demo", "much")
    terminal.wait_for("Its next turn: agent-relay run ")
    assert terminal.wait_exit(60) == 0
    assert terminal.raw.count(b"0") >= 250_000
    terminal.close()
