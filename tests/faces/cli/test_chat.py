"""`agent-relay chat` with two scripted agents, without a terminal and in front of somebody."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from agent_relay.domain.events.session import SessionCreated
from agent_relay.domain.events.work import ChatBegun
from agent_relay.domain.protocol.run_output import build_chat_schema
from agent_relay.domain.state import State
from agent_relay.faces.render.turn_printer import StyledChatPrinter
from tests.support.chats import AGREES, chat, chat_world, read_chat_lines, start_chat
from tests.support.handoffs import write_screenplays
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, kill, wait_until
from tests.support.runs import LIMIT, find_agents, find_sessions, run, wait_begun

pytestmark = pytest.mark.size("every")

KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
FIRST = {"when": "in the user's words", "do": [{"say": f"I paint it with {KEY}."}]}
SLOW = {"when": "in the user's words", "do": [{"say": "I begin."}, {"wait_s": 5}, {"say": "I end."}]}
SPEAKS = [{"again": True, "do": [{"say": "It **has** to:\n\n- run\n- stop\n\nAGREED"}]}]
HANGS = {"again": True, "do": [{"say": "I begin."}, {"wait_s": 60}]}


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine where demo has something to say first, and understudy agrees with everything."""
    with chat_world([FIRST, AGREES], [AGREES]) as made:
        yield made


def play(world: RelayWorld, demo: list[dict[str, object]], understudy: list[dict[str, object]]) -> None:
    world.environ |= write_screenplays(f"{world.folder}/plays", demo=demo, understudy=understudy)


def read_prompts(world: RelayWorld, agent: str) -> list[list[str]]:
    """What the agent was told, by its own conversations."""
    folder = f"{world.home}/.demo-agent/{agent}"
    found = []
    for name in os.listdir(folder):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        found.append([row["text"] for row in rows if row["type"] == "prompt"])
    return found


@pytest.mark.size("test")
def test_two_agents_talk_until_both_agree(world: RelayWorld) -> None:
    """Each in one conversation of its own, told what the other said once, without its secrets."""
    status, out, err = chat(world, "demo", "understudy", "Paint it")
    assert status == 0, err
    assert out == (
        f"## demo\n\nI paint it with {KEY}.\n\n"
        "## understudy\n\nIt is fine.\n\nAGREED\n\n"
        "## demo\n\nIt is fine.\n\nAGREED\n"
    )
    assert err.startswith("→ Everybody agreed after 3 turns.\n→ Session ")
    (prompts,) = read_prompts(world, "demo")
    assert len(prompts) == 2
    assert "Paint it" in prompts[0]
    assert "Paint it" not in prompts[1]
    assert '<message from="understudy">\nIt is fine.\n\nAGREED\n</message>' in prompts[1]
    ((told,),) = read_prompts(world, "understudy")
    assert '<message from="demo">\nI paint it with [redacted: github-token].\n</message>' in told
    session = world.session(find_sessions(world)[0])
    assert (session.state, len(session.legs), session.done) == (State.ENDED, 3, ())
    wait_until(lambda: os.listdir(world.folders.legs) == [], "nothing of the legs is left")


def test_the_task_of_a_chat_is_journalled_without_the_user_s_secrets(world: RelayWorld) -> None:
    """A repository's folder is copied and sent around with what stands in its journals."""
    world.environ |= {"DB_PASSWORD": "zebra-Lamp-77"}
    status, _, err = chat(world, "demo", "understudy", "Paint it in zebra-Lamp-77", "-n", "2")
    assert status == 0, err
    bodies = [event.body for event in world.events(find_sessions(world)[0])]
    tasks = [body.task for body in bodies if isinstance(body, ChatBegun | SessionCreated)]
    assert tasks == ["Paint it in [redacted: known-secret]"] * 2
    assert "zebra-Lamp-77" not in str(bodies)


def test_a_seat_that_fails_or_did_nothing_ends_the_chat_as_failed(world: RelayWorld) -> None:
    """Going on would let the others answer nothing, and agree with it; nobody takes over for a crash."""
    for done, told in (
        ([], "demo ended its turn without doing anything"),
        ([{"exit": 4}], "→ demo failed: demo ended with status 4 before its turn was over"),
    ):
        play(world, [{"again": True, "do": done}], [AGREES])
        status, out, err = chat(world, "demo", "understudy", "Paint it")
        assert (status, out) == (1, "")
        assert told in err
        session = world.session(find_sessions(world)[-1])
        assert [leg.agent for leg in session.legs] == ["demo"]


def test_every_line_of_json_is_in_the_schema(world: RelayWorld) -> None:
    """A pipeline reads events, not prose."""
    status, out, err = chat(world, "demo", "understudy", "Paint it", "--json", "-n", "2")
    lines = read_chat_lines(out)
    assert (status, err) == (0, "")
    told = [line["type"] for line in lines if line["type"] in {"chat", "next", "end", "chat-end"}]
    assert told == ["chat", "next", "end", "next", "end", "chat-end"]
    assert [line["speaker"] for line in lines if line["type"] == "next"] == ["demo", "understudy"]
    assert (lines[-1]["outcome"], lines[-1]["turns"]) == ("turns", 2)
    schema = chat(world, "--schema")
    assert json.loads(schema[1]) == json.loads(json.dumps(build_chat_schema()))


def test_a_chat_goes_on_where_it_ended(world: RelayWorld) -> None:
    """With a word of the user's, or without; the others may be others."""
    chat(world, "demo", "understudy", "Paint it", "-n", "1")
    (session,) = find_sessions(world)
    status, out, _ = chat(world, "--continue", session[-8:], "And in red")
    assert (status, out) == (
        0,
        "## understudy\n\nIt is fine.\n\nAGREED\n\n## demo\n\nIt is fine.\n\nAGREED\n",
    )
    ((told,),) = read_prompts(world, "understudy")
    assert "Paint it" in told
    assert "The user says:\n\nAnd in red" in told
    assert "And in red" in read_prompts(world, "demo")[0][1]
    status, out, err = chat(world, "--continue", session, "-n", "1")
    assert (status, out) == (0, "## understudy\n\nIt is fine.\n\nAGREED\n"), err


def test_when_nobody_is_left_to_talk_to_the_reset_is_told(world: RelayWorld) -> None:
    """Exit status 3 is what a script waits by; nobody is asked in vain again."""
    play(world, [AGREES], [{"again": True, "do": [LIMIT]}])
    status, out, err = chat(world, "demo", "understudy", "Paint it")
    assert status == 3
    assert out == "## demo\n\nIt is fine.\n\nAGREED\n"
    assert "→ understudy hit its session limit (resets " in err
    assert "No agent can take its place.\n→ No agent is left to talk to (understudy: rests until " in err
    assert (err.count("No agent can"), err.count("No agent is")) == (1, 1)
    assert err.count("The first reset is at ") == 1
    status, out, err = chat(world, "demo", "understudy", "Paint it", "--json")
    lines = read_chat_lines(out)
    assert (status, [line["type"] for line in lines]) == (3, ["chat", "chat-end"])
    assert lines[-1]["resets_at"]
    assert [world.session(one).state for one in find_sessions(world)] == [State.ENDED, State.ENDED]


def test_a_signal_ends_the_agent_politely_and_the_chat(world: RelayWorld) -> None:
    """Nobody works for somebody who has gone; the chat can be gone on with."""
    play(world, [HANGS], [AGREES])
    process = start_chat(world, "demo", "understudy", "Paint it", "--json")
    session = wait_begun(world)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, b"")
    lines = read_chat_lines(out.decode())
    assert (lines[-1]["type"], lines[-1]["outcome"]) == ("chat-end", "stopped")
    wait_until(lambda: find_agents(world) == [], "no agent")
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session is over")
    play(world, [AGREES], [AGREES])
    assert chat(world, "--continue", session)[0] == 0


def test_a_killed_chat_ends_with_its_turn(world: RelayWorld) -> None:
    """Agents that go on talking with nobody there would cost money until somebody notices."""
    play(world, [SLOW, AGREES], [AGREES])
    process = start_chat(world, "demo", "understudy", "Paint it")
    session = wait_begun(world)
    kill(process.pid)
    process.communicate()
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    wait_until(lambda: find_agents(world) == [], "no agent")
    status, out, _ = chat(world, "--continue", session)
    assert (status, out.splitlines()[0]) == (0, "## understudy")
    ((told,),) = read_prompts(world, "understudy")
    assert "I end." in told


def test_a_reader_that_goes_away_ends_the_agent(world: RelayWorld) -> None:
    """`chat … | head -1` must not leave an agent at work for nobody."""
    play(world, [SLOW, AGREES], [AGREES])
    process = start_chat(world, "demo", "understudy", "Paint it")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"## demo\n"
    process.stdout.close()
    process.wait(timeout=120)
    process.stderr.close()
    assert process.returncode == 141
    wait_until(lambda: find_agents(world) == [], "no agent")


@pytest.mark.size("test")
def test_words_that_cannot_be_meant_are_refused(world: RelayWorld) -> None:
    """Before anybody is asked."""
    for words, told in (
        (("demo", "Paint it"), "agent-relay chat: two agents or more and a task are required"),
        ((), "agent-relay chat: two agents or more and a task are required"),
        (("demo", "demo", "Paint it"), "agent-relay chat: an agent is named twice"),
        (("demo", "understudy", " "), "agent-relay chat: the task is empty"),
        (("demo", "nobody", "Paint it"), "nobody"),
        (("demo", "understudy", "Paint it", "-n", "0"), "-n needs a number from 1 to 1000"),
        (("demo", "understudy", "Paint it", "--loud"), "agent-relay chat: unknown option '--loud'"),
        (("demo", "understudy", "Paint it", "-n"), "-n needs a value"),
        (("--continue", "01J", "Paint it"), "01J"),
    ):
        status, out, err = chat(world, *words)
        assert (words, status, out) == (words, 2, "")
        assert told in err, words
    assert find_sessions(world) == []


def test_a_session_that_is_no_chat_needs_agents_to_become_one(world: RelayWorld) -> None:
    """What `run` began can be talked about."""
    run(world, "demo", "hello")
    (session,) = find_sessions(world)
    status, _, err = chat(world, "--continue", session, "Go on")
    assert (status, "is no chat" in err) == (2, True)
    assert chat(world, "demo", "understudy", "Go on", "--continue", session)[0] == 0


def sit_down(world: RelayWorld, **environ: str) -> Terminal:
    """A terminal on which two agents talk."""
    words = ["chat", "demo", "understudy", "Build it"]
    return Terminal(Command(words, world.environ | environ, world.project))


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}], ids=["colour", "NO_COLOR"])
def test_a_chat_on_a_terminal_is_laid_out(environ: dict[str, str]) -> None:
    """Somebody reads it there: no marks of Markdown, who speaks before each turn, and colour as elsewhere."""
    with chat_world(SPEAKS, SPEAKS) as world:
        terminal = sit_down(world, **environ)
        terminal.wait_for("Go on: agent-relay chat --continue ")
        assert terminal.wait_exit(60) == 0
        lines = [line.rstrip() for line in terminal.screen.split("\n")]
        terminal.close()
    said = ["", "It has to:", "", " • run", " • stop", "", "AGREED"]
    assert lines[:16] == ["demo >", *said, "", "understudy >", *said[:-1]]
    assert (b"\x1b[1m" in terminal.raw) is not environ


@pytest.mark.size("check")
def test_who_takes_a_turn_over_is_named_before_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A handoff in the middle of a turn must not put one agent's words into another's mouth."""
    form = StyledChatPrinter()
    for event in (
        {"type": "next", "agent": "ann", "speaker": "ann", "number": 1},
        {"type": "text", "agent": "ann", "text": "I begin."},
        {"type": "handoff", "message": "→ ann hit its limit."},
        {"type": "text", "agent": "cid", "text": "I go on."},
        {"type": "end", "agent": "cid", "outcome": "done"},
        {"type": "next", "agent": "ann", "speaker": "cid", "number": 2},
        {"type": "text", "agent": "cid", "text": "Done."},
        {"type": "end", "agent": "cid", "outcome": "done"},
    ):
        form.show(event)
    assert capsys.readouterr().out == (
        "ann >\n\nI begin.\n\n→ ann hit its limit.\n\ncid >\n\nI go on.\n"
        "→ ann rests; cid takes its place.\n\ncid >\n\nDone.\n"
    )
