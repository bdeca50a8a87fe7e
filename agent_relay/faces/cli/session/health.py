"""Tell sessions that can go on from those whose journal cannot be read.

`choose_live` finds the one session that runs here and skips damaged ones. `list_damaged` and `put_aside` are
for `agent-relay doctor`: it names damaged sessions, and puts them aside on request. A session that the
daemon has at work goes on, whatever became of its journal.
"""

from collections.abc import Iterator

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.cli.session.lookup import choose_named, find_session, list_live_here
from agent_relay.faces.render.output import warn
from agent_relay.store.journal import find_damage, set_aside
from agent_relay.store.session_index import list_named, list_strangers_at, list_unended, locate
from agent_relay.system.disk.folders import Folders


def list_damaged(folders: Folders, near: str) -> Iterator[tuple[str, str]]:
    """Yield (session, why) for the user's sessions that have not ended and cannot go on."""
    for session in list_unended(folders.sessions):
        root = locate(folders.sessions, session, near=near)
        why = find_damage(root, session) if root else ""
        if why:
            yield session, why


def put_aside(folders: Folders, text: str, near: str) -> tuple[str, str]:
    """Put the session meant aside; return its id and the folder that holds it now.

    Raises WrongUseError for none, several or one at work.
    """
    names = {*list_named(folders.sessions), *list_strangers_at(near, folders.sessions)}
    session = choose_named(names, text, hint="See: agent-relay doctor")
    if session in list_at_work(folders):
        raise WrongUseError(f"session {session} is at work", hint=f"End it first: agent-relay stop {session}")
    root = locate(folders.sessions, session, near=near) or near
    return session, set_aside(folders.sessions, session, root=root)


def list_at_work(folders: Folders) -> set[str]:
    """Return the sessions the daemon has at work, whatever became of their journals.

    It is empty if no daemon answers.
    """
    try:
        with Connection.open(folders) as connection:
            sessions = connection.request("session.list").get("sessions")
    except RelayError:
        return set()
    rows = sessions if isinstance(sessions, list) else []
    return {str(row.get("session")) for row in rows if isinstance(row, dict)}


def choose_running(folders: Folders, session: str) -> dict[str, object]:
    """Return the session named, else the one that runs here, in short; raise as those look-ups do."""
    return find_session(folders, session) if session else choose_live(folders)


def choose_live(folders: Folders) -> dict[str, object]:
    """Return the one session that runs here, in short; warn of those whose journal cannot be read.

    Raises WrongUseError if none or several run, RelayError if none of them can be read.
    """
    here = list_live_here(folders)
    damaged = dict(_list_damaged(folders, here))
    running = [view for view in here if view["session"] not in damaged]
    if not running and damaged:
        why = next(iter(damaged.values()))
        raise RelayError(f"the session here cannot go on: {why}", hint="See: agent-relay doctor")
    if len(running) != 1:
        found = "no session is running" if not running else f"{len(running)} sessions are running"
        raise WrongUseError(f"{found} here", hint="Name one; see: agent-relay sessions")
    for session, why in damaged.items():
        warn(f"session {session} is left out: {why}; see: agent-relay doctor")
    return running[0]


def _list_damaged(folders: Folders, views: list[dict[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield (session, why) for those of `views` that cannot go on; none that the daemon has at work."""
    at_work: set[str] | None = None
    for view in views:
        session = str(view["session"])
        why = find_damage(str(view["root"]), session)
        if not why:
            continue
        at_work = list_at_work(folders) if at_work is None else at_work
        if session not in at_work:
            yield session, why
