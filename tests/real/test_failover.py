import json

import pytest

from tests.support import real_seeds
from tests.support.provider.steps import Step, call, edit, read, refuse, say, shell
from tests.support.real import TEST_COMMAND, World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import type_line, wait_prompt

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
PLAN = "The test still fails. Next step: make add() return a + b."
GOES_ON = "I pick up where it stopped: add() must return a + b."

SILENT = refuse("gemini-exhausted")
LIMITS = {
    "claude": refuse("claude-limit"),
    "codex": refuse("codex-limit"),
    "gemini": refuse("gemini-quota"),
    "opencode": refuse("openai-busy", retry_after_s=3600),
}


def build_turn(world: World, agent: str, limit: Step) -> list[Step]:
    """A turn that edits a file, sees a test fail, says what comes next, and meets the limit."""
    path = f"{world.project}/calc.py"
    change = edit(agent, path=path, old="    return a - b", new="    return a * b")
    return [
        call(read(agent, path=path), text="I look at the file first."),
        call(change, text="add() subtracts; I try a product."),
        call(shell(agent, TEST_COMMAND), text="Now the test."),
        call(shell(agent, "git diff --stat"), text=PLAN),
        limit,
    ]


def order(world: World, first: str, second: str) -> None:
    """`second` is asked first when `first` cannot go on."""
    rest = [agent for agent in AGENTS if agent not in (first, second)]
    done = world.run(world.relay("order", first, second, *rest))
    assert done.returncode == 0, done.stderr


def type_task(terminal: Terminal, agent: str) -> None:
    """A person types the task into the agent's own prompt."""
    wait_prompt(terminal, agent)
    type_line(terminal, TASK)


def check_handoff(world: World, terminal: Terminal, first: str, second: str) -> None:
    """The same terminal goes on with the successor, whose first request says all it needs."""
    terminal.wait_until(lambda: bool(world.requests(second)), f"the first request of {second}")
    heard = world.requests(second)[0]["text"]
    assert TASK in heard
    assert "modified: calc.py (+1 \N{MINUS SIGN}1)" in heard
    assert TEST_COMMAND in heard
    assert "test_add_of_two_and_three_is_five" in heard
    assert "6 != 5" in heard
    assert "make add() return a + b" in heard
    terminal.wait_for(GOES_ON[:28])
    assert f"{first} → {second}".encode() in terminal.raw
    terminal.wait_until(
        lambda: not [line for line in world.find_processes().values() if f"/{first}" in line],
        f"{first} to be gone from {world.find_processes()}",
    )
    assert len(world.requests(second)) == 1


def read_status(world: World) -> dict[str, object]:
    """What `status --json` says."""
    done = world.run(world.relay("status", "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.size("test")
@pytest.mark.parametrize(
    ("first", "second"),
    [("claude", "codex"), ("codex", "gemini"), ("gemini", "opencode"), ("opencode", "claude")],
)
def test_the_same_terminal_goes_on_with_the_next_agent(world: World, first: str, second: str) -> None:
    """What the product is for: a real agent's real limit, and the next real agent knows the work."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, *build_turn(world, first, LIMITS[first]))
    world.play(second, say(GOES_ON))
    terminal = world.open(world.relay(first))
    type_task(terminal, first)
    check_handoff(world, terminal, first, second)


def test_codex_is_given_its_packet_once_its_tool_servers_have_started(world: World) -> None:
    """It says that it works while they start, before anybody asked it anything."""
    real_seeds.free_hands(world.home)
    with open(f"{world.home}/.codex/config.toml", "a", encoding="utf-8") as file:
        file.write('\n[mcp_servers.slow]\ncommand = "sh"\nargs = ["-c", "sleep 4"]\n')
    order(world, "claude", "codex")
    world.play("claude", *build_turn(world, "claude", LIMITS["claude"]))
    world.play("codex", say(GOES_ON))
    terminal = world.open(world.relay("claude"))
    type_task(terminal, "claude")
    check_handoff(world, terminal, "claude", "codex")


def test_a_limit_that_gemini_hides_for_seven_hours_is_acted_on_at_once(google_world: World) -> None:
    """Its screen says "Thinking" until the quota is back; the task came by `--task`."""
    world = google_world
    real_seeds.free_hands(world.home)
    order(world, "gemini", "opencode")
    world.play("gemini", *build_turn(world, "gemini", SILENT))
    world.play("opencode", say(GOES_ON))
    terminal = world.open(world.relay("gemini", "--task", TASK))
    check_handoff(world, terminal, "gemini", "opencode")
