"""The tool servers that a user has for an agent are no part of a run that writes a document."""

import json
import os

import pytest

from tests.real.test_digest import DOCUMENT, find_end, get_predecessor, hand_over
from tests.real.test_narrative import at_work, narrate
from tests.support.provider.steps import Tool, call, say
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_seeds import write_json

SERVER = """#!/usr/bin/python3
import json, sys
open(sys.argv[1] + ".begun", "a").write("x")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {}
    if asked["method"] == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        answer["serverInfo"] = {"name": "spy", "version": "1"}
    elif asked["method"] == "tools/list":
        tool = {"name": "look", "description": "spies", "inputSchema": {"type": "object", "properties": {}}}
        answer = {"tools": [tool]}
    elif asked["method"] == "tools/call":
        open(sys.argv[1], "a").write("called")
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
CALLED = {
    "claude": "mcp__spy__look",
    "codex": "mcp__spy__look",
    "gemini": "mcp_spy_look",
    "opencode": "spy_look",
}
NONE_OF = ("tool_search", "list_mcp_resources", "read_mcp_resource", "view_image", "exec_command")
"""Tools by which the user's servers or the user's files could be reached."""


def add_server(world: World, agent: str) -> str:
    """The user gives the agent a server, the project another; the path of the file of calls."""
    server, mark = f"{world.root}/spy.py", f"{world.root}/called"
    with open(server, "w", encoding="utf-8") as file:
        file.write(SERVER)
    os.chmod(server, 0o700)
    plain = {"command": server, "args": [mark]}
    paths = {
        "claude": f"{world.home}/.claude.json",
        "gemini": f"{world.home}/.gemini/settings.json",
        "opencode": f"{world.home}/.config/opencode/opencode.json",
    }
    if agent == "codex":
        table = f'command = "{server}"\nargs = ["{mark}"]\n'
        os.makedirs(f"{world.project}/.codex")
        with open(f"{world.home}/.codex/config.toml", "a", encoding="utf-8") as file:
            file.write(f'[mcp_servers.spy]\n{table}[mcp_servers."a.b c"]\n{table}')
        with open(f"{world.project}/.codex/config.toml", "w", encoding="utf-8") as file:
            file.write(f"[mcp_servers.theirs]\n{table}")
        return mark
    with open(paths[agent], encoding="utf-8") as file:
        settings = json.load(file)
    if agent == "opencode":
        settings["mcp"] = {"spy": {"type": "local", "command": [server, mark], "enabled": True}}
    else:
        settings["mcpServers"] = {"spy": plain}
    write_json(paths[agent], settings)
    return mark


def list_tools(body: dict[str, object]) -> str:
    """The tools a request offers, as text."""
    return json.dumps(body.get("tools") or [])


@pytest.mark.parametrize("successor", AGENTS)
def test_a_digests_reader_is_offered_no_server_and_calls_none(world: World, successor: str) -> None:
    """What the record says may be a stranger's order; nothing of the user's may follow it."""
    mark = add_server(world, successor)
    with at_work(world, get_predecessor(successor), "heliotrope") as (terminal, _):
        called = call(Tool(name=CALLED[successor], input={}))
        hand_over(world, terminal, successor, called, say(DOCUMENT))
        assert find_end(world).outcome == "written"
        asked = [one for one in world.requests(successor) if "<record>" in one["text"]]
        assert asked
        for one in asked:
            offered = list_tools(one["body"])
            assert not [name for name in NONE_OF if name in offered]
            if successor != "opencode":
                assert "look" not in offered
        assert not os.path.exists(mark)


def test_codex_begins_no_server_in_a_fork(world: World) -> None:
    """A server runs outside of the sandbox that keeps its other tools from doing anything."""
    mark = add_server(world, "codex")
    with at_work(world, "codex", "heliotrope") as (_, session):
        world.play("codex", call(Tool(name=CALLED["codex"], input={})), say(DOCUMENT))
        begun = os.path.getsize(f"{mark}.begun")
        assert narrate(world, session)["outcome"] == "written"
        assert os.path.getsize(f"{mark}.begun") == begun
        assert not os.path.exists(mark)
