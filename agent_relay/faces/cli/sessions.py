"""`agent-relay sessions`: every session of this user, in every repository."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.faces.cli.printing import print_json, print_table, warn
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
    with agent-relay AGENT --from AGENT:ID. What might be one of them and cannot be read is told of; in JSON
    that is `unread`: [{agent, why}].
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
    from agent_relay.faces.cli import sessions_native

    found, unread = sessions_native.list_natives(os.getcwd(), os.environ)
    if as_json:
        rows = sessions_native.build_view(found, datetime.now(UTC))
        print_json({"sessions": rows, "unread": sessions_native.build_unread_view(unread)})
        return
    print_table(
        ("agent", "age", "title", "continue with --from"),
        [sessions_native.list_columns(one) for one in found],
        empty="No agent has a session of its own here" + (" that can be read." if unread else "."),
    )
    for one in unread:
        warn(f"a session of {one.agent}'s is left out: {one.why}")


FUNCTIONS: dict[str, Function] = {"": sessions}
"""For the generated page of commands."""
