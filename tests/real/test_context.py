"""How full the real agents' contexts are, read from their own records, and what relay does about it."""

import os
import re

import pytest

from agent_relay.domain.events.work import ContextCompacting, ContextNoted
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.system.disk.folders import get_folders
from tests.real.test_agent_tools import allow_tools, look_for_tools, tool
from tests.support.provider.steps import Step, call, say
from tests.support.real import World
from tests.support.real_launch import AGENTS, PROMPTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import order, read_all_events, type_line, wait_heard, wait_work

HELD = {"claude": 720_000, "codex": 180_000, "gemini": 390_000, "opencode": 125_000}
ROOMS = {"claude": 967_000, "codex": 242_896, "gemini": 524_288, "opencode": 168_000}
SUMMARY = {
    "claude": "(?i)create a detailed summary",
    "codex": "(?i)context checkpoint compaction",
    "gemini": "(?i)state_snapshot",
    "opencode": "(?i)summar",
}
"""What each asks its model for when it compacts."""


def configure(world: World, text: str) -> None:
    """The user's configuration holds `text`, too."""
    folder = get_folders(world.env()).config
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/config.toml", "a", encoding="utf-8") as file:
        file.write(text)


def talk(world: World, agent: str, held: int, *answers: str) -> tuple[Terminal, Session]:
    """A person's terminal on a session of `agent` that has answered once, `held` tokens in its context."""
    world.play(agent, say("I keep heliotrope.", held=held), *(say(answer) for answer in answers))
    terminal = world.open(world.relay(agent))
    terminal.wait_for(PROMPTS[agent])
    terminal.wait_quiet(0.5)
    type_line(terminal, "remember the word heliotrope")
    terminal.wait_for("I keep heliotrope")
    return terminal, wait_work(world, terminal, lambda found: found.leg is not None, "a leg")


def read_asked(world: World, agent: str) -> list[str]:
    """The words of every request of the agent's after the first of its conversation."""
    own = [row for row in world.read_log() if row["agent"] == agent and "text" in row]
    first = next((number for number, row in enumerate(own) if row["main"]), len(own))
    return [str(row["text"]) for row in own[first + 1 :]]


def list_noted(world: World) -> list[ContextNoted]:
    return [event.body for event in read_all_events(world) if isinstance(event.body, ContextNoted)]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_an_agent_holds_is_read_from_its_own_records(world: World, agent: str) -> None:
    """The provider's own count arrives, against the room the agent has; the user is told on the screen."""
    order(world, agent)
    configure(world, '[context]\nmode = "ask"\n')
    terminal, _ = talk(world, agent, HELD[agent])
    terminal.wait_until(lambda: any(noted.level == "advise" for noted in list_noted(world)), "the mark")
    noted = next(noted for noted in list_noted(world) if noted.level == "advise")
    assert (noted.used, noted.room) == (HELD[agent], ROOMS[agent])
    terminal.wait_painted(f"The context of {agent} is 7[0-9] % full")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_full_agent_hands_over_to_a_fresh_one_of_its_own(world: World, agent: str) -> None:
    """The same agent, another conversation, told what the first one knew."""
    order(world, agent)
    configure(world, '[context]\nmode = "handoff"\nadvise = 30\nrearm = 20\ndraft = 60\nact = 70\n')
    terminal, _ = talk(world, agent, HELD[agent], "## Goal\nKeep heliotrope.", "I go on.")
    wait_work(world, terminal, lambda found: bool(found.handoff or found.done), "a handoff to begin")
    wait_work(world, terminal, lambda found: len(found.legs) == 2, "a fresh one to start")
    wait_work(world, terminal, lambda found: len(found.done) == 1, "the packet to be given to it")
    found = wait_work(world, terminal, lambda found: found.state is State.READY, "a fresh one at work")
    first, second = found.legs
    assert (found.done[0].reason, second.agent, second.resumes) == ("context", agent, False)
    assert "Keep heliotrope." in wait_heard(world, terminal, agent, 3)
    assert first.id != second.id


@pytest.mark.parametrize("agent", AGENTS)
def test_a_full_agent_is_told_to_compact(world: World, agent: str) -> None:
    """By its own command, typed at its prompt; its provider is asked for the summary."""
    order(world, agent)
    configure(world, '[context]\nmode = "compact"\nadvise = 30\nrearm = 20\ndraft = 60\nact = 70\n')
    terminal, _ = talk(world, agent, 0)
    world.play(agent, say("I keep saffron.", held=HELD[agent]))
    terminal.wait_quiet(1)
    type_line(terminal, "and the word saffron")
    terminal.wait_until(
        lambda: any(isinstance(event.body, ContextCompacting) for event in read_all_events(world)),
        "relay to decide",
    )
    pattern = re.compile(SUMMARY[agent])
    terminal.wait_until(
        lambda: any(pattern.search(text) for text in read_asked(world, agent)), "the summary to be asked for"
    )


NOTE = "Note by agent-relay, not by the user: your context is 7[0-9] % full"


def test_an_agent_with_hooks_is_told_with_the_users_next_prompt(world: World) -> None:
    """Without a turn of its own, once, and no packet takes it for somebody's words."""
    order(world, "claude", "codex")
    configure(world, '[context]\nmode = "ask"\n')
    terminal, _ = talk(world, "claude", HELD["claude"], "Saffron, too.", "And cumin.")
    terminal.wait_until(lambda: any(noted.level == "advise" for noted in list_noted(world)), "the mark")
    terminal.wait_quiet(1)
    for number, word in enumerate(("saffron", "cumin"), start=2):
        type_line(terminal, f"and the word {word}")
        wait_heard(world, terminal, "claude", number)
    asked = [text for text in read_asked(world, "claude") if "and the word" in text]
    assert len(re.findall(NOTE, asked[-1])) == 1
    assert "and the word saffron" in asked[0]
    assert re.search(NOTE, asked[0])
    done = world.run(world.relay("packet", "show", "--now", "--to", "codex", "--text"))
    assert "and the word saffron" in done.stdout
    assert "agent-relay, not by the user" not in done.stdout


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_an_agent_is_told_by_its_tools_and_may_ask_to_be_compacted(world: World, agent: str) -> None:
    """The first answer after the mark says it; in ask mode the wish is put to the user, nothing is typed."""
    allow_tools(world)
    order(world, agent)
    configure(world, '[context]\nmode = "ask"\n')
    terminal, _ = talk(world, agent, HELD[agent])
    terminal.wait_until(lambda: any(noted.level == "advise" for noted in list_noted(world)), "the mark")
    looked = look_for_tools(agent)
    asks = [call(tool(agent, "list")), call(tool(agent, "compact", reason="a part is done"))]
    full: list[Step] = [{**step, "held": HELD[agent]} for step in (*looked, *asks)]
    world.play(agent, *full, say("I asked."))
    terminal.wait_quiet(1)
    type_line(terminal, "go on")
    told = wait_heard(world, terminal, agent, 3 + len(looked))
    assert len(re.findall(NOTE, told)) == 1
    heard = wait_heard(world, terminal, agent, 4 + len(looked))
    assert "The user is asked, and decides." in heard
    assert len(re.findall(NOTE, heard)) == 1
    terminal.wait_painted(f"{agent} asks for its context to be compacted")
    assert not any(isinstance(event.body, ContextCompacting) for event in read_all_events(world))
