"""`agent-relay stop`: ask the daemon to end a session and its agent."""

from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.faces.cli.session.health import choose_live
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.cli.typer_runner import Function, run_one
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.system.disk.folders import get_folders


def run(words: list[str]) -> int:
    """Run `agent-relay stop`; return its exit status."""
    return run_one(stop, words, name="stop")


def stop(
    session: Annotated[str, typer.Argument(help="Its id, or the beginning or end of it.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {session, state, note}.")] = False,
) -> None:
    """End a session: its agent is asked politely, then firmly. Without SESSION, the one that runs here."""
    folders = get_folders()
    chosen = find_session(folders, session) if session else choose_live(folders)
    with connect_or_start(folders) as connection:
        answer = connection.request("session.stop", session=chosen["session"], root=chosen["root"])
    if as_json:
        print_json({key: answer.get(key, "") for key in ("session", "state", "note")})
    elif answer.get("note"):
        print_lines(f"Session {chosen['session']}: {answer['note']}")
    else:
        print_lines(f"Session {chosen['session']} is {answer.get('state', 'stopping')}.")


FUNCTIONS: dict[str, Function] = {"": stop}
"""For the generated page of commands."""
