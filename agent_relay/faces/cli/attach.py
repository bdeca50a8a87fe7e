"""`agent-relay attach`: this terminal on a session, until its agents are done or the person detaches."""

import os
import sys
from functools import partial

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root, list_index, read_session, read_sessions_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.client.attach import AttachOutcome
    from agent_relay.client.attach_prompt import Waiting
    from agent_relay.client.connection import Connection
    from agent_relay.client.session_loop import Place
    from agent_relay.system.folders import Folders

HELP = """usage: agent-relay attach [SESSION] [--json]

Connect this terminal to a session: the newest one here that has a screen, or the one whose id begins or
ends with SESSION. The screen is repainted exactly; /detach behind the relay key (Ctrl-] unless configured)
leaves again. With --json it is printed where the session is, and nothing is attached.
"""


def run(words: list[str]) -> int:
    """The exit status: the agent's own, 0 after a detach."""
    if "--help" in words or "-h" in words:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    if words and words[0].startswith("-"):
        raise WrongUseError(f"attach does not know {words[0]!r}", hint="See: agent-relay attach --help")
    if len(words) > 1:
        raise WrongUseError("attach takes one session at most", hint="See: agent-relay attach --help")
    folders = get_folders()
    session = _find(folders, words[0] if words else "")
    from agent_relay.client.autostart import connect_or_start

    connection = connect_or_start(folders)
    answer = connection.request("where", session=session)
    if answer.get("headless") is True:
        raise WrongUseError(
            f"session {session} works without a screen",
            hint=f"Wait for its end, or end it: agent-relay stop {session}",
        )
    if as_json:
        from agent_relay.faces.cli.printing import print_json

        print_json({key: value for key, value in answer.items() if key not in {"id", "ok"}})
        return ExitCode.DONE
    return follow(folders, connection, answer)


def follow(folders: "Folders", connection: "Connection", answer: dict[str, object], *, note: str = "") -> int:
    """The exit status once the session `answer` names is over here; see `client.session_loop`.

    `note` is said now, and once more over the agent's screen, which would hide it.
    """
    from agent_relay.client.attach import attach
    from agent_relay.client.autostart import connect_or_start
    from agent_relay.client.daemon_watch import watch_daemon
    from agent_relay.client.relay_key import read_relay_key
    from agent_relay.client.session_loop import SessionLoop
    from agent_relay.faces.cli.relay_prompt import obey

    relay_key = read_relay_key(folders.config)
    reconnect = partial(connect_or_start, folders)

    notes = [note] if note else []

    def show(place: "Place") -> "AttachOutcome":
        def command(text: str) -> "Sequence[str] | Waiting":
            return obey(text, session=place.session, folder=place.folder, connect=reconnect, size=measure())

        line = notes.pop() if notes else ""
        return attach(place.socket, relay_key=relay_key, on_relay_key=command, line=line)

    if note:
        _say(note)
    watch_daemon(folders)
    return SessionLoop(connection, reconnect=reconnect, attach=show, say=_say).run(answer)


def measure() -> tuple[int, int]:
    """Rows and columns of this terminal; 24 by 80 where there is none."""
    for handle in (0, 1, 2):
        try:
            size = os.get_terminal_size(handle)
        except OSError:
            continue
        if size.lines > 0 and size.columns > 0:
            return size.lines, size.columns
    return 24, 80


def _find(folders: "Folders", text: str) -> str:
    """The session's id. Raises WrongUseError where none or several are meant, or it has ended."""
    if not text:
        here = [view for view in read_sessions_at(find_near_root(os.getcwd())) if view["state"] != "ended"]
        if not here:
            raise WrongUseError("no session runs here", hint="Start: agent-relay <agent>")
        with_screen = [view for view in here if view["headless"] is not True]
        return str((with_screen or here)[0]["session"])
    wanted = text.upper()
    found = [(session, root) for session, root in list_index(folders.sessions) if _matches(session, wanted)]
    if len(found) != 1:
        what = "no session is" if not found else f"{len(found)} sessions are"
        raise WrongUseError(f"{what} named {text[:40]!r}", hint="See: agent-relay sessions")
    ((session, root),) = found
    view = read_session(root, session)
    if view["state"] == "ended":
        raise WrongUseError(
            f"session {session} has ended",
            hint=f"Continue it: agent-relay {view['agent'] or '<agent>'} --session {session}",
        )
    return session


def _matches(session: str, wanted: str) -> bool:
    return session.startswith(wanted) or session.endswith(wanted)


def _say(line: str) -> None:
    """One line to the person, on the terminal their agent was on."""
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    stream.write(f"{line}\r\n" if stream.isatty() else f"{line}\n")
    stream.flush()
