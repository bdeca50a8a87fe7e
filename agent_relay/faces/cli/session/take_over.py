"""`agent-relay take-over`: take the working tree from an owner on another machine that is gone."""

from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.system.disk.folders import get_cwd, get_folders


def take_over(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {root}.")] = False,
) -> None:
    """Work here although another machine or container did; only if its agents are gone for good."""
    with connect_or_start(get_folders()) as connection:
        answer = connection.request("tree.take", cwd=get_cwd())
    if as_json:
        print_json({"root": answer.get("root", "")})
    else:
        print_lines(f"The working tree {answer.get('root', '')} is yours.")
