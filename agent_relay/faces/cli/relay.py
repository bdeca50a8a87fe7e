"""`agent-relay relay`: a session at work passes to the next agent of the order."""

from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.cli.narrative import WRITING_LIMIT_S, choose_at_work
from agent_relay.faces.cli.printing import print_lines
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.system.folders import get_folders

_LIMIT_S = 60.0


def run(words: list[str]) -> int:
    """The exit status of `agent-relay relay`."""
    return run_one(relay, words, name="relay")


def relay(
    session: Annotated[
        str, typer.Argument(help="Its id, or one end of it; the one that runs here without.")
    ] = "",
    *,
    focus: Annotated[str, typer.Option("--focus", help="What the next agent should look at first.")] = "",
    document: Annotated[
        bool, typer.Option("--narrative", help="The agent at work writes a handoff document first.")
    ] = False,
) -> None:
    """Hand a session at work to the next agent of your order that can take over."""
    folders = get_folders()
    chosen = choose_at_work(folders, session)
    with connect_or_start(folders) as connection:
        if document:
            told = connection.request("narrate", limit_s=WRITING_LIMIT_S, session=chosen, focus=focus)
            if told.get("outcome") not in {"written", "unable"}:
                print_lines(str(told.get("message", "")))
                raise typer.Exit(1)
        answer = connection.request("use", limit_s=_LIMIT_S, session=chosen, agent="", focus=focus)
    print_lines(str(answer.get("message") or f"Session {chosen} passes to the next agent."))


FUNCTIONS: dict[str, Function] = {"": relay}
"""For the generated page of commands."""
