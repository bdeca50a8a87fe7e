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

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection
from agent_relay.client.keepalive import watch_daemon
from agent_relay.domain.text.counts import render_count
from agent_relay.faces.cli.roster.agents import build_view
from agent_relay.faces.cli.start.attach import measure
from agent_relay.faces.render.output import is_fancy
from agent_relay.faces.render.turn_view import open_turn_view
from agent_relay.faces.shell._app import Shell, ShellTerminal
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._greeting import greet
from agent_relay.faces.shell._history import TypedHistory
from agent_relay.faces.shell._prompt import PastingInput, ShellPrompt
from agent_relay.faces.shell._resumable_sessions import find_last, find_under_way, render_offer
from agent_relay.faces.shell._scrollback import Scrollback
from agent_relay.faces.shell._session_lock import SessionLock
from agent_relay.faces.shell._status_line import watch_usage
from agent_relay.faces.shell._terminal_modes import Modes
from agent_relay.faces.shell.commands.completion import ShellCompleter
from agent_relay.faces.shell.turns.agent_switch import PreferredReturn
from agent_relay.faces.shell.turns.message_queue import MessageQueue
from agent_relay.faces.shell.turns.runner import Turns
from agent_relay.faces.shell.turns.session_release import free_session
from agent_relay.redact.text import redact_text
from agent_relay.store.session_summaries import find_near_root
from agent_relay.system.config.config_file import ReloadingConfig
from agent_relay.system.config.secrets import gather_secrets
from agent_relay.system.disk.folders import Folders, ensure_private


async def run_shell(folders: Folders, cwd: str, modes: Modes, *, first: str = "") -> int:
    """Run a shell in `cwd` that begins with the line `first`, empty for none; return the exit status."""
    ensure_private(folders.state)
    own = ensure_private(f"{folders.state}/shell")
    root = find_near_root(cwd)
    shell, typed = _build(folders, cwd, modes, queue=_name_queue(own, root))
    history = TypedHistory(f"{own}/history", _build_redact(root, cwd))
    depth = None if is_fancy() else ColorDepth.DEPTH_1_BIT
    # Without questions to the terminal: its late answers would be keys of whatever runs next.
    output = Vt100_Output(
        sys.stdout, _get_size, term=os.environ.get("TERM"), default_color_depth=depth, enable_cpr=False
    )
    completer = ShellCompleter(folders, cwd)
    source = PastingInput(sys.stdin)
    shell.take_prompt(ShellPrompt(shell, history=history, completer=completer, output=output, source=source))
    shell.say(*greet(own, shell.conversation.agent))
    left = typed.take_over(f"{own}/{_name_tree(root)}")
    if left:
        shell.say(f"{render_count(left, 'unsent message')} from an earlier shell: Enter sends, Up edits.")
        shell.turns.held.hold("left over")
    under_way = find_under_way(root, folders.sessions)
    if under_way and not first:
        shell.say(f"A turn of session {under_way} is under way here. See it: /resume {under_way[-6:]}")
    elif not left and not first:
        _offer_last(shell, folders, root)
    watch_daemon(folders)
    watch_usage(
        partial(Connection.open, folders),
        is_working=lambda: shell.turns.is_working,
        tell=shell.take_windows,
    )
    return await shell.run(first)


def _offer_last(shell: Shell, folders: Folders, root: str) -> None:
    """Offer to resume the last session here with Enter on the first line, if it can be resumed."""
    company = shell.conversation.company
    last = find_last(root, folders.sessions, company) if company is not None else None
    if last is not None:
        shell.say(render_offer(last))
        shell.offer(str(last["session"]))


def _build(folders: Folders, cwd: str, modes: Modes, *, queue: str) -> tuple[Shell, MessageQueue]:
    conversation = Conversation(cwd, agent=_choose_agent(cwd))
    changes: list[Callable[[], None]] = []

    def tell() -> None:
        for change in changes:
            change()

    typed = MessageQueue(queue, tell)
    connect = partial(connect_or_start, folders)
    paper = Scrollback(asyncio.get_running_loop())
    turns = Turns(
        conversation,
        typed,
        connect=connect,
        view=open_turn_view(
            paper.write, columns=lambda: measure()[1], is_colour=is_fancy(), folder=cwd, work=paper.work
        ),
        paper=paper,
        changed=tell,
    )
    conversation.company = SessionLock(os.path.dirname(queue))
    turns.held.returning = PreferredReturn(conversation, ReloadingConfig(folders.config).get, folders.ledger)
    turns.prepare = partial(free_session, conversation, connect)
    shell = Shell(folders, conversation, typed, turns, ShellTerminal(paper, modes))
    changes.append(shell.changed)
    return shell, typed


def _name_tree(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def _name_queue(own: str, root: str) -> str:
    """Return the file for this shell's waiting messages; those of one working tree are in one folder."""
    folder = ensure_private(f"{own}/{_name_tree(root)}")
    return f"{folder}/{os.getpid()}-{os.urandom(4).hex()}.json"


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
