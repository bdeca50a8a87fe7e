"""What an agent runs in its shell finds relay where its user has it."""

import os

import pytest

from tests.support.at_work import WorkingWorld
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

START = """env > "$HOME/written" && mv "$HOME/written" "$HOME/environment"
exec {agent} "$@"
"""


def test_a_command_of_ours_in_an_agents_shell_is_about_this_users_sessions(world: WorkingWorld) -> None:
    """The packet tells the successor of `agent-relay recall`; without our folder it finds no session."""
    add_adapter(world, "teller", script=START)
    world.environ["AGENT_RELAY_STRANGE"] = "1"
    world.open("teller")
    path = f"{world.home}/environment"
    wait_until(lambda: os.path.exists(path), "the agent to run")
    with open(path, encoding="utf-8") as file:
        ours = {line.partition("=")[0]: line.rstrip() for line in file if line.startswith("AGENT_RELAY_")}
    assert sorted(ours) == ["AGENT_RELAY_HOME", "AGENT_RELAY_LEG", "AGENT_RELAY_LEG_TOKEN"]
    assert ours["AGENT_RELAY_HOME"] == f"AGENT_RELAY_HOME={world.environ['AGENT_RELAY_HOME']}"
