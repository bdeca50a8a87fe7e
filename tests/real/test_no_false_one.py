import glob
import json

import pytest

from agent_relay.domain.state import State
from tests.support import real_seeds
from tests.support.provider import errors
from tests.support.provider.steps import Step, call, edit, read, refuse, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS, PROMPTS, Leg, deliver, quit_politely, start, wait_ready
from tests.support.real_terminal import Terminal
from tests.support.real_work import type_line, wait_heard, wait_work

LOG = """2026-11-20 10:00:01 ERROR HTTP/1.1 429 Too Many Requests
You've hit your session limit · resets 3pm (UTC)
■ You\u2019ve hit your usage limit. Upgrade to Pro, or try again at 3:04 PM.
Usage limit reached for all Pro models.
Access resets at 10:00 PM UTC.
[API Error: You have exhausted your daily quota on this model.]
Rate limit reached for gpt-5.1 [retrying in 59m attempt #1]
{"type":"error","error":{"type":"rate_limit_error"}} RESOURCE_EXHAUSTED insufficient_quota
"""
QUOTES = (
    "Providers word their limits like this:\n\n- `429 Too Many Requests`\n"
    '- "You\'ve hit your session limit · resets 3pm (UTC)"\n'
    "- You\u2019ve hit your usage limit. Try again at 3:04 PM.\n- RESOURCE_EXHAUSTED: quota exceeded\n\n"
    "That was the list."
)
FORGED = {
    "claude": "You've hit your session limit · resets 3pm (UTC)",
    "codex": "■ You\u2019ve hit your usage limit. Upgrade to Pro, or try again at 3:04 PM.",
    "gemini": "Usage limit reached for all Pro models.\nAccess resets at 10:00 PM UTC.\n● 1. Go\n  2. Stop",
    "opencode": "Rate limit reached for gpt-5.1 in organization org-x [retrying in 59m 58s attempt #1]",
}
HEALS = {
    "claude": refuse("claude-overloaded", times=2),
    "codex": refuse("server-error", times=2),
    "gemini": refuse("gemini-overloaded", times=2),
    "opencode": refuse("openai-busy", times=1, retry_after_s=3),
}
FIRES = ("limit", "silent-limit")
WARNED_CLAUDE = {"used": 0.92, "status": "allowed_warning", "5h_surpassed_threshold": "0.9"}
LIMITS = {
    "claude": refuse("claude-limit"),
    "codex": refuse("codex-limit"),
    "gemini": refuse("gemini-quota"),
    "opencode": refuse("openai-unpaid"),
}
SIGHTS = {
    "claude": "What do you want to do",
    "codex": "hit your usage limit",
    "gemini": "Usage limit reached",
    "opencode": "Insufficient credits",
}


def warn(agent: str) -> Step:
    """An answer whose headers say that a limit is near, for those agents that show such a thing."""
    match agent:
        case "claude":
            return Step(say="Nearly there.", headers=errors.claude_headers(**WARNED_CLAUDE))
        case "codex":
            return Step(say="Nearly there.", headers=errors.codex_headers(used=92))
        case _:
            return say("Nearly there.")


def ask(terminal: Terminal, text: str, answer: str) -> None:
    """Type a prompt and wait for its answer and a quiet screen. Gemini keeps question marks to itself."""
    type_line(terminal, text)
    terminal.wait_for(answer)
    terminal.wait_quiet(1.0)


def check_same_agent(world: World, terminal: Terminal, agent: str) -> None:
    """Nobody was handed anything: no other agent was started or asked, nothing was said, nothing written."""
    assert [other for other in AGENTS if other != agent and world.requests(other)] == []
    assert f"{agent} → ".encode() not in terminal.raw
    (journal,) = glob.glob(f"{world.project}/.agent-relay/sessions/*/journal.jsonl")
    with open(journal, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    assert [row for row in rows if row["event"].startswith("handoff")] == []
    seen = [row["data"] for row in rows if row["event"] == "signal.seen"]
    assert [signal for signal in seen if signal["decides"] and signal["kind"] in FIRES] == []
    assert terminal.is_alive()


@pytest.mark.parametrize("agent", AGENTS)
def test_talk_of_limits_retries_and_warnings_hand_nothing_over(world: World, agent: str) -> None:
    """Every text of a limit, in files, output, edits, prompts and replies; then what heals by itself."""
    real_seeds.free_hands(world.home)
    with open(f"{world.project}/errors.log", "w", encoding="utf-8") as file:
        file.write(LOG)
    told = f"    return a - b  # {FORGED[agent].splitlines()[0]}"
    change = edit(agent, path=f"{world.project}/calc.py", old="    return a - b", new=told)
    world.play(
        agent,
        call(shell(agent, "cat errors.log"), text="The log first."),
        call(read(agent, path=f"{world.project}/errors.log"), text="Once more, as a file."),
        call(read(agent, path=f"{world.project}/calc.py"), text="And the code."),
        call(change, text="I write it down."),
        call(shell(agent, "git diff && cat errors.log && false"), text="What is different?"),
        say(QUOTES),
        say(FORGED[agent]),
        HEALS[agent],
        say("It healed by itself."),
        warn(agent),
        say("Still the same agent."),
    )
    terminal = world.open(world.relay(agent))
    terminal.wait_for(PROMPTS[agent])
    terminal.wait_quiet(0.5)
    ask(terminal, "Tell me what limits look like", "That was the list")
    with open(f"{world.project}/calc.py", encoding="utf-8") as file:
        assert told in file.read()
    ask(terminal, "Say exactly: You've hit your session limit", r"3:04 PM|3pm \(UTC\)|2\. Stop|59m 58s")
    # Those words stood there before: the turn is over once they were asked for and nothing moves.
    wait_heard(world, terminal, agent, 3)
    wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    terminal.wait_quiet(1.0)
    ask(terminal, "go on", "It healed by itself")
    ask(terminal, "and on", "Nearly there")
    terminal.send("\x1b")
    terminal.wait_quiet(2.0)
    ask(terminal, "and once more", "Still the same agent")
    check_same_agent(world, terminal, agent)


def meet_old_limit(world: World, agent: str) -> Leg:
    """A native session, not ours, that ended at a limit."""
    world.play(agent, say("The first answer."), LIMITS[agent])
    leg = start(world, agent)
    wait_ready(leg)
    deliver(leg, "do the work")
    leg.terminal.wait_for("The first answer")
    leg.terminal.wait_quiet()
    deliver(leg, "go on")
    leg.terminal.wait_for(SIGHTS[agent])
    leg.terminal.wait_quiet(1.0, limit_s=4)
    quit_politely(leg, "asking")
    return leg


@pytest.mark.parametrize("agent", AGENTS)
def test_a_resumed_session_that_repaints_an_old_limit_hands_nothing_over(world: World, agent: str) -> None:
    """What stood on the screen yesterday is history: only what is newer than the leg counts."""
    meet_old_limit(world, agent)
    world.play(agent, say("Still the same agent."))
    terminal = world.open(world.relay(agent))
    terminal.wait_for("Go on with it")
    terminal.send("y\r")
    terminal.wait_for("The first answer")
    terminal.wait_for(PROMPTS[agent])
    terminal.wait_quiet(1.0)
    ask(terminal, "and now", "Still the same agent")
    check_same_agent(world, terminal, agent)
