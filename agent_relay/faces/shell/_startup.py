"""Put a shell together: its files, its turns, its prompt, and what it prints first."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Callable
from functools import partial

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_relay.client.connection import Connection
from agent_relay.client.keepalive import watch_daemon
from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.cli.agents import build_view
from agent_relay.faces.cli.session.attach import measure
from agent_relay.faces.render.output import is_fancy
from agent_relay.faces.render.turn_view import TurnView
from agent_relay.faces.shell._app import Shell, ShellTerminal
from agent_relay.faces.shell._commands import NO_AGENT
from agent_relay.faces.shell._conversation import (
    Conversation,
    SessionLock,
    find_last,
    find_under_way,
    render_offer,
)
from agent_relay.faces.shell._prompt import PastingInput, TypedHistory
from agent_relay.faces.shell._status_line import watch_usage
from agent_relay.faces.shell._terminal import Modes, Scrollback
from agent_relay.redact.text import redact_text
from agent_relay.store.session_index import find_near_root
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.files import write_atomic
from agent_relay.system.disk.folders import Folders, ensure_private

_FIRST = (
    "One agent works; when it hits its limit, the next takes over.",
    "Type a message and Enter; what you type while it works is sent after its turn.",
    "/use AGENT hands over, /attach opens its own screen, /status shows its state.",
    "Ctrl-C stops a turn. Ctrl-D leaves; a running turn goes on: /resume shows it.",
    "/help lists the rest. (Shown only the first time.)",
)


async def run_shell(folders: Folders, cwd: str, modes: Modes, *, first: str = "", ahead: int = 0) -> int:
    """Run a shell in `cwd` that begins with the line `first`, empty for none; return the exit status.

    `ahead` is how many bytes were typed before `modes` took the terminal over.
    """
    ensure_private(folders.state)
    own = ensure_private(f"{folders.state}/shell")
    root = find_near_root(cwd)
    # Of one working tree: unsent messages, and locks of sessions that are open in a shell.
    kept = ensure_private(f"{own}/{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}")
    shell = _build(folders, cwd, modes, own=own, kept=kept, ahead=ahead)
    shell.say(*greet(own, shell.conversation.agent))
    left = shell.take_over_messages(kept)
    if left:
        shell.say(f"{render_count(left, 'unsent message')} from an earlier shell: Enter sends, Up edits.")
    running = find_under_way(root, folders.sessions)
    if running and not first:
        shell.say(f"A turn of session {running} is running here. See it: /resume {running[-6:]}")
    elif not left and not first:
        _offer_last(shell, folders, root)
    watch_daemon(folders)
    watch_usage(
        partial(Connection.open, folders), is_working=lambda: shell.turns.is_working, tell=shell.take_windows
    )
    return await shell.run(first)


def greet(folder: str, agent: str) -> tuple[str, ...]:
    """Return the lines to begin with; a file in `folder` records that the introduction was shown."""
    known = f"your next message goes to {agent}" if agent else f"no agent is installed here. {NO_AGENT}"
    line = f"agent-relay: {known}. /help lists the commands."
    mark = os.path.join(folder, "welcomed")
    if os.path.exists(mark):
        return (line,)
    try:
        write_atomic(mark, b"", durable=False)
    except RelayError:
        return (line,)
    return (*_FIRST, line)


def _offer_last(shell: Shell, folders: Folders, root: str) -> None:
    """Offer to resume the last session here with Enter on the first line, if it can be resumed."""
    lock = shell.conversation.lock
    last = find_last(root, folders.sessions, lock) if lock is not None else None
    if last is not None:
        shell.say(render_offer(last))
        shell.offer(str(last["session"]))


def _build(folders: Folders, cwd: str, modes: Modes, *, own: str, kept: str, ahead: int) -> Shell:
    scrollback = Scrollback(asyncio.get_running_loop())
    depth = None if is_fancy() else ColorDepth.DEPTH_1_BIT
    # Without questions to the terminal: its late answers would be keys of whatever runs next.
    output = Vt100_Output(
        sys.stdout, _get_size, term=os.environ.get("TERM"), default_color_depth=depth, enable_cpr=False
    )
    view = TurnView(
        scrollback.write, columns=lambda: measure()[1], is_colour=is_fancy(), folder=cwd, work=scrollback.work
    )
    return Shell(
        folders,
        Conversation(cwd, agent=_choose_agent(cwd), lock=SessionLock(kept)),
        ShellTerminal(scrollback, modes, PastingInput(sys.stdin, ahead=ahead), output),
        history=TypedHistory(f"{own}/history", _build_redact(find_near_root(cwd), cwd)),
        queue_path=f"{kept}/{os.getpid()}-{os.urandom(4).hex()}.json",
        view=view,
    )


def _choose_agent(cwd: str) -> str:
    """Return the first agent of the order that is installed and does not rest; the first one if all rest."""
    rows = [row for row in build_view(cwd, os.environ) if row["place"] is not None and row["program"]]
    free = [row for row in rows if not row["resting"]]
    return str((free or rows)[0]["name"]) if rows else ""


def _build_redact(root: str, cwd: str) -> Callable[[str], str]:
    """Build what removes secrets from a text, those of the user's environment included."""
    known: list[frozenset[str]] = []

    def redact(text: str) -> str:
        if not known:
            known.append(gather_secrets(root, os.environ, cwd=cwd))
        return redact_text(text, known=known[0]).text

    return redact


def _get_size() -> Size:
    rows, columns = measure()
    return Size(rows, columns)
