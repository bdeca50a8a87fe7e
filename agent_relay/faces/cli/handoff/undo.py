"""`agent-relay undo-handoff`: give a session back to the agent before its last handoff."""

import os
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.values.project_layout import get_journal_path
from agent_relay.faces.cli.session.lookup import find_newest_here, find_session
from agent_relay.faces.cli.start.agent import run_agent
from agent_relay.faces.cli.start.attach import has_terminal, measure
from agent_relay.faces.cli.start.open_options import OPEN_LIMIT_S
from agent_relay.faces.render.output import get_contents, print_json, print_lines
from agent_relay.store.journal import read_session
from agent_relay.system.disk.folders import get_cwd, get_folders

_LIVE = {"starting", "ready", "busy", "asking"}


def undo_handoff(
    session: Annotated[
        str, typer.Argument(help="Its id, or one end of it; by default the newest here.")
    ] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: where the session is.")] = False,
) -> int:
    """Hand a session back to the agent it was with before its last handoff.

    That agent goes on in its own conversation and reads what was done meanwhile. No work is undone.
    """
    folders = get_folders()
    view = find_session(folders, session) if session else find_newest_here(folders)
    chosen = str(view["session"])
    agent = find_predecessor(str(view["root"]), chosen)
    rows, cols = measure()
    lives = view["state"] in _LIVE
    if not lives and not as_json and has_terminal():
        return run_agent(agent, ["--session", chosen])
    with connect_or_start(folders) as connection:
        if lives:
            answer = connection.request("use", session=chosen, agent=agent)
        else:
            # Behind the relay key the terminal is the attached one, which shows whoever comes.
            fields = {"cwd": get_cwd(), "env": dict(os.environ), "rows": rows, "cols": cols}
            answer = connection.request("open", limit_s=OPEN_LIMIT_S, agent=agent, session=chosen, **fields)
    if as_json:
        print_json(get_contents(answer))
    else:
        print_lines(f"→ Handing session {chosen} back to {agent}.")
    return 0


def find_predecessor(root: str, session: str) -> str:
    """Return the agent before the session's last handoff; raise WrongUseError if there was none."""
    path = get_journal_path(root, session)
    try:
        found = read_session(path)
    except FileNotFoundError:
        found = None
    made = found.done if found is not None else ()
    if not made:
        raise WrongUseError(f"session {session} has had no handoff", hint="See: agent-relay handoff history")
    return made[-1].from_agent
