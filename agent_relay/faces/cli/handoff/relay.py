"""`agent-relay relay` and `undo-handoff`: hand a session to the next agent, or back to the one before."""

import os
from collections.abc import Mapping
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.values.project_layout import get_journal_path
from agent_relay.faces.cli.handoff.command import WRITING_LIMIT_S
from agent_relay.faces.cli.session.health import choose_running
from agent_relay.faces.cli.session.lookup import find_newest_here, find_root_here, find_session
from agent_relay.faces.cli.start.agent import run_agent
from agent_relay.faces.cli.start.attach import has_terminal, measure
from agent_relay.faces.cli.start.open_options import OPEN_LIMIT_S
from agent_relay.faces.render.output import get_contents, print_json, print_lines
from agent_relay.store.journal import read_session
from agent_relay.system.disk.folders import get_cwd, get_folders

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
