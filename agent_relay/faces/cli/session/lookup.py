"""Find the session a word of the command line means, among the user's own."""

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.store.session_index import list_named
from agent_relay.store.session_summaries import (
    find_near_root,
    list_strangers_at,
    locate,
    read_live_at,
    read_summary,
)
from agent_relay.system.disk.folders import get_cwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.system.disk.folders import Folders

UNREADABLE = "unreadable"


def find_session(folders: "Folders", text: str) -> dict[str, object]:
    """Return the one session whose id begins or ends with `text`, in short.

    Only its own journal is read. Raises WrongUseError for none or several.
    """
    wanted = text.upper()
    found = _list_matching(folders, wanted)
    if not found and _renew(folders):
        found = _list_matching(folders, wanted)
    if len(found) == 1:
        return read_summary(locate(folders.sessions, found[0], near=find_root_here()), found[0])
    what = "no session is" if not found else f"{len(found)} sessions are"
    raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay sessions")


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


def _list_matching(folders: "Folders", wanted: str) -> list[str]:
    named = list_named(folders.sessions) if wanted else []
    return [session for session in named if session.startswith(wanted) or session.endswith(wanted)]
