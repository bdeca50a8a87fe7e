"""Sessions whose journal nobody can read, for `agent-relay doctor`: named, and put aside when asked."""

from collections.abc import Iterator

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.system.folders import Folders
from agent_relay.system.glances import list_strangers_at, locate
from agent_relay.system.session_index import list_named, list_unended
from agent_relay.system.set_aside import find_damage, set_aside


def list_damaged(folders: Folders, near: str) -> Iterator[tuple[str, str]]:
    """(session, why) of the user's sessions that have not ended and that nobody can go on with."""
    for session in list_unended(folders.sessions):
        root = locate(folders.sessions, session, near=near)
        why = find_damage(root, session) if root else ""
        if why:
            yield session, why


def put_aside(folders: Folders, text: str, near: str) -> tuple[str, str]:
    """The session meant and the folder it is now. Raises WrongUseError for none, several or one at work."""
    wanted = text.upper()
    names = {*list_named(folders.sessions), *list_strangers_at(near, folders.sessions)}
    found = [name for name in names if wanted and (name.startswith(wanted) or name.endswith(wanted))]
    if len(found) != 1:
        what = f"{len(found)} sessions are" if found else "no session is"
        raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay doctor")
    (session,) = found
    if session in list_at_work(folders):
        raise WrongUseError(f"session {session} is at work", hint=f"End it first: agent-relay stop {session}")
    root = locate(folders.sessions, session, near=near) or near
    return session, set_aside(folders.sessions, session, root=root)


def list_at_work(folders: Folders) -> set[str]:
    """The sessions the daemon has at work, whatever became of their journals; none without a daemon."""
    try:
        with Connection.open(folders) as connection:
            told = connection.request("session.list").get("sessions")
    except RelayError:
        return set()
    rows = told if isinstance(told, list) else []
    return {str(row.get("session")) for row in rows if isinstance(row, dict)}
