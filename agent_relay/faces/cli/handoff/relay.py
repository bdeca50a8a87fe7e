"""`agent-relay relay`: hand a session at work to the next agent of the order."""

from collections.abc import Mapping
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.cli.handoff._narrative import WRITING_LIMIT_S
from agent_relay.faces.cli.session.health import choose_running
from agent_relay.faces.cli.session.lookup import find_root_here
from agent_relay.faces.render.output import get_contents, print_json, print_lines
from agent_relay.system.disk.folders import get_folders

_LIMIT_S = 60.0


def relay(
    session: Annotated[
        str, typer.Argument(help="Its id, or one end of it; by default the one that runs here.")
    ] = "",
    *,
    focus: Annotated[str, typer.Option("--focus", help="What the next agent should look at first.")] = "",
    document: Annotated[
        bool, typer.Option("--narrative", help="The agent at work writes a handoff document first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: where the session is.")] = False,
) -> None:
    """Hand a session at work to the next agent of your order that can take over."""
    folders = get_folders()
    chosen = str(choose_running(folders, session)["session"])
    with connect_or_start(folders) as connection:
        connection.request("where", session=chosen, root=find_root_here())
        if document:
            written = connection.request("narrate", limit_s=WRITING_LIMIT_S, session=chosen, focus=focus)
            if written.get("outcome") not in {"written", "unable"}:
                _print(written, str(written.get("message", "")), as_json=as_json)
                raise typer.Exit(1)
        answer = connection.request("use", limit_s=_LIMIT_S, session=chosen, agent="", focus=focus)
    line = str(answer.get("message") or f"Session {chosen} passes to the next agent.")
    _print(answer, line, as_json=as_json)
    if answer.get("note") and not as_json:
        print_lines(str(answer["note"]))


def _print(answer: Mapping[str, object], line: str, *, as_json: bool) -> None:
    if as_json:
        print_json(get_contents(answer))
    else:
        print_lines(line)
