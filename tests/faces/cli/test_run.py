"""`agent-relay run` with two scripted agents: no terminal anywhere, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_relay.domain.run_event import build_schema
from agent_relay.domain.session import State
from tests.house import tree
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, kill, relay_world, wait_until

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
SCENES = [
    {"when": "out", "do": [{"say": "I try."}, LIMIT]},
    {"when": "slow", "again": True, "do": [{"say": "I begin."}, {"wait_s": 30}, {"say": "I end."}]},
    {"when": "soon", "again": True, "do": [{"say": "I begin."}, {"wait_s": 2}, {"say": "I end."}]},
    {"when": "fail", "do": [{"exit": 4}]},
    {"when": "much", "do": [{"say": "0123456789" * 250_000}]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents; `run` starts the daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        made.environ["PYTHONPATH"] = tree.CHECKOUT
        yield made


def start(world: RelayWorld, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A run under way, without a terminal."""
    command = [sys.executable, "-m", "agent_relay", "run", *words]
    streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=world.project, env=world.environ, **streams)


def run(world: RelayWorld, *words: str, given: str = "") -> tuple[int, str, str]:
    """How a run ended: its status, what it said and what was said about it."""
    process = start(world, *words, stdin=subprocess.PIPE)
    out, err = process.communicate(given.encode(), timeout=60)
    return process.returncode, out.decode(), err.decode()


def read_lines(out: str) -> list[dict[str, Any]]:
    """The events printed, each of which the published schema allows."""
    allowed = Draft202012Validator(build_schema())
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        allowed.validate(line)
    return lines


def find_agents(world: RelayWorld) -> list[str]:
    """The command lines of living scripted agents."""
    return [line for line in world.processes().values() if "--headless" in line]


def find_sessions(world: RelayWorld) -> list[str]:
    """The project's sessions, oldest first."""
    folder = f"{world.project}/.agent-relay/sessions"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [name for name in names if os.path.exists(f"{folder}/{name}/journal.jsonl") and world.events(name)]


def wait_begun(world: RelayWorld) -> str:
    """The newest session once its agent works."""
    wait_until(lambda: bool(find_sessions(world)), "a session")
    session = find_sessions(world)[-1]
    world.wait_for(session, lambda found: found.state is State.BUSY, "the agent works")
    return session


def test_the_agents_words_are_the_output_and_nothing_else(world: RelayWorld) -> None:
    """`run … > answer.txt` holds the answer."""
    status, out, err = run(world, "demo", "hello")
    assert (status, out) == (0, "demo heard you\n")
    assert err.startswith("→ Session ")
    session = world.session(find_sessions(world)[0])
    assert (session.state, session.leg.headless if session.leg else None) == (State.ENDED, True)
    wait_until(lambda: os.listdir(world.folders.legs) == [], "nothing of the leg is left")


def test_a_limit_hands_the_turn_on(world: RelayWorld) -> None:
    """Both agents' words come, in their order, and between them what happened."""
    status, out, err = run(world, "demo", "out")
    assert status == 0
    assert out == "I try.\nI have read what was handed over.\n"
    assert "→ demo hit its session limit (resets " in err
    assert "Continuing with understudy. Packet: " in err


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
    assert json.loads(schema[1]) == json.loads(json.dumps(build_schema()))


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


def test_a_turn_takes_no_more_legs_than_it_may(world: RelayWorld) -> None:
    """`-n 1`: no second attempt, whoever could make it."""
    status, out, err = run(world, "demo", "out", "-n", "1")
    assert (status, out) == (3, "I try.\n")
    assert "this turn may take no more than 1 leg" in err


def test_a_failed_agent_is_status_1_with_its_reason(world: RelayWorld) -> None:
    """Nobody takes over for a crash in the middle of work."""
    status, out, err = run(world, "demo", "fail")
    assert (status, out) == (1, "")
    assert "→ demo failed: demo ended with status 4 before its turn was over" in err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_agent_politely(world: RelayWorld, number: int, status: int) -> None:
    """Who ends the run means the agent; its last words still come."""
    process = start(world, "demo", "slow", "--json")
    session = wait_begun(world)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == status
    assert read_lines(out.decode())[-1]["outcome"] == "stopped"
    assert find_agents(world) == []
    assert world.session(session).state is State.ENDED


def test_a_reader_that_goes_away_ends_the_agent(world: RelayWorld) -> None:
    """`run … | head -1` must not leave an agent at work for nobody."""
    process = start(world, "demo", "soon")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"I begin.\n"
    process.stdout.close()
    process.wait(timeout=30)
    process.stderr.close()
    assert process.returncode == 141
    wait_until(lambda: find_agents(world) == [], "no agent")


def test_a_killed_run_leaves_its_turn_to_the_daemon(world: RelayWorld) -> None:
    """An out-of-memory kill of the command must not cost the work: the turn comes to its end."""
    process = start(world, "demo", "soon")
    session = wait_begun(world)
    kill(process.pid)
    process.communicate()
    found = world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    assert found.turn is not None
    assert found.turn.outcome == "done"
    assert find_agents(world) == []


def test_a_daemon_that_dies_costs_nothing(world: RelayWorld) -> None:
    """The agent works on, the next daemon adopts it, and the run prints everything once."""
    process = start(world, "demo", "soon")
    wait_begun(world)
    daemon = int(str(world.ask("daemon.status")["pid"]))
    kill(daemon)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"I begin.\nI end.\n"), err


def test_an_agent_whose_holder_is_killed_is_ended_and_the_run_fails(world: RelayWorld) -> None:
    """Nothing runs that nobody holds."""
    process = start(world, "demo", "slow")
    session = wait_begun(world)
    leg = world.session(session).leg
    assert leg is not None
    kill(leg.holder_pid)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"demo was lost with its holder" in err
    assert find_agents(world) == []


def test_two_runs_at_once_do_not_meet(world: RelayWorld) -> None:
    """Each is a session of its own."""
    runs = [start(world, "demo", "soon") for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in runs] == [b"I begin.\nI end.\n"] * 2
    assert len(find_sessions(world)) == 2


def test_a_session_at_work_takes_no_second_turn(world: RelayWorld) -> None:
    """Two processes in one conversation would answer each other; a person's terminal is not taken over."""
    process = start(world, "demo", "slow")
    session = wait_begun(world)
    status, _, err = run(world, "demo", "hello", "--continue", session)
    assert status == 2
    assert "is at work" in err
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_output_of_any_size_comes_whole(world: RelayWorld) -> None:
    """A reader that is slow, or asleep, loses nothing."""
    process = start(world, "demo", "much")
    wait_until(lambda: bool(find_sessions(world)), "a session")
    session = find_sessions(world)[-1]
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    out, _ = process.communicate(timeout=60)
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
    process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("demo",), "run needs an agent and a task"),
        (("demo", " "), "run needs a task"),
        (("demo", "x", "-n", "0"), "-n needs a number from 1 to 1000"),
        (("demo", "x", "-n"), "-n needs a value"),
        (("demo", "x", "--sideways"), "run does not know '--sideways'"),
        (("nobody", "x"), "there is no agent and no command 'nobody'"),
        (("demo", "x", "--continue", "01J"), "01J"),
        (("demo", "x" * 500_001), "the task is longer than 500,000 characters"),
    ],
)
def test_wrong_words_are_told_in_one_sentence(world: RelayWorld, words: tuple[str, ...], said: str) -> None:
    """Before anything is started."""
    given = words[1] if len(words) > 1 and len(words[1]) > 99_999 else ""
    status, out, err = run(world, *((words[0], "-") if given else words), given=given)
    assert (status, out) == (2, "")
    assert said in err
    assert find_sessions(world) == []
