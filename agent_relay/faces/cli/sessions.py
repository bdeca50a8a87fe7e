"""`agent-relay sessions`: every session of this user, in every repository."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.printing import print_json, print_table
from agent_relay.faces.cli.sessions_native import build_view, list_natives
from agent_relay.faces.cli.sessions_native import list_columns as list_native_columns
from agent_relay.faces.cli.status import list_columns
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import read_all_sessions


def run(words: list[str]) -> int:
    """The exit status of `agent-relay sessions`."""
    return run_one(sessions, words, name="sessions")


def sessions(
    *,
    native: Annotated[
        bool, typer.Option("--native", help="Those agents keep themselves in this folder, for --from.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {sessions: [...]}.")] = False,
) -> None:
    """Every session, in every repository, newest change first.

    With --native, the sessions agents keep themselves in this folder and relay has no part in: continue one
    with agent-relay AGENT --from AGENT:ID.
    """
    if native:
        _print_native(as_json=as_json)
        return
    found = read_all_sessions(get_folders().sessions)
    if as_json:
        print_json({"sessions": found})
        return
    rows = [[*list_columns(view), str(view["root"])] for view in found]
    print_table(
        ("state", "agent", "since", "session", "about", "where"), rows, empty="There are no sessions."
    )


def _print_native(*, as_json: bool) -> None:
    found = list_natives(os.getcwd(), os.environ)
    if as_json:
        print_json({"sessions": build_view(found, datetime.now(UTC))})
        return
    print_table(
        ("agent", "age", "title", "continue with --from"),
        [list_native_columns(one) for one in found],
        empty="No agent has a session of its own here.",
    )


def find_session(text: str, views: list[dict[str, object]]) -> dict[str, object]:
    """The one session whose id begins or ends with `text`. Raises WrongUseError for none or several."""
    wanted = text.upper()
    found = [view for view in views if wanted and _matches(str(view["session"]), wanted)]
    if len(found) == 1:
        return found[0]
    what = "no session is" if not found else f"{len(found)} sessions are"
    raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay sessions")


def _matches(session: str, wanted: str) -> bool:
    return session.startswith(wanted) or session.endswith(wanted)


FUNCTIONS: dict[str, Function] = {"": sessions}
"""For the generated page of commands."""
