"""`agent-relay sessions`, `stop` and `take-over`: list sessions, end one, take over a working tree."""

import os
import shlex
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.client.autostart import ask_daemon
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.moments import render_age
from agent_relay.faces.cli.session.lookup import choose_running, find_root_here, list_matching, list_strangers
from agent_relay.faces.cli.session.status import HEADERS, list_columns, render_strangers
from agent_relay.faces.render.output import plain, print_either, print_json, print_lines, print_table, warn
from agent_relay.store.project import secure_session
from agent_relay.store.session_index import (
    find_near_root,
    find_root,
    read_all_sessions,
    read_summary,
    write_entry,
)
from agent_relay.system.disk.folders import get_cwd, get_folders


def sessions(
    *,
    native: Annotated[
        bool, typer.Option("--native", help="Those agents keep themselves in this folder, for --from.")
    ] = False,
    claim: Annotated[
        str, typer.Option("--claim", help="Take a session that came with this folder for yours: its id.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {sessions: [...]}.")] = False,
) -> None:
    """Every session, in every repository, newest change first.

    With --native, the sessions agents keep themselves in this folder and relay has no part in: continue one
    with agent-relay AGENT --from AGENT:ID. Those that cannot be read are listed too; in JSON
    that is `unread`: [{agent, why}].

    A session is yours where you began it or imported its packet. One that came with a folder, as with a
    clone, a copy or a backup, is left alone until you take it with --claim: its journal cannot be trusted.
    """
    if claim:
        _claim(claim, as_json=as_json)
        return
    if native:
        _print_native(as_json=as_json)
        return
    folders = get_folders()
    strangers = list_strangers(folders, find_root_here())
    found = read_all_sessions(folders.sessions)
    if as_json:
        print_json({"sessions": found})
        return
    rows = [[*list_columns(view), str(view["root"])] for view in found]
    print_table((*HEADERS, "where"), rows, empty="There are no sessions.")
    print_lines(*render_strangers(strangers, folders.sessions))


def _claim(text: str, *, as_json: bool) -> None:
    """Make the session that came with this folder the user's; raise WrongUseError if there is none."""
    folders, root = get_folders(), find_near_root(get_cwd())
    named = list_matching(list_strangers(folders, root), text)
    if len(named) != 1:
        what = f"{len(named)} sessions" if named else "no session"
        sentence = f"{what} with the id {text[:40]!r} came with {root}"
        raise WrongUseError(sentence, hint="See: agent-relay status")
    (session,) = named
    known = find_root(folders.sessions, session)
    if known:
        raise WrongUseError(
            f"session {session} is in {known}, so its copy in {root} cannot be claimed",
            hint=f"Go on with it there: cd {shlex.quote(known)}",
        )
    secure_session(root, session)
    view = read_summary(root, session)
    write_entry(folders.sessions, session, root=root, cwd=root)
    told = f"Session {session} is yours now. See: agent-relay status --all"
    print_either({"session": session, "root": root, "state": view["state"]}, told, as_json=as_json)


def _print_native(*, as_json: bool) -> None:
    from agent_relay.faces.cli.session import native_sessions

    found, unread = native_sessions.list_natives(get_cwd(), os.environ)
    if as_json:
        rows = [native_sessions.build_row(one, datetime.now(UTC)) for one in found]
        print_json(
            {"sessions": rows, "unread": [{"agent": agent, "why": plain(why)} for agent, why in unread]}
        )
        return
    print_table(
        ("agent", "age", "title", "continue with --from"),
        [
            [
                one.agent,
                render_age(one.changed_at, datetime.now(UTC)),
                one.title or "-",
                one.word,
            ]
            for one in found
        ],
        empty="No agent has a session of its own here" + (" that can be read." if unread else "."),
    )
    for agent, why in unread:
        warn(f"a session of {agent}'s is left out: {why}")


def stop(
    session: Annotated[str, typer.Argument(help="Its id, or its beginning or end.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {session, state, note}.")] = False,
) -> None:
    """End a session: its agent is asked politely, then firmly. Without SESSION, the one that runs here."""
    folders = get_folders()
    chosen = choose_running(folders, session)
    answer = ask_daemon(folders, "session.stop", session=chosen["session"], root=chosen["root"])
    note = answer.get("note")
    told = f": {note}" if note else f" is {answer.get('state', 'stopping')}."
    view = {key: answer.get(key, "") for key in ("session", "state", "note")}
    print_either(view, f"Session {chosen['session']}{told}", as_json=as_json)


def take_over(*, as_json: Annotated[bool, typer.Option("--json", help="As JSON: {root}.")] = False) -> None:
    """Work here although another machine or container did; only if its agents are gone for good."""
    root = ask_daemon(get_folders(), "tree.take", cwd=get_cwd()).get("root", "")
    print_either({"root": root}, f"The working tree {root} is yours.", as_json=as_json)
