"""The real agents use relay's tools: they recall what their packet lacks, and hand themselves over."""

import json
import os

import pytest

from tests.real.test_chain import read_newest_packet
from tests.support import real_seeds
from tests.support.provider.steps import Step, Tool, call, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import (
    LIMITS,
    describe,
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)
from tests.support.sizes import sized

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
PLANTED = "47113"
LONG = "\n".join(
    f"Note {number}: the quillfeather code is {PLANTED}." if number == 150 else f"Note {number}: nothing."
    for number in range(300)
)
WITH_TOOLS = ("claude", "codex", "gemini", "opencode")
NAMES = {
    "claude": "mcp__agent_relay__{}",
    "codex": "mcp__agent_relay/{}",
    "gemini": "mcp_agent_relay_{}",
    "opencode": "agent_relay_{}",
}
REQUEST = {
    "title": "finish add()",
    "intent": "add() must add",
    "current_state": "the test fails",
    "next_step": "return a + b instead of a - b",
    "files": [{"path": "calc.py", "lines": "1-2", "note": "the bug"}],
}


def allow_tools(world: World) -> None:
    """The user lets every agent work without asking, and use relay's tools, as docs/mcp.md says."""
    real_seeds.free_hands(world.home)
    path = f"{world.home}/.claude/settings.json"
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    settings["permissions"]["allow"].append("mcp__agent_relay")
    real_seeds.write_json(path, settings)
    path = f"{world.home}/.gemini/settings.json"
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    settings["tools"]["allowed"].append("mcp_agent_relay_*")
    real_seeds.write_json(path, settings)
    done = world.run(world.relay("mcp", "install", "gemini", "--json"))
    assert len(json.loads(done.stdout)["changed"]) == 1, done.stderr


def tool(agent: str, name: str, **given: object) -> Tool:
    """The agent's own call of one of relay's tools."""
    return Tool(name=NAMES[agent].format(name), input=given)


def look_for_tools(agent: str, *, headless: bool = False) -> list[Step]:
    """What the model does first where the agent does not wait for its servers, or lists no tools unasked."""
    if agent not in {"claude", "codex"} or (agent == "claude" and headless):
        return []
    # A model takes seconds to answer; until then its servers are started.
    started = (
        'for i in $(seq 300); do [ -S "$AGENT_RELAY_HOME/run/mcp.sock" ] && break; sleep 0.2; done; sleep 5'
    )
    if agent == "claude":
        return [call(shell(agent, started))]
    looks = Tool(name="tool_search", input={"query": "agent relay session handoff recall", "limit": 20})
    return [call(shell(agent, started)), call(looks)]


@pytest.mark.parametrize(
    ("first", "agent", "last"),
    [
        ("codex", "claude", "opencode"),
        ("claude", "codex", "gemini"),
        ("claude", "opencode", "codex"),
        ("codex", "gemini", "claude"),
    ],
)
def test_an_agent_recalls_what_its_packet_lacks_and_hands_itself_over(
    world: World, first: str, agent: str, last: str
) -> None:
    """All of it without a person: the tools are there, bound to the session, on a screen."""
    allow_tools(world)
    order(world, first, agent, last)
    world.play(first, say(LONG), say("Noted."), LIMITS[first])
    looked = look_for_tools(agent)
    world.play(
        agent,
        *looked,
        call(tool(agent, "recall", query="quillfeather code"), text="I look it up."),
        call(tool(agent, "checkpoint", note="looked it up", next_step="hand over")),
        call(tool(agent, "handoff", to=last, **REQUEST)),
        say("I hand over."),
    )
    world.play(last, say("I pick it up."))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, "Write down your notes.")
    wait_work(world, terminal, lambda found: found.state == "busy", "the first turn")
    wait_work(world, terminal, lambda found: found.state == "ready", "the end of the first turn")
    type_line(terminal, "Thank you.")
    wait_heard(world, terminal, first, 2)
    wait_work(world, terminal, lambda found: found.state == "ready", "the end of the second turn")
    type_line(terminal, TASK)
    assert PLANTED not in wait_heard(world, terminal, agent)
    assert PLANTED in wait_heard(world, terminal, agent, 2 + len(looked))
    assert "hand over" in wait_heard(world, terminal, agent, 4 + len(looked))
    heard = wait_heard(world, terminal, last)
    session = wait_taken_over(world, terminal, last)
    assert [leg.agent for leg in session.legs] == [first, agent, last]
    assert session.done[-1].why == f"{agent} asked for it"
    for said in ("return a + b instead of a - b", "the test fails", "calc.py:1-2 — the bug"):
        assert said in heard, describe(world)
    packet, _ = read_newest_packet(session)
    assert packet["next_task"] == REQUEST["next_step"]


@pytest.mark.parametrize(
    ("agent", "last"),
    [("claude", "codex"), ("codex", "opencode"), ("gemini", "codex"), ("opencode", "claude")],
)
def test_a_headless_agent_hands_its_turn_over(world: World, agent: str, last: str) -> None:
    """A script gets the answer of the agent that finished the turn."""
    allow_tools(world)
    order(world, agent, last)
    asks = call(tool(agent, "handoff", to=last, **REQUEST))
    world.play(agent, *look_for_tools(agent, headless=True), asks, say("I hand over."))
    world.play(last, say("It adds now."))
    done = world.run(world.relay("run", agent, TASK))
    assert done.returncode == 0, f"{done.stderr}\n{describe(world)}"
    assert "It adds now." in done.stdout, describe(world)
    session = read_work(world)
    assert [leg.agent for leg in session.legs] == [agent, last]
    assert "return a + b instead of a - b" in world.requests(last)[0]["text"]
    if agent == "claude":
        # It waits for them: a turn of one answer has no second request.
        assert NAMES[agent].format("handoff") in json.dumps(world.requests(agent)[0]["body"]["tools"])


@pytest.mark.parametrize("agent", sized(WITH_TOOLS, ["claude"]))
def test_every_tool_answers(world: World, agent: str) -> None:
    """What an agent may call works for each of them, in a leg that resumes its conversation, too."""
    allow_tools(world)
    order(world, agent, *[other for other in AGENTS if other != agent][:1])
    calls = [tool(agent, name) for name in ("status", "limits", "plan", "list", "accept", "complete")]
    calls += [
        tool(agent, "recall", query="sums"),
        tool(agent, "show", handoff="none"),
        tool(agent, "fail", note="n"),
        tool(agent, "reject", note="n"),
    ]
    calls += [tool(agent, "checkpoint", note="half done")]
    world.play(agent, say("Hello."))
    first = world.run(world.relay("run", agent, TASK, "--json"))
    session = json.loads(first.stdout.splitlines()[-1])["session"]
    world.play(agent, *look_for_tools(agent, headless=True), *[call(one) for one in calls], say("Done."))
    again = world.run(world.relay("run", agent, "Go on.", "--continue", session))
    assert again.returncode == 0, f"{again.stderr}\n{describe(world)}"
    told = str(world.requests(agent)[-1]["text"])
    for said in (
        session,
        "signed_in",
        "successor",
        "handoffs",
        "this agent was not started by a handoff",
        "kept",
    ):
        assert said in told, said
    note = read_work(world).note
    assert note is not None
    assert note.text == "half done"


def test_a_user_who_wants_no_tools_gets_none_and_own_servers_stay(world: World) -> None:
    """One setting turns them off; nothing of the user's is changed either way."""
    real_seeds.free_hands(world.home)
    world.play("opencode", say("Hello."), say("Hello."))
    config = f"{world.home}/.config/opencode/opencode.json"
    with open(config, "rb") as file:
        before = file.read()
    world.run(world.relay("run", "opencode", TASK))
    assert "agent_relay_recall" in json.dumps(world.requests("opencode")[-1]["body"])
    folder = f"{world.env()['AGENT_RELAY_HOME']}/config"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/config.toml", "a", encoding="utf-8") as file:
        file.write("\nagent_tools = false\n")
    world.run(world.relay("run", "opencode", TASK))
    assert "agent_relay" not in json.dumps(world.requests("opencode")[-1]["body"])
    with open(config, "rb") as file:
        assert file.read() == before
