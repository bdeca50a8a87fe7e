"""`agent-relay model`: the model an agent is started with; written into the user's configuration."""

from typing import Annotated

import typer

from agent_relay.agents.catalog import read_catalog
from agent_relay.faces.render.output import print_json, print_table
from agent_relay.store.session_summaries import find_near_root
from agent_relay.system.config.config_file import read_user_config, write_model
from agent_relay.system.disk.folders import get_cwd, get_folders


def model(
    agent: Annotated[str, typer.Argument(help="The agent; by default all that have a model set.")] = "",
    name: Annotated[str, typer.Argument(metavar="MODEL", help="The model; - is the agent's own.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {models: {agent: model}}.")] = False,
) -> None:
    """Show, or set, the model an agent is started with from now on."""
    folders = get_folders()
    catalog = read_catalog(folders, root=find_near_root(get_cwd()))
    if agent:
        catalog.get(agent)
    if name:
        write_model(folders.config, agent, "" if name == "-" else name)
    config = read_user_config(folders.config)
    found = {one: config.get_agent(one).model for one in ([agent] if agent else catalog.adapters)}
    if as_json:
        print_json({"models": found})
        return
    rows = [[one, chosen or "its own"] for one, chosen in found.items() if chosen or agent]
    print_table(("agent", "model"), rows, empty="Every agent has its own model.")
