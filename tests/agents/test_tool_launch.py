"""How an agent is given relay's tools at its start, beside what the user has."""

import json
import os
import tomllib

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from agent_relay.agents.launch import build_headless, build_launch, build_tool_values
from agent_relay.domain.documents.adapter import Adapter

PYTHON, PIPE, FOLDER = '/opt/py "3"\x7f/bin/python', "/lib/pipe.py", "/run/über relay"
WORDS = [PYTHON, "-I", "-S", PIPE, FOLDER]
VALUES = build_tool_values(FOLDER, python=PYTHON, pipe=PIPE)
NAMED = {**VALUES, "native_id": "N"}


def load(agent: str) -> Adapter:
    return load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in").adapter


def headless(agent: str) -> Adapter:
    adapter = build_headless(load(agent))
    assert adapter is not None
    return adapter


@pytest.mark.parametrize("build", [load, headless])
def test_claude_is_given_a_server_beside_the_users(build: object) -> None:
    """Any path can be told, and no word after it belongs to it."""
    assert callable(build)
    plan = build_launch(build("claude"), "/c", values=NAMED, environ={}, resumes=build is headless)
    (word,) = [word for word in plan.argv if word.startswith("--mcp-config=")]
    server = json.loads(word.partition("=")[2])["mcpServers"]["agent_relay"]
    assert [server["command"], *server["args"]] == WORDS
    assert "--strict-mcp-config" not in plan.argv


@pytest.mark.parametrize("build", [load, headless])
def test_codex_is_given_one_server_of_its_own_name(build: object) -> None:
    """The value is TOML, and only the variables that are named reach the server."""
    assert callable(build)
    plan = build_launch(build("codex"), "/c", values=NAMED, environ={}, resumes=build is headless)
    at = plan.argv.index("-c")
    found = tomllib.loads(plan.argv[at + 1].replace("mcp_servers.agent_relay=", "x=", 1))["x"]
    assert [found["command"], *found["args"]] == WORDS
    assert found["env_vars"] == ["AGENT_RELAY_LEG", "AGENT_RELAY_LEG_TOKEN"]


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", {"mcp": {"agent_relay": {"type": "local", "command": WORDS, "enabled": True}}}),
        (
            '{"theme":"x","mcp":{"mine":{"type":"remote"}}}',
            {
                "theme": "x",
                "mcp": {
                    "mine": {"type": "remote"},
                    "agent_relay": {"type": "local", "command": WORDS, "enabled": True},
                },
            },
        ),
    ],
)
def test_opencode_keeps_what_the_user_set(user: str, expected: object) -> None:
    """The variable may be the user's own."""
    environ = {"OPENCODE_CONFIG_CONTENT": user} if user else {}
    plan = build_launch(load("opencode"), "/o", values=VALUES, environ=environ)
    assert json.loads(plan.env["OPENCODE_CONFIG_CONTENT"]) == expected


@pytest.mark.parametrize("user", ["{ // mine\n}", "[]", '{"mcp": 7}', "{" * 5000, "nonsense"])
def test_what_cannot_be_merged_into_stays_as_it_is(user: str) -> None:
    """The user's configuration is worth more than our tools."""
    plan = build_launch(load("opencode"), "/o", values=VALUES, environ={"OPENCODE_CONFIG_CONTENT": user})
    assert plan.env["OPENCODE_CONFIG_CONTENT"] == user


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode", "gemini", "demo"])
def test_without_tools_nothing_of_them_is_told(agent: str) -> None:
    """One setting turns them off, and runs that write documents have none."""
    for adapter in (load(agent), build_headless(load(agent))):
        if adapter is not None:
            plan = build_launch(adapter, "/a", values={"native_id": "N"}, environ={})
            assert "agent_relay" not in " ".join((*plan.argv, *plan.env, *plan.env.values()))
