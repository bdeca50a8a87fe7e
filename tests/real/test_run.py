"""`agent-relay run` with the real agents: to the end of a turn, over a limit, and ended by a person."""

import signal
import subprocess
from typing import Any

import pytest

from agent_relay.domain.protocol.run_output import build_run_schema
from agent_relay.system.disk.folders import get_folders
from tests.support import real_seeds
from tests.support.provider.steps import FOREVER, call, edit, hang, read, refuse, say, shell
from tests.support.real import RUN_S, TEST_COMMAND, World, finish
from tests.support.real_launch import AGENTS
from tests.support.real_work import LIMITS, describe, order, read_allowed, wait_no_agents
from tests.support.relay_world import wait_until
from tests.support.sizes import sized

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
PLAN = "The test still fails. Next step: make add() return a + b."
GOES_ON = "I pick up where it stopped: add() must return a + b."
PAIRS = [("claude", "codex"), ("codex", "gemini"), ("gemini", "opencode"), ("opencode", "claude")]


def run(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """`agent-relay run` without a terminal anywhere, to its end."""
    return world.run(world.relay("run", *words))


def read_lines(world: World, done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The events printed, each of which the published schema allows."""
    return read_allowed(world, done, build_run_schema())


def build_turn(world: World, agent: str) -> list[Any]:
    """A turn that edits a file, sees a test fail, says what comes next, and meets a limit."""
    path = f"{world.project}/calc.py"
    change = edit(agent, path=path, old="    return a - b", new="    return a * b")
    return [
        call(read(agent, path=path), text="I look at the file first."),
        call(change, text="add() subtracts; I try a product."),
        call(shell(agent, TEST_COMMAND), text="Now the test."),
        call(shell(agent, "git diff --stat"), text=PLAN),
        LIMITS[agent],
    ]


@pytest.mark.parametrize("agent", sized(AGENTS, ["gemini"]))
def test_a_turn_is_told_as_it_goes_and_goes_on_in_the_same_conversation(world: World, agent: str) -> None:
    """A script gets the words, the tools, the price and the id for the next turn; no terminal is needed."""
    real_seeds.free_hands(world.home)
    world.play(
        agent, call(read(agent, path=f"{world.project}/calc.py"), text="I look."), say("It subtracts.")
    )
    first = run(world, agent, "What does calc.py do?", "--json")
    lines = read_lines(world, first)
    assert first.returncode == 0, f"{first.stderr}\n{describe(world)}"
    assert [line["text"] for line in lines if line["type"] == "text"] == ["I look.", "It subtracts."]
    tools = {line["call"] for line in lines if line["type"] == "tool"}
    assert len(tools) == 1
    assert tools == {line["call"] for line in lines if line["type"] == "result"}
    assert sum(line["tokens"]["output"] for line in lines if line["type"] == "usage") > 0
    assert lines[-1]["outcome"] == "done"
    world.play(agent, say("Because nobody tested it."))
    second = run(world, agent, "And why?", "--continue", lines[-1]["session"])
    assert (second.returncode, second.stdout) == (0, "Because nobody tested it.\n"), second.stderr
    heard = world.requests(agent)[-1]["text"]
    assert "What does calc.py do?" in heard
    assert "It subtracts." in heard
    assert "And why?" in heard
    wait_no_agents(world)


@pytest.mark.parametrize(("agent", "tool"), [("claude", "Bash"), ("gemini", "run_shell_command")])
def test_an_end_names_the_tools_the_agent_was_not_allowed_to_use(world: World, agent: str, tool: str) -> None:
    """Nobody is there to be asked: an answer without the work it needed must not look whole."""
    world.play(agent, call(shell(agent, "touch made; true"), text="I run it."), say("I could not."))
    told = run(world, agent, "Make it.", "--json")
    assert read_lines(world, told)[-1]["refused"] == [tool], f"{told.stderr}\n{describe(world)}"
    world.play(agent, call(shell(agent, "touch made; true"), text="I run it."), say("I could not."))
    said = run(world, agent, "Make it.")
    assert said.stdout == "I run it.\nI could not.\n"
    assert f"→ {agent} was not allowed to use: {tool}." in said.stderr
    wait_no_agents(world)


def test_an_end_names_the_tool_that_opencode_ends_its_turn_for(world: World) -> None:
    """It rejects for the user what would be asked, and ends with 0 in the middle of its work."""
    world.play("opencode", call(read("opencode", path="/etc/hostname"), text="I look."), say("Never asked."))
    told = run(world, "opencode", "Look.", "--json")
    end = read_lines(world, told)[-1]
    assert (end["outcome"], end["refused"]) == ("failed", ["read"]), f"{told.stderr}\n{describe(world)}"
    wait_no_agents(world)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_limit_hands_the_turn_to_the_next_agent(world: World, first: str, second: str) -> None:
    """The same failover as on a screen, with nobody there: the successor knows the work and ends the turn."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, *build_turn(world, first))
    world.play(second, say(GOES_ON))
    done = run(world, first, TASK, "--json")
    lines = read_lines(world, done)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{describe(world)}"
    (handed,) = [line for line in lines if line["type"] == "handoff"]
    assert (handed["from_agent"], handed["to_agent"], handed["reason"]) == (first, second, "rate_limit")
    assert "".join(line["text"] for line in lines if line["type"] == "text").endswith(GOES_ON)
    assert lines[-1]["agent"] == second
    heard = world.requests(second)[0]["text"]
    for known in (TASK, "calc.py", TEST_COMMAND, "6 != 5", "make add() return a + b"):
        assert known in heard
    wait_no_agents(world)


def test_a_limit_that_gemini_sleeps_out_for_hours_hands_the_turn_on(google_world: World) -> None:
    """It prints nothing at all; its debug log says how long it means to sleep."""
    world = google_world
    real_seeds.free_hands(world.home)
    order(world, "gemini", "opencode")
    world.play("gemini", refuse("gemini-exhausted"))
    world.play("opencode", say("I begin with it."))
    done = run(world, "gemini", TASK)
    assert (done.returncode, done.stdout) == (0, "I begin with it.\n"), f"{done.stderr}{describe(world)}"


def test_a_limit_that_codex_waits_out_for_an_hour_hands_the_turn_on(world: World) -> None:
    """It says once that it tries again, and tries again when the provider said so."""
    real_seeds.free_hands(world.home)
    order(world, "codex", "opencode")
    with open(f"{get_folders(world.env()).config}/config.toml", "a", encoding="utf-8") as file:
        file.write("patience_s = 20\n")
    world.play("codex", refuse("openai-busy", retry_after_s=3600))
    world.play("opencode", say("I begin with it."))
    done = run(world, "codex", TASK)
    assert (done.returncode, done.stdout) == (0, "I begin with it.\n"), f"{done.stderr}{describe(world)}"


def test_an_unknown_conversation_is_told_in_the_agents_words(world: World) -> None:
    """Its last line on standard error is the reason where its stream has none."""
    done = run(world, "claude", TASK, "--", "--resume", "00000000-0000-4000-8000-00000000dead")
    assert done.returncode == 1
    assert "No conversation found with session ID: 00000000-0000-4000-8000-00000000dead" in done.stderr


def test_a_limit_on_the_first_request_takes_the_prompt_along(world: World) -> None:
    """Nothing was answered: the user's words reach the successor as they were given."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex")
    world.play("claude", LIMITS["claude"])
    world.play("codex", say("I begin with it."))
    done = run(world, "claude", TASK)
    assert (done.returncode, done.stdout) == (0, "I begin with it.\n"), f"{done.stderr}{describe(world)}"
    assert "→ claude hit its session limit (resets " in done.stderr
    assert TASK in world.requests("codex")[0]["text"]


def test_when_all_rest_the_earliest_reset_is_told(world: World) -> None:
    """Exit status 3 is what a script waits by; the second run starts nobody at all."""
    order(world, "claude", "codex", only=True)
    world.play("claude", LIMITS["claude"])
    world.play("codex", LIMITS["codex"])
    done = run(world, "claude", TASK)
    assert done.returncode == 3, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert "No agent is available" in done.stderr
    assert "The first reset is at " in done.stderr
    asked = len(world.requests("claude")) + len(world.requests("codex"))
    again = run(world, "claude", TASK, "--json")
    end = read_lines(world, again)[-1]
    assert again.returncode == 3
    assert end["resets_at"] > "2026"
    assert len(end["skipped"]) == 2
    assert len(world.requests("claude")) + len(world.requests("codex")) == asked


def find_told(world: World) -> set[int]:
    """The processes whose command lines hold the task."""
    return {pid for pid, line in world.find_processes().items() if "test_calc.py shows" in line}


@pytest.mark.parametrize("agent", AGENTS)
def test_an_interrupted_turn_leaves_no_process(world: World, agent: str) -> None:
    """Ctrl-C in a script's terminal means the agent, too, and so does the end of a job."""
    world.play(agent, hang(240, times=FOREVER))
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        before = len(world.requests(agent))
        running = world.begin(world.relay("run", agent, TASK))
        wait_until(lambda seen=before: len(world.requests(agent)) > seen, "the agent asks", limit_s=RUN_S)
        # A child has its parent's command line until it becomes another program.
        wait_until(lambda own=running.process.pid: find_told(world) == {own}, "only that to show it in `ps`")
        running.process.send_signal(number)
        assert finish(running).returncode == status
        wait_no_agents(world)


def test_a_failed_agent_is_a_failed_run(world: World) -> None:
    """What is no limit is the user's to mend: nobody takes over, and the reason is told."""
    world.play("claude", refuse("server-error", status=400))
    done = run(world, "claude", TASK)
    assert done.returncode == 1, f"{done.stderr}{describe(world)}"
    assert "→ claude failed: " in done.stderr
