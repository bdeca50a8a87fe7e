import pytest

from agent_relay.terminal.restore import RESTORE
from tests.support.provider.steps import Step, Tool, call, refuse, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS, Leg, check_gone, deliver, start, wait_ready

LIMITS = {
    "claude": refuse("claude-limit"),
    "codex": refuse("codex-limit"),
    "gemini": refuse("gemini-quota"),
    "opencode": refuse("openai-busy", retry_after_s=3600),
}
FREE_HANDS = {
    "claude": ("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    "codex": ("--dangerously-bypass-approvals-and-sandbox",),
    "gemini": ("--approval-mode", "yolo"),
    "opencode": (),
}
ESCALATED = {"cmd": "touch x", "sandbox_permissions": "require_escalated", "justification": "May I?"}
ASKING = {
    "claude": ((), shell("claude", "rm -rf nothing"), "Do you want to proceed"),
    "codex": (
        ("-s", "read-only", "-a", "on-request"),
        Tool(name="exec_command", input=ESCALATED),
        "Would you like",
    ),
    "gemini": ((), shell("gemini", "rm -rf nothing"), "Allow execution"),
}
LIMIT_SIGHTS = {
    "claude": "What do you want to do",
    "codex": "hit your usage limit",
    "gemini": "Usage limit reached",
    "opencode": "retrying",
}


def begin(world: World, agent: str, *steps: Step, extra: tuple[str, ...] = ()) -> Leg:
    """A leg of `agent` that was given a first prompt and met `steps`."""
    world.play(agent, *steps)
    leg = start(world, agent, extra=extra)
    wait_ready(leg)
    deliver(leg, "do the work")
    leg.terminal.wait_until(lambda: bool(world.requests(agent)), "the first request")
    return leg


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_at_its_limit_ends_cleanly(world: World, agent: str) -> None:
    """At a limit a menu may be open, in which typed words would choose something."""
    leg = begin(world, agent, LIMITS[agent])
    leg.terminal.wait_for(LIMIT_SIGHTS[agent])
    leg.terminal.wait_quiet(0.3, limit_s=2)
    check_gone(world, leg, "asking")
    assert len(world.requests(agent)) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_runs_a_command_ends_with_the_command(world: World, agent: str) -> None:
    """A test run left behind would change files under the successor's hands."""
    leg = begin(world, agent, call(shell(agent, "sleep 333")), extra=FREE_HANDS[agent])
    leg.terminal.wait_until(
        lambda: any("sleep 333" in line for line in world.find_processes().values()), "the command to run"
    )
    check_gone(world, leg, "busy")


@pytest.mark.parametrize("agent", sorted(ASKING))
def test_an_agent_that_asks_for_permission_ends_without_getting_it(world: World, agent: str) -> None:
    """What ends an agent must never be taken for a yes."""
    extra, tool, sight = ASKING[agent]
    leg = begin(world, agent, call(tool), extra=extra)
    leg.terminal.wait_for(sight)
    leg.terminal.wait_quiet(0.3)
    check_gone(world, leg, "asking")
    assert len(world.requests(agent)) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_killed_agent_left_on_is_turned_off_by_relay(world: World, agent: str) -> None:
    """The last quit step is SIGKILL, after which no agent tidies up."""
    leg = start(world, agent)
    wait_ready(leg)
    leg.terminal.kill()
    leg.terminal.show(RESTORE.decode())
    assert leg.terminal.modes_left_on() == []
