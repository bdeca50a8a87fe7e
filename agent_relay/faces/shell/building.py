"""A shell put together: its files, its turns, its prompt, and what it says first."""

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
from agent_relay.client.daemon_watch import watch_daemon
from agent_relay.faces.cli.agents import build_view
from agent_relay.faces.cli.attach import measure
from agent_relay.faces.cli.printing import is_fancy
from agent_relay.faces.rendering.turn_view import open_turn_view
from agent_relay.faces.shell.company import Company
from agent_relay.faces.shell.completion import ShellCompleter
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.faces.shell.history import TypedHistory
from agent_relay.faces.shell.making_room import make_room
from agent_relay.faces.shell.modes import Modes
from agent_relay.faces.shell.paper import Paper
from agent_relay.faces.shell.pasting import PastingInput
from agent_relay.faces.shell.prompt import Prompt
from agent_relay.faces.shell.rejoining import find_last, find_under_way, render_offer
from agent_relay.faces.shell.returning import Returning
from agent_relay.faces.shell.shell import Shell, Terminal
from agent_relay.faces.shell.turns import Turns
from agent_relay.faces.shell.typed_ahead import TypedAhead
from agent_relay.faces.shell.usage_watch import watch_usage
from agent_relay.faces.shell.welcome import greet
from agent_relay.logic.counts import render_count
from agent_relay.logic.redact.text import redact_text
from agent_relay.system.folders import Folders, ensure_private
from agent_relay.system.followed_config import FollowedConfig
from agent_relay.system.glances import find_near_root
from agent_relay.system.secrets import gather_secrets


async def run_shell(folders: Folders, cwd: str, modes: Modes, *, first: str = "") -> int:
    """The exit status of a shell in `cwd` that begins with the line `first`, empty for none."""
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
    shell.take_prompt(Prompt(shell, history=history, completer=completer, output=output, source=source))
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
    """Enter on the first line goes on with the last session here, where it can be gone on with."""
    company = shell.conversation.company
    last = find_last(root, folders.sessions, company) if company is not None else None
    if last is not None:
        shell.say(render_offer(last))
        shell.offer(str(last["session"]))


def _build(folders: Folders, cwd: str, modes: Modes, *, queue: str) -> tuple[Shell, TypedAhead]:
    conversation = Conversation(cwd, agent=_choose_agent(cwd))
    changes: list[Callable[[], None]] = []

    def tell() -> None:
        for change in changes:
            change()

    typed = TypedAhead(queue, tell)
    connect = partial(connect_or_start, folders)
    paper = Paper(asyncio.get_running_loop())
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
    conversation.company = Company(os.path.dirname(queue))
    turns.held.returning = Returning(conversation, FollowedConfig(folders.config).get, folders.ledger)
    turns.prepare = partial(make_room, conversation, connect)
    shell = Shell(folders, conversation, typed, turns, Terminal(paper, modes))
    changes.append(shell.changed)
    return shell, typed


def _name_tree(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def _name_queue(own: str, root: str) -> str:
    """The file of what this shell was typed ahead; those of one working tree are in one folder."""
    folder = ensure_private(f"{own}/{_name_tree(root)}")
    return f"{folder}/{os.getpid()}-{os.urandom(4).hex()}.json"


def _choose_agent(cwd: str) -> str:
    """The first agent of the order that is installed and does not rest; the first one where all do."""
    rows = [row for row in build_view(cwd, os.environ) if row["place"] is not None and row["program"]]
    free = [row for row in rows if not row["resting"]]
    return str((free or rows)[0]["name"]) if rows else ""


def _build_redact(root: str, cwd: str) -> Callable[[str], str]:
    """What removes secrets from a text, those of the user's environment included."""
    known: list[frozenset[str]] = []

    def redact(text: str) -> str:
        if not known:
            known.append(gather_secrets(root, os.environ, cwd=cwd))
        return redact_text(text, known=known[0]).text

    return redact


def _get_size() -> Size:
    rows, columns = measure()
    return Size(rows, columns)
