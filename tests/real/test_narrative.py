import glob
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from agent_relay.client.connection import Connection
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.system.disk.folders import get_folders
from tests.support.provider.steps import call, hang, refuse, say, shell
from tests.support.real import RUN_S, World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import order, type_line, wait_heard, wait_prompt, wait_work
from tests.support.relay_world import wait_until
from tests.support.sizes import sized

DOCUMENT = "## Goal\nKnow the word heliotrope.\n\n## Not to be believed\nnone"
REFUSALS = {
    "claude": (refuse("claude-limit"), "You've hit your session limit"),
    "codex": (refuse("codex-limit"), "You\u2019ve hit your usage limit"),
    "gemini": (refuse("gemini-quota"), "You have exhausted your daily quota"),
    "opencode": (refuse("openai-unpaid"), "Insufficient credits"),
}
STORES = {
    "claude": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/**/*.json*",
}
RELAY_KEY = "\x1d"
SETTLED_S = 2.0


def read_transcripts(world: World, agent: str) -> dict[str, object]:
    """Everything the agent keeps of its conversations, byte for byte or row by row."""
    if agent != "opencode":
        paths = glob.glob(f"{world.home}/{STORES[agent]}", recursive=True)
        found: dict[str, object] = {}
        for path in paths:
            with open(path, "rb") as file:
                found[path] = file.read()
        return found
    address = f"file:{world.home}/.local/share/opencode/opencode.db?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        tables = ("session", "message", "part", "todo", "event")
        return {table: database.execute(f"select * from {table}").fetchall() for table in tables}  # noqa: S608  five literals


def read_settled(world: World, terminal: Terminal, agent: str) -> dict[str, object]:
    """The same once nothing is written any more: agents write their records a while after their screens."""
    found, since = read_transcripts(world, agent), time.monotonic()

    def is_settled() -> bool:
        nonlocal found, since
        now = read_transcripts(world, agent)
        if now != found:
            found, since = now, time.monotonic()
        return time.monotonic() - since >= SETTLED_S

    terminal.wait_until(is_settled, "the agent's records to be written")
    return found


def wait_none_new(world: World, living: set[int]) -> None:
    """No process lives that was not among `living`; agents start short ones of their own at any time."""
    wait_until(lambda: set(world.find_processes()) <= living, "no process too many", limit_s=60)


@contextmanager
def at_work(world: World, agent: str, *prompts: str) -> Iterator[tuple[Terminal, Session]]:
    """A person's terminal on a session of `agent` that was told `prompts` and answered each."""
    order(world, agent, *(other for other in AGENTS if other != agent))
    world.play(agent, *(say(f"I keep {prompt}.") for prompt in prompts))
    terminal = world.open(world.relay(agent))
    wait_prompt(terminal, agent)
    for prompt in prompts:
        type_line(terminal, f"remember the word {prompt}")
        terminal.wait_for(f"I keep {prompt}")
        terminal.wait_quiet(1)
    session = wait_work(world, terminal, lambda found: found.state is State.READY, "the agent to be ready")
    yield terminal, session


def narrate(world: World, session: Session, focus: str = "") -> dict[str, object]:
    """What the daemon answers when it is asked for a handoff document."""
    with Connection.open(get_folders(world.env())) as connection:
        return connection.request("narrate", limit_s=RUN_S, session=session.id, focus=focus)


def list_runs(world: World) -> list[str]:
    """What is left of runs in relay's own folder."""
    folder = f"{get_folders(world.env()).runtime}/narratives"
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.mark.parametrize("agent", sized(AGENTS, ["claude"]))
def test_the_agent_writes_the_document_and_its_own_session_stays_as_it_was(world: World, agent: str) -> None:
    """Its history and prompt cache must not pay for the handoff, and a tool it calls does nothing."""
    with at_work(world, agent, "heliotrope") as (terminal, session):
        before, living = read_settled(world, terminal, agent), set(world.find_processes())
        world.play(agent, call(shell(agent, "touch trespass")), say(DOCUMENT))
        told = narrate(world, session, "the parser")
        assert (told["outcome"], told["text"]) == ("written", DOCUMENT)
        asked = world.requests(agent)[-1]["text"]
        assert "heliotrope" in asked
        assert "say most about it: the parser" in asked
        assert read_transcripts(world, agent) == before
        assert not os.path.exists(f"{world.project}/trespass")
        wait_none_new(world, living)
        assert list_runs(world) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_provider_that_refuses_is_told_in_its_own_words(world: World, agent: str) -> None:
    """Nothing is written then, and the user sees why."""
    with at_work(world, agent, "heliotrope") as (terminal, session):
        before, living = read_settled(world, terminal, agent), set(world.find_processes())
        step, why = REFUSALS[agent]
        world.play(agent, step)
        told = narrate(world, session)
        assert told["outcome"] == "failed"
        assert str(told["message"]).startswith("Handoff failed: ")
        assert why in str(told["message"])
        assert read_transcripts(world, agent) == before
        wait_none_new(world, living)
        assert list_runs(world) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_an_answer_without_words_is_told_as_empty(world: World, agent: str) -> None:
    """It is neither cancelled nor failed, and no packet takes it along."""
    with at_work(world, agent, "heliotrope") as (terminal, session):
        before = read_settled(world, terminal, agent)
        world.play(agent, *[say(" ")] * 4)
        assert narrate(world, session)["outcome"] == "empty"
        assert read_transcripts(world, agent) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_is_asked_of_an_agent_nobody_talked_to(world: World, agent: str) -> None:
    """There is nothing to hand off, and no request is spent on finding that out."""
    with at_work(world, agent) as (_, session):
        told = narrate(world, session)
        assert told["message"] == "Nothing to hand off (no messages yet)"
        assert world.requests(agent) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_escape_while_the_agent_writes_leaves_no_trace(world: World, agent: str) -> None:
    """The user who changes their mind has the agent back as it was, and no process too many."""
    with at_work(world, agent, "heliotrope") as (terminal, _):
        before, living = read_settled(world, terminal, agent), set(world.find_processes())
        asked = len(world.requests(agent))
        world.play(agent, hang(120))
        terminal.send(f"{RELAY_KEY}/handoff the parser\r")
        terminal.wait_for(r"the agent writes a handoff document \d+ s   Esc cancels")
        wait_heard(world, terminal, agent, asked + 1)
        terminal.send("\x1b")
        terminal.wait_for("Handoff cancelled")
        wait_none_new(world, living)
        assert list_runs(world) == []
        assert read_transcripts(world, agent) == before
        terminal.send(" ")
        wait_prompt(terminal, agent)
        work = wait_work(world, terminal, lambda found: found.handoff is None, "nothing to be handed over")
        assert (work.agent, work.done) == (agent, ())


@pytest.mark.parametrize("agent", AGENTS)
def test_the_successor_reads_what_the_agent_wrote(world: World, agent: str) -> None:
    """One line behind the relay key: the document, the packet that carries it, the next agent at work."""
    successor = next(other for other in AGENTS if other != agent)
    with at_work(world, agent, "heliotrope") as (terminal, _):
        before = read_settled(world, terminal, agent)
        world.play(agent, say(DOCUMENT))
        world.play(successor, say("I go on."))
        terminal.send(f"{RELAY_KEY}/handoff\r")
        assert "Know the word heliotrope." in wait_heard(world, terminal, successor)
        if agent != "opencode":
            # One of them notes its last prompt when it leaves: behind what stood there, nothing in it.
            now = read_transcripts(world, agent)
            assert all(str(now[path])[:-1].startswith(str(before[path])[:-1]) for path in before)
