"""Find the session a word of the command line means, among the user's own, and tell which can go on.

A session whose journal cannot be read cannot go on, unless the daemon has it at work; `list_damaged` and
`put_aside` are for `agent-relay doctor`. Hot: what reads journals and asks the daemon is imported late.
"""

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.store.session_index import (
    find_near_root,
    list_named,
    list_strangers_at,
    list_unended,
    locate,
    read_live_at,
    read_sessions_at,
    read_summary,
)
from agent_relay.system.disk.folders import get_cwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_relay.system.disk.folders import Folders

UNREADABLE = "unreadable"


def find_session(folders: "Folders", text: str) -> dict[str, object]:
    """Return the one session whose id begins or ends with `text`, in short.

    Only its own journal is read. Raises WrongUseError for none or several.
    """
    ids = list_named(folders.sessions)
    if not list_matching(ids, text) and _renew(folders):
        ids = list_named(folders.sessions)
    session = choose_id(ids, text, hint="See: agent-relay sessions")
    return read_summary(locate(folders.sessions, session, near=find_root_here()), session)


def list_matching(ids: "Iterable[str]", text: str) -> list[str]:
    """Return the ids that begin or end with `text`; none for an empty text."""
    wanted = text.upper()
    return [one for one in ids if wanted and (one.startswith(wanted) or one.endswith(wanted))]


def choose_id(ids: "Iterable[str]", text: str, *, hint: str, noun: str = "session") -> str:
    """Return the one id that begins or ends with `text`; raise WrongUseError for none or several."""
    found = list_matching(ids, text)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} {noun}s have an id that begins or ends with" if found else f"no {noun} has the id"
    raise WrongUseError(f"{what} {text[:40]!r}", hint=hint)


def find_newest_here(folders: "Folders") -> dict[str, object]:
    """Return the newest session around this folder, in short; raise WrongUseError if there is none."""
    here = read_sessions_at(find_near_root(get_cwd()), folders.sessions)
    if not here:
        raise WrongUseError("there is no session here", hint="See: agent-relay sessions")
    return here[0]


def choose_here(folders: "Folders", text: str) -> dict[str, object]:
    """Return the session whose id begins or ends with `text`, else the newest around this folder, in short.

    Raises WrongUseError for none or several.
    """
    return find_session(folders, text) if text else find_newest_here(folders)


def find_root_here() -> str:
    """Return the root around the working folder; empty if that is gone, as a named session needs none."""
    try:
        return find_near_root(get_cwd())
    except RelayError:
        return ""


def list_live_here(folders: "Folders") -> list[dict[str, object]]:
    """Return the user's sessions around this folder that have not ended, newest change first."""
    root = find_near_root(get_cwd())
    list_strangers(folders, root)
    return read_live_at(root, folders.sessions)


def list_strangers(folders: "Folders", root: str) -> list[str]:
    """Return the sessions that came with the folder `root` and are not the user's.

    If there are any, the daemon is first asked to index the sessions it has at work, which may be among
    them.
    """
    found = list_strangers_at(root, folders.sessions)
    return list_strangers_at(root, folders.sessions) if found and _renew(folders) else found


def _renew(folders: "Folders") -> bool:
    from agent_relay.client.autostart import renew_index

    return renew_index(folders)


def list_damaged(folders: "Folders", near: str) -> "Iterator[tuple[str, str]]":
    """Yield (session, why) for the user's sessions that have not ended and cannot go on."""
    from agent_relay.store.journal import find_damage

    for session in list_unended(folders.sessions):
        root = locate(folders.sessions, session, near=near)
        why = find_damage(root, session) if root else ""
        if why:
            yield session, why


def put_aside(folders: "Folders", text: str, near: str) -> tuple[str, str]:
    """Put the session meant aside; return its id and the folder that holds it now.

    Raises WrongUseError for none, several or one at work.
    """
    from agent_relay.store.journal import set_aside

    ids = {*list_named(folders.sessions), *list_strangers_at(near, folders.sessions)}
    session = choose_id(ids, text, hint="See: agent-relay doctor")
    if session in list_at_work(folders):
        raise WrongUseError(f"session {session} is at work", hint=f"End it first: agent-relay stop {session}")
    root = locate(folders.sessions, session, near=near) or near
    return session, set_aside(folders.sessions, session, root=root)


def list_at_work(folders: "Folders") -> set[str]:
    """Return the sessions the daemon has at work; none if no daemon answers."""
    from agent_relay.client.connection import Connection

    try:
        with Connection.open(folders) as connection:
            sessions = connection.request("session.list").get("sessions")
    except RelayError:
        return set()
    rows = sessions if isinstance(sessions, list) else []
    return {str(row.get("session")) for row in rows if isinstance(row, dict)}


def choose_running(folders: "Folders", text: str) -> dict[str, object]:
    """Return the session whose id begins or ends with `text`, else the one that runs here, in short.

    Warns of those here whose journal cannot be read. Raises WrongUseError if none or several are meant,
    RelayError if none of those here can be read.
    """
    if text:
        return find_session(folders, text)
    from agent_relay.store.journal import find_damage

    here = list_live_here(folders)
    damaged = {str(view["session"]): find_damage(str(view["root"]), str(view["session"])) for view in here}
    at_work = list_at_work(folders) if any(damaged.values()) else set[str]()
    lost = {session: why for session, why in damaged.items() if why and session not in at_work}
    running = [view for view in here if view["session"] not in lost]
    if not running and lost:
        why = next(iter(lost.values()))
        raise RelayError(f"the session here cannot go on: {why}", hint="See: agent-relay doctor")
    if len(running) != 1:
        found = "no session is running" if not running else f"{len(running)} sessions are running"
        raise WrongUseError(f"{found} here", hint="Name one; see: agent-relay sessions")
    if lost:
        from agent_relay.faces.render.output import warn

        for session, why in lost.items():
            warn(f"session {session} is left out: {why}; see: agent-relay doctor")
    return running[0]
