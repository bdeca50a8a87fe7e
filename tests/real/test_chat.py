"""`agent-relay chat` with the real agents: in turns to an agreement, over a limit, and ended by a person."""

import os
import signal
import subprocess
from typing import Any

from agent_relay.domain.protocol.run_output import build_chat_schema
from tests.support import real_seeds
from tests.support.provider.steps import hang, say
from tests.support.real import RUN_S, World, finish
from tests.support.real_launch import AGENTS
from tests.support.real_work import LIMITS, describe, find_journals, order, read_allowed, wait_no_agents
from tests.support.relay_world import wait_until

TASK = "Agree on how add() in calc.py is to be mended."
PLAN = "I would write a + b."
FINE = "That is what I would do.\n\nAGREED"


def chat(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """`agent-relay chat` without a terminal, to its end."""
    return world.run(world.relay("chat", *words))


def read_lines(world: World, done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The events printed, each of which the published schema allows."""
    return read_allowed(world, done, build_chat_schema())


def look(world: World) -> str:
    """What git sees of the project."""
    done = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=world.project,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


def test_four_real_agents_talk_until_all_agree_each_in_its_own_conversation(world: World) -> None:
    """Every one is told what is new, and nothing of it twice; nothing but .agent-relay is in the project."""
    real_seeds.free_hands(world.home)
    world.play("claude", say(PLAN), say(FINE))
    for agent in AGENTS[1:]:
        world.play(agent, say(FINE))
    done = chat(world, *AGENTS, TASK, "--json")
    lines = read_lines(world, done)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert [line["speaker"] for line in lines if line["type"] == "next"] == [*AGENTS, "claude"]
    assert (lines[-1]["outcome"], lines[-1]["turns"]) == ("agreed", 5)
    legs = [line for line in lines if line["type"] == "leg"]
    assert [line["resumes"] for line in legs] == [False, False, False, False, True]
    for agent in AGENTS[1:]:
        heard = str(world.requests(agent)[0]["text"])
        assert TASK in heard
        assert PLAN in heard
    first, second = (str(request["text"]) for request in world.requests("claude"))
    assert PLAN not in first
    # The whole conversation goes to the provider again: its own words, and the task, stand there once.
    assert (second.count(PLAN), second.count(TASK)) == (1, 1)
    assert second.count("That is what I would do.") == len(AGENTS) - 1
    wait_no_agents(world)
    assert look(world) == ""
    legs = f"{world.env()['AGENT_RELAY_HOME']}/run/legs"
    wait_until(lambda: os.listdir(legs) == [], "no leg's folder to be left", limit_s=60)


def test_a_limit_gives_the_place_to_somebody_else_and_the_chat_goes_on(world: World) -> None:
    """By a packet in the middle of the turn; after that the other one has the place, as long as it rests."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex", "opencode")
    world.play("claude", LIMITS["claude"])
    world.play("opencode", say(PLAN), say(FINE))
    world.play("codex", say(FINE))
    done = chat(world, "claude", "codex", TASK)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert done.stdout == f"## opencode\n\n{PLAN}\n\n## codex\n\n{FINE}\n\n## opencode\n\n{FINE}\n"
    assert "→ claude hit its session limit (resets " in done.stderr
    assert "Continuing with opencode. Packet: " in done.stderr
    assert "→ claude rests; opencode takes its place." in done.stderr
    assert "→ Everybody agreed after 3 turns." in done.stderr
    assert TASK in world.requests("opencode")[0]["text"]
    wait_no_agents(world)


def test_when_nobody_is_left_the_earliest_reset_is_told(world: World) -> None:
    """Exit status 3; nobody is asked again before."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex", only=True)
    world.play("codex", say(PLAN))
    world.play("claude", LIMITS["claude"])
    done = chat(world, "codex", "claude", TASK)
    assert done.returncode == 3, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert "→ No agent is left to talk to (claude: rests until " in done.stderr
    assert "The first reset is at " in done.stderr
    again = chat(world, "codex", "claude", TASK, "--json")
    end = read_lines(world, again)[-1]
    assert (again.returncode, end["outcome"], len(end["skipped"])) == (3, "resting", 1)
    assert end["resets_at"] > "2026"
    assert len(world.requests("codex")) == 1


def test_signals_end_the_agent_and_the_chat_goes_on_later(world: World) -> None:
    """Ctrl-C and the end of a job mean the agent, too; the conversation is taken up where it stood."""
    real_seeds.free_hands(world.home)
    statuses = []
    world.play("claude", say(PLAN), say(FINE))
    for number, words in ((signal.SIGINT, ["claude", "codex", TASK]), (signal.SIGTERM, ["--continue"])):
        world.play("codex", hang(240))
        before = len(world.requests("codex"))
        if words[0] == "--continue":
            words.append(find_journals(world)[0].split("/")[-2])
        running = world.begin(world.relay("chat", *words))
        wait_until(lambda seen=before: len(world.requests("codex")) > seen, "codex asks", limit_s=RUN_S)
        running.process.send_signal(number)
        stopped = finish(running)
        statuses.append(stopped.returncode)
        assert "→ The chat was stopped after " in stopped.stderr, f"{stopped.stdout}{stopped.stderr}"
        wait_no_agents(world)
    assert statuses == [130, 143]
    world.play("codex", say(FINE))
    done = chat(world, "--continue", find_journals(world)[0].split("/")[-2])
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert done.stdout == f"## codex\n\n{FINE}\n\n## claude\n\n{FINE}\n"
