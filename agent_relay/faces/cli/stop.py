"""`agent-relay stop`: ask the daemon to end a session and its agent."""

import os
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.printing import print_json, print_lines
from agent_relay.faces.cli.session_word import find_session
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root, read_all_sessions, read_sessions_at


def run(words: list[str]) -> int:
    """The exit status of `agent-relay stop`."""
    return run_one(stop, words, name="stop")


def stop(
    session: Annotated[str, typer.Argument(help="Its id, or the beginning or end of it.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {session, state}.")] = False,
) -> None:
    """End a session: its agent is asked politely, then firmly. Without SESSION, the one that runs here."""
    folders = get_folders()
    if session:
        chosen = find_session(session, read_all_sessions(folders.sessions))
    else:
        here = [view for view in read_sessions_at(find_near_root(os.getcwd())) if view["state"] != "ended"]
        if len(here) != 1:
            found = "no session runs" if not here else f"{len(here)} sessions run"
            raise WrongUseError(f"{found} here", hint="Name one; see: agent-relay sessions")
        chosen = here[0]
    with connect_or_start(folders) as connection:
        answer = connection.request("session.stop", session=chosen["session"])
    if as_json:
        print_json({"session": chosen["session"], "state": answer.get("state", "")})
    else:
        print_lines(f"Session {chosen['session']} is {answer.get('state', 'stopping')}.")


FUNCTIONS: dict[str, Function] = {"": stop}
"""For the generated page of commands."""
