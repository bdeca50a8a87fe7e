"""`agent-relay handoff --narrative`: the agent at work writes a handoff document for the next packet."""

import sys
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import RelayError
from agent_relay.faces.cli.session.health import choose_running
from agent_relay.faces.render.output import print_contents, print_json
from agent_relay.system.disk.folders import Folders, get_folders

WRITING_LIMIT_S = 1900.0
"""Above what any adapter allows its agent; it is the daemon that gives up."""


def narrative(
    session: Annotated[
        str, typer.Argument(help="Its id, or one end of it; by default the one that runs here.")
    ] = "",
    *,
    focus: Annotated[str, typer.Option("--focus", help="What the document should say most about.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {session, outcome, message, text}.")
    ] = False,
) -> None:
    """Have the agent write a handoff document, in a fork of its session; the next packet takes it along.

    This alone hands nothing over. Ctrl-C cancels it. Also: agent-relay handoff --narrative.
    """
    folders = get_folders()
    chosen = str(choose_running(folders, session)["session"])
    if sys.stderr.isatty():
        sys.stderr.write("The agent writes a handoff document; Ctrl-C cancels.\n")
    answer = _ask(folders, chosen, focus)
    written = answer.get("outcome") == "written"
    if as_json:
        keys = ("outcome", "message", "text")
        print_json({"session": chosen, **{key: answer.get(key, "") for key in keys}})
    elif written:
        print_contents(*str(answer.get("text", "")).splitlines())
    if not written and not as_json:
        raise RelayError(str(answer.get("message", "")))


def _ask(folders: Folders, session: str, focus: str) -> dict[str, object]:
    """Return the daemon's answer; on Ctrl-C cancel the document and raise KeyboardInterrupt again."""
    try:
        with connect_or_start(folders) as connection:
            return connection.request("narrate", limit_s=WRITING_LIMIT_S, session=session, focus=focus)
    except KeyboardInterrupt:
        with connect_or_start(folders) as connection:
            connection.request("narrate.cancel", session=session)
        raise
