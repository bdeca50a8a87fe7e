"""`agent-relay attach`: show a session on this terminal, until it ends or the person detaches."""

import os
import sys

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.domain.text.names import continue_command
from agent_relay.faces.cli.options import OptionParser
from agent_relay.faces.cli.session.lookup import UNREADABLE, find_root_here, find_session, list_live_here
from agent_relay.system.disk.folders import get_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.attach.held_terminal import HeldTerminal
    from agent_relay.client.attach.loop import AttachOutcome
    from agent_relay.client.attach.prompt import PendingAnswer
    from agent_relay.client.attach.session_loop import SessionPlace
    from agent_relay.client.connection import Connection
    from agent_relay.system.disk.folders import Folders


# What the relay key, a line behind it, an error or the session's end may need.
_LATER = (
    "agent_relay.client.pending_answers",
    "agent_relay.client.attach.prompt_input",
    "agent_relay.client.attach.rest_screen",
    "agent_relay.client.attach.rest_status",
    "agent_relay.faces.cli.session.relay_prompt",
    "agent_relay.domain.text.hints",
    "agent_relay.faces.render.output",
    "agent_relay.faces.cli.options",
    "agent_relay.terminal.query_answers",
    "agent_relay.terminal.bar_row",
    "agent_relay.terminal.keystrokes",
    "agent_relay.terminal.typed_line",
    "agent_relay.domain.moments",
    "agent_relay.domain.text.plain",
    "agent_relay.system.crash_reports",
    "datetime",
    "json",
    "shlex",
    "signal",
    "subprocess",
)
HELP = """usage: agent-relay attach [SESSION] [--json]

Connect this terminal to a session: the newest one here that has a screen, or the one whose id begins or
ends with SESSION. The screen is repainted exactly; to leave again, press the relay key (Ctrl-] unless
configured) and type /detach. --json prints where the session is instead.
It needs a terminal; in a script or a pipe, use: agent-relay run
"""


def run_attach(words: list[str]) -> int:
    """Run `agent-relay attach`; return 0 after a detach, 1 if the agent failed, 3 if none can go on."""
    found = OptionParser("attach", flags=("--json",), most=1).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    folders = get_folders()
    session = _find(folders, found.arguments[0] if found.arguments else "")
    from agent_relay.client.autostart import connect_or_start

    connection = connect_or_start(folders)
    answer = connection.request("where", session=session, root=find_root_here())
    if answer.get("headless") is True:
        raise WrongUseError(
            f"session {session} works without a screen",
            hint=f"Wait for its end, or end it: agent-relay stop {session}",
        )
    if "--json" in found.flags:
        from agent_relay.faces.render.output import get_contents, print_json

        print_json(get_contents(answer))
        return ExitCode.DONE
    require_terminal("attach", "AGENT")
    return follow(folders, connection, answer)


def has_terminal() -> bool:
    """Return whether standard input and output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def require_terminal(doing: str, agent: str) -> None:
    """Raise WrongUseError, naming `run`, unless standard input and output are terminals."""
    if not has_terminal():
        raise WrongUseError(
            f"cannot {doing}: input and output must be a terminal",
            hint=f"In a script or a pipe: agent-relay run {agent} TASK",
        )


def load_screen() -> None:
    """Load what `follow` needs to show the agent's screen on this terminal."""
    import agent_relay.client.attach.held_terminal
    import agent_relay.client.attach.loop
    import agent_relay.client.attach.session_loop
    import agent_relay.client.keepalive  # noqa: F401 - loaded, and used by `follow`


def follow(folders: "Folders", connection: "Connection", answer: dict[str, object]) -> int:
    """Show the session that `answer` names, until it is over here; return the exit status.

    The answer's note is printed now, and once more over the agent's screen, which would hide it.
    """
    from agent_relay.client.attach.held_terminal import HeldTerminal
    from agent_relay.client.attach.prompt import read_relay_key
    from agent_relay.client.attach.session_loop import SessionLoop
    from agent_relay.client.attach.tty import read_modes
    from agent_relay.client.autostart import connect_or_start
    from agent_relay.client.keepalive import bring_environment, watch_daemon

    relay_key, modes = read_relay_key(folders.config), read_modes()
    session = str(answer.get("session") or "")

    def greet(found: "Connection") -> None:
        bring_environment(found, session, size=measure())

    def reconnect() -> "Connection":
        found = connect_or_start(folders)
        if found.pid != connection.pid:
            greet(found)
        return found

    notes = [str(answer["note"])] if answer.get("note") else []

    def obey(place: "SessionPlace", text: str) -> "Sequence[str] | PendingAnswer":
        from agent_relay.faces.cli.session.relay_prompt import PromptContext, run_prompt_line

        context = PromptContext(place.session, place.folder, reconnect, size=measure(), modes=modes)
        return run_prompt_line(text, context)

    def show(place: "SessionPlace") -> "AttachOutcome":
        line = _render_note(notes.pop(), place.session, relay_key) if notes else ""
        return held.attach(
            place.socket, on_relay_key=lambda text: obey(place, text), line=line, rests=place.rests
        )

    for note in notes:
        _say(note)
    watch_daemon(folders, greet, later=_LATER)
    with HeldTerminal(lambda: _hold_back(reconnect(), session), relay_key=relay_key) as held:
        rest = _build_rest(folders, reconnect, notes, relay_key=relay_key, obey=obey, held=held)
        loop = SessionLoop(connection, reconnect=reconnect, attach=show, say=_say, held=held, rest=rest)
        return loop.run(answer)


def _build_rest(
    folders: "Folders",
    reconnect: "Callable[[], Connection]",
    notes: list[str],
    *,
    relay_key: int,
    obey: "Callable[[SessionPlace, str], Sequence[str] | PendingAnswer]",
    held: "HeldTerminal",
) -> "Callable[[SessionPlace], tuple[str, str]] | None":
    """Return what shows a person that every agent rests; `None` if there is no terminal.

    Lines typed at the relay prompt go to `obey`, and what is typed for the next agent is `held`. A person
    who wants to see the agent's screen instead is told in `notes` how to come back.
    """
    if not has_terminal():
        return None

    def agree_always() -> None:
        from agent_relay.system.config_file import write_resume

        write_resume(folders.config)

    def rest(place: "SessionPlace") -> tuple[str, str]:
        from agent_relay.client.attach.rest_screen import show_rest
        from agent_relay.client.attach.session_loop import SHOW_SCREEN

        how, line = show_rest(
            place,
            held=held,
            reconnect=reconnect,
            agree_always=agree_always,
            relay_key=relay_key,
            on_relay_key=lambda text: obey(place, text),
        )
        if how == SHOW_SCREEN:
            back = f"press the relay key and type /detach, then agent-relay attach {place.session}"
            notes.append(f"Every agent rests; keys go to {place.agent}. To choose what follows, {back}")
        return how, line

    return rest


def _hold_back(connection: "Connection", session: str) -> str:
    """Ask the daemon to hold the switch of agents back; return its message to the person."""
    try:
        return str(connection.request("session.hold_back", session=session).get("message") or "")
    finally:
        connection.close()


def _render_note(note: str, session: str, relay_key: int) -> str:
    # Loaded where something is said: attaching must not pay for it.
    from agent_relay.domain.names import name_relay_key
    from agent_relay.domain.text.hints import render_over_screen

    return render_over_screen(note, session, key=name_relay_key(relay_key))


def measure() -> tuple[int, int]:
    """Return the rows and columns of this terminal; 24 and 80 if there is none."""
    for handle in (0, 1, 2):
        try:
            size = os.get_terminal_size(handle)
        except OSError:
            continue
        if size.lines > 0 and size.columns > 0:
            return size.lines, size.columns
    return 24, 80


def _find(folders: "Folders", text: str) -> str:
    """Return the id of the session meant; without `text` the newest here, if possible one with a screen.

    Raises WrongUseError if none or several are meant, or it has ended.
    """
    if not text:
        here = [view for view in list_live_here(folders) if view["state"] != UNREADABLE]
        if not here:
            raise WrongUseError("no session is running here", hint="Start: agent-relay <agent>")
        with_screen = [view for view in here if view["headless"] is not True]
        return str((with_screen or here)[0]["session"])
    view = find_session(folders, text)
    session = str(view["session"])
    if view["state"] == "ended":
        raise WrongUseError(
            f"session {session} has ended",
            hint=f"Continue it: {continue_command(str(view['agent'] or '<agent>'), session)}",
        )
    return session


def _say(line: str) -> None:
    """Print one line to the person, on the terminal their agent was on."""
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    # Loaded where something is said: attaching must not pay for it.
    from agent_relay.faces.render.output import render_plain

    shown = render_plain(line)
    stream.write(f"{shown}\r\n" if stream.isatty() else f"{shown}\n")
    stream.flush()
