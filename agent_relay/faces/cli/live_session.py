"""The one session that runs here, for commands without a name; a damaged one hinders no other."""

from collections.abc import Iterator

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.cli.damaged_sessions import list_at_work
from agent_relay.faces.cli.printing import warn
from agent_relay.faces.cli.session_word import list_live_here
from agent_relay.system.folders import Folders
from agent_relay.system.set_aside import find_damage


def choose_live(folders: Folders) -> dict[str, object]:
    """The one session that runs here, in short; those whose journal cannot be read are warned of.

    Raises WrongUseError where none or several run, RelayError where all there is cannot be read.
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
    """(session, why) of those nobody can go on with; what the daemon has at work goes on all the same."""
    at_work: set[str] | None = None
    for view in views:
        session = str(view["session"])
        why = find_damage(str(view["root"]), session)
        if not why:
            continue
        at_work = list_at_work(folders) if at_work is None else at_work
        if session not in at_work:
            yield session, why
