"""`agent-relay take-over`: take the working tree from an owner on another machine that is gone."""

from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.cli.typer_runner import Function, run_one
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.system.disk.folders import get_cwd, get_folders


def run(words: list[str]) -> int:
    """Run `agent-relay take-over`; return its exit status."""
    return run_one(take_over, words, name="take-over")


def take_over(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {root}.")] = False,
) -> None:
    """Work here though another machine or container did: say so only where its agents are gone for good."""
    with connect_or_start(get_folders()) as connection:
        answer = connection.request("tree.take", cwd=get_cwd())
    if as_json:
        print_json({"root": answer.get("root", "")})
    else:
        print_lines(f"The working tree {answer.get('root', '')} is yours.")


FUNCTIONS: dict[str, Function] = {"": take_over}
"""For the generated page of commands."""
