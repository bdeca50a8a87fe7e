"""What the four real agents used, as their providers served it: the roll-up of a chain is exact."""

import glob
import json

import pytest

from tests.support import real_seeds
from tests.support.provider.steps import Step, call, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import LIMITS, describe, order, type_line, wait_prompt, wait_taken_over
from tests.support.relay_world import wait_until
from tests.support.served import count_served, read_used

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."


def look(agent: str, *, held: int) -> Step:
    """An answer that runs a command, of a conversation of `held` tokens: no two are alike."""
    step = call(shell(agent, "git diff --stat"), text=f"{agent} looks.")
    step["held"] = held
    return step


def list_asked_aside(world: World) -> list[str]:
    """Whose models were asked for something besides the conversation."""
    rows = world.read_log()
    return [row["agent"] for row in rows if row["method"] == "POST" and not row["main"] and "step" in row]


def test_the_roll_up_of_a_chain_of_all_four_is_what_their_providers_served(world: World) -> None:
    """Two turns of one session, four agents, three limits: every answer once, none of a refusal."""
    real_seeds.free_hands(world.home)
    order(world, *AGENTS)
    for number, agent in enumerate(AGENTS[:-1]):
        first, second = (look(agent, held=20_011 + 1_013 * number + extra) for extra in (0, 307))
        world.play(agent, first, second, LIMITS[agent])
    last = AGENTS[-1]
    world.play(last, look(last, held=31_337), say("It subtracts.", held=31_999))
    done = world.run(world.relay("run", "claude", TASK, "--json"))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{describe(world)}"
    session = json.loads(done.stdout.splitlines()[-1])["session"]
    world.play(last, say("Because nobody tested it.", held=32_503))
    again = world.run(world.relay("run", last, "And why?", "--continue", session))
    assert again.returncode == 0, f"{again.stdout}{again.stderr}\n{describe(world)}"
    served = {agent: count_served(world, agent) for agent in AGENTS}
    used = read_used(world, session, "--by", "agent")
    assert used == {**served, "total": tuple(sum(column) for column in zip(*served.values(), strict=True))}
    legs = read_used(world, session, "--by", "leg")
    assert (len(legs), legs["total"]) == (len(AGENTS) + 2, used["total"])


def test_on_the_screen_it_is_exact_too_while_the_last_agent_still_lives(world: World) -> None:
    """Nobody waits for an agent's end to ask what it has cost; two of the four do not say who they are."""
    real_seeds.free_hands(world.home)
    order(world, *AGENTS)
    for number, agent in enumerate(AGENTS[:-1]):
        world.play(agent, look(agent, held=20_011 + 1_013 * number), LIMITS[agent])
    world.play(AGENTS[-1], say("It subtracts.", held=31_999))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    session = wait_taken_over(world, terminal, "opencode")
    terminal.wait_for("It subtracts")

    def is_told() -> bool:
        served = {agent: count_served(world, agent) for agent in AGENTS}
        expected = {**served, "total": tuple(sum(column) for column in zip(*served.values(), strict=True))}
        return read_used(world, session.id, "--by", "agent") == expected

    wait_until(is_told, "the roll-up to be what was served", limit_s=180)


@pytest.mark.size("test")
def test_a_budget_hands_a_real_agents_turn_to_the_next(world: World) -> None:
    """Counted from the agent's own record while it works: 20,042 tokens of 20,000 are used by one answer."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex")
    with open(f"{world.root}/relay/config/config.toml", "a", encoding="utf-8") as file:
        file.write('[[budgets]]\nper = "session"\nagent = "claude"\ntokens = 20000\nthen = "handoff"\n')
    slow = call(shell("claude", "sleep 40"), text="I wait for something.")
    slow["held"] = 20_000
    world.play("claude", slow, say("I am through."))
    world.play("codex", say("I go on with it."))
    done = world.run(world.relay("run", "claude", TASK))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "I go on with it."), (
        f"{done.stdout}{done.stderr}\n{describe(world)}"
    )
    assert "Your budget of 20,000 tokens a session for claude is used up (20,042 tokens)" in done.stderr
    assert TASK in world.requests("codex")[0]["text"]


def test_what_is_asked_on_the_side_is_in_no_record(world: World) -> None:
    """Titles and the router are served, too; no agent writes down what they used, so nobody can count it."""
    real_seeds.free_hands(world.home)
    order(world, "claude", only=True)
    world.play("claude", say("It subtracts.", held=21_013))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    terminal.wait_for("It subtracts")
    terminal.wait_until(lambda: list_asked_aside(world) == ["claude"], "a title to be asked for")
    wait_until(
        lambda: read_used(world, "--all")["total"] == count_served(world, "claude"),
        "the answer to be counted",
        limit_s=180,
    )
    records = glob.glob(f"{world.home}/.claude/projects/*/*.jsonl")
    assert len(records) == 1
    with open(records[0], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    keys = {row["message"]["id"] for row in rows if row.get("type") == "assistant"}
    assert len(keys) == 1
