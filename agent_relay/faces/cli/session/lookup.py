"""Find the session a word of the command line means, among the user's own."""

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.store.session_index import (
    find_near_root,
    list_named,
    list_strangers_at,
    locate,
    read_live_at,
    read_sessions_at,
    read_summary,
)
from agent_relay.system.disk.folders import get_cwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_relay.system.disk.folders import Folders

UNREADABLE = "unreadable"


def find_session(folders: "Folders", text: str) -> dict[str, object]:
    """Return the one session whose id begins or ends with `text`, in short.

    Only its own journal is read. Raises WrongUseError for none or several.
    """
    ids = list_named(folders.sessions)
    if not list_matching(ids, text) and _renew(folders):
        ids = list_named(folders.sessions)
    session = choose_named(ids, text, hint="See: agent-relay sessions")
    return read_summary(locate(folders.sessions, session, near=find_root_here()), session)


def list_matching(ids: "Iterable[str]", text: str) -> list[str]:
    """Return the ids that begin or end with `text`; none for an empty text."""
    wanted = text.upper()
    return [one for one in ids if wanted and (one.startswith(wanted) or one.endswith(wanted))]


def choose_named(ids: "Iterable[str]", text: str, *, hint: str, noun: str = "session") -> str:
    """Return the one id that begins or ends with `text`; raise WrongUseError for none or several."""
    found = list_matching(ids, text)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} {noun}s are" if found else f"no {noun} is"
    raise WrongUseError(f"{what} named {text[:40]!r}", hint=hint)


def find_newest_here(folders: "Folders") -> dict[str, object]:
    """Return the newest session around this folder, in short; raise WrongUseError if there is none."""
    here = read_sessions_at(find_near_root(get_cwd()), folders.sessions)
    if not here:
        raise WrongUseError("there is no session here", hint="See: agent-relay sessions")
    return here[0]


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
