"""`agent-relay order`: the order in which agents take over, in the user's configuration."""

from typing import Annotated

import typer

from agent_relay.agents.adapters import list_default_roster
from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.documents.config import build_roster
from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.store.session_summaries import find_near_root
from agent_relay.system.config.config_file import read_project_config, read_user_config, write_order
from agent_relay.system.disk.folders import get_cwd, get_folders


def order(
    agents: Annotated[
        list[str] | None, typer.Argument(help="Preferred first; others never take over.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {order: [...]}.")] = False,
) -> None:
    """Show, or set, the agents that may take over, preferred first."""
    folders = get_folders()
    root = find_near_root(get_cwd())
    catalog = read_catalog(folders, root=root)
    if agents:
        for name in agents:
            catalog.get(name)
            if agents.count(name) > 1:
                raise WrongUseError(
                    f"the order cannot be set: {name} is named twice", hint="Name each agent once"
                )
        write_order(folders.config, tuple(agents))
    known = list_default_roster(catalog.adapters)
    roster = build_roster(known, read_user_config(folders.config), read_project_config(root))
    if as_json:
        print_json({"order": list(roster)})
    else:
        print_lines(" ".join(roster))
