"""`agent-relay stop`: ask the daemon to end a session and its agent."""

from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.cli.session.health import choose_running
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.system.disk.folders import get_folders


def stop(
    session: Annotated[str, typer.Argument(help="Its id, or the beginning or end of it.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {session, state, note}.")] = False,
) -> None:
    """End a session: its agent is asked politely, then firmly. Without SESSION, the one that runs here."""
    folders = get_folders()
    chosen = choose_running(folders, session)
    with connect_or_start(folders) as connection:
        answer = connection.request("session.stop", session=chosen["session"], root=chosen["root"])
    if as_json:
        print_json({key: answer.get(key, "") for key in ("session", "state", "note")})
    elif answer.get("note"):
        print_lines(f"Session {chosen['session']}: {answer['note']}")
    else:
        print_lines(f"Session {chosen['session']} is {answer.get('state', 'stopping')}.")
