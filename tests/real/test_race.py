"""A race of three real agents, from dirty repository to dirty repository and one applied change."""

import json
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_relay.race.schema import build_race_schema
from tests.support import real_seeds
from tests.support.provider.steps import call, say, shell
from tests.support.real import TEST_COMMAND, World
from tests.support.real_work import LIMITS, describe, order

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
RIGHT = "sed -i 's/a - b/a + b/' calc.py"
WRONG = "sed -i 's/a - b/a * b/' calc.py"
RIGHT_AND_LONG = "sed -i -e 's/a - b/a + b/' -e '$ a # a line more' calc.py"


def git(world: World, *words: str) -> str:
    """What git prints in the project."""
    done = subprocess.run(["git", *words], cwd=world.project, capture_output=True, check=True)
    return done.stdout.decode()


def look(world: World) -> tuple[str, str, str]:
    """What a person sees of the repository."""
    status = git(world, "status", "--porcelain", "--untracked-files=all")
    return status, git(world, "worktree", "list"), git(world, "for-each-ref")


def work(world: World, agent: str, command: str) -> None:
    """The agent changes the file by a command of its own shell and says so."""
    world.play(agent, call(shell(agent, command), text="I change it."), say("It is done."))


def dirty(world: World) -> None:
    """Somebody is in the middle of work."""
    with open(f"{world.project}/not committed.txt", "w", encoding="utf-8") as file:
        file.write("mine\n")


def race(world: World, *words: str) -> dict[str, Any]:
    """The race's end as JSON."""
    # Gemini trusts no folder it has not seen, and asks nobody when it has no screen.
    trusting = world.env() | {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    done = world.run(world.relay("race", *words, "--json", env=trusting))
    assert done.stdout, f"{done.stderr}\n{describe(world)}"
    view: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(build_race_schema()).validate(view)
    return view


@pytest.mark.size("test")
def test_three_real_agents_race_and_the_best_one_is_applied(world: World) -> None:
    """Each works in a tree of its own that has what was not committed; nothing else of it stays."""
    real_seeds.free_hands(world.home)
    dirty(world)
    before = look(world)
    work(world, "claude", WRONG)
    work(world, "codex", RIGHT)
    work(world, "gemini", RIGHT_AND_LONG)
    test = f"test -f 'not committed.txt' && {TEST_COMMAND}"
    view = race(world, "claude", "codex", "gemini", TASK, "--test", test)
    told = json.dumps(view, indent=1)
    assert view["winner"] == "2-codex", f"{told}\n{describe(world)}"
    assert view["ranking"] == ["2-codex", "3-gemini", "1-claude"], told
    assert [one["how"] for one in view["runners"]] == ["finished"] * 3, told
    assert [one["test"] for one in view["runners"]] == ["failed", "passed", "passed"], told
    assert all(one["tokens"] > 0 for one in view["runners"]), told
    assert {one["path"] for one in view["overlaps"]} == {"calc.py"}
    assert look(world)[0] == before[0]
    applied = world.run(world.relay("race", "apply"))
    assert applied.returncode == 0, applied.stderr
    cleaned = world.run(world.relay("race", "clean"))
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    status, *rest = look(world)
    assert rest == list(before[1:])
    assert set(status.splitlines()) ^ set(before[0].splitlines()) == {" M calc.py"}


def test_a_real_agent_at_its_limit_is_succeeded_within_its_own_worktree(world: World) -> None:
    """The race goes on with another agent under the same number."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "gemini")
    world.play("claude", LIMITS["claude"])
    work(world, "gemini", RIGHT)
    work(world, "codex", WRONG)
    view = race(world, "claude", "codex", TASK, "--test", TEST_COMMAND)
    told = json.dumps(view, indent=1)
    assert view["winner"] == "1-claude", f"{told}\n{describe(world)}"
    assert view["runners"][0]["at_work"] == "gemini", told
