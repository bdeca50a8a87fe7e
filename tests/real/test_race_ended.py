"""A race of real agents that nobody can win, or that is told to end."""

import json
import signal
from typing import Any

from jsonschema import Draft202012Validator

from agent_relay.race.schema import build_race_schema
from tests.support import real_seeds
from tests.support.provider.steps import FOREVER, call, hang, say, shell
from tests.support.real import RUN_S, TEST_COMMAND, World, finish
from tests.support.real_work import LIMITS, describe, order, wait_no_agents
from tests.support.relay_world import wait_until

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
RIGHT = "sed -i 's/a - b/a + b/' calc.py"


def read_view(text: str) -> dict[str, Any]:
    """What `race --json` printed, which the published schema allows."""
    view: dict[str, Any] = json.loads(text)
    Draft202012Validator(build_race_schema()).validate(view)
    return view


def test_a_race_that_every_runner_has_to_leave_tells_the_earliest_reset(world: World) -> None:
    """Exit status 3 is what a script waits by; no terminal is needed, and the JSON says the same."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex", only=True)
    world.play("claude", LIMITS["claude"])
    world.play("codex", LIMITS["codex"])
    words = ["race", "claude", "codex", TASK, "--test", TEST_COMMAND]
    done = world.run(world.relay(*words))
    assert done.returncode == 3, f"{done.stdout}{done.stderr}\n{describe(world)}"
    assert done.stdout.count("The first reset is at ") == 2
    again = world.run(world.relay(*words, "--json"))
    view = read_view(again.stdout)
    assert (again.returncode, view["winner"]) == (3, "")
    assert [one["how"] for one in view["runners"]] == ["limited", "limited"]
    assert "The first reset is at " in view["runners"][0]["why"]
    wait_no_agents(world)


def test_a_real_agent_that_trusts_no_new_folder_says_what_to_set(world: World) -> None:
    """A worktree is a new folder, and nobody is there to be asked."""
    real_seeds.free_hands(world.home)
    order(world, "gemini", "codex")
    for agent in ("gemini", "codex"):
        world.play(agent, call(shell(agent, RIGHT), text="I change it."), say("It is done."))
    done = world.run(world.relay("race", "gemini", "codex", TASK, "--test", TEST_COMMAND, "--json"))
    view = read_view(done.stdout)
    told = json.dumps(view, indent=1)
    assert view["winner"] == "2-codex", f"{told}\n{describe(world)}"
    assert "GEMINI_CLI_TRUST_WORKSPACE" in view["runners"][0]["why"], told


def test_a_race_that_is_told_to_end_leaves_no_real_agent(world: World) -> None:
    """Ctrl-C and the end of a job mean the runners; resume goes on with them, in their own conversations."""
    real_seeds.free_hands(world.home)
    statuses = []
    for agent in ("claude", "codex"):
        world.play(agent, hang(240, times=FOREVER))
    words = ["race", "claude", "codex", TASK, "--test", TEST_COMMAND]
    for number in (signal.SIGINT, signal.SIGTERM):
        before = {agent: len(world.requests(agent)) for agent in ("claude", "codex")}
        running = world.begin(world.relay(*words))
        wait_until(
            lambda seen=before: all(len(world.requests(agent)) > count for agent, count in seen.items()),
            "both ask their providers",
            limit_s=RUN_S,
        )
        running.process.send_signal(number)
        stopped = finish(running)
        statuses.append(stopped.returncode)
        assert "Stopped. Go on: agent-relay race resume " in stopped.stderr
        wait_no_agents(world)
        words = ["race", "resume"]
    assert statuses == [130, 143]
    world.play("claude", call(shell("claude", RIGHT), text="I change it."), say("It is done."))
    world.play("codex", say("I leave it."))
    done = world.run(world.relay("race", "resume", "--json"))
    view = read_view(done.stdout)
    assert (done.returncode, view["winner"]) == (0, "1-claude"), f"{done.stdout}\n{describe(world)}"
