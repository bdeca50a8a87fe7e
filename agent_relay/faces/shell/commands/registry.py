"""The one table of the shell's commands."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from textwrap import wrap

from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.shell.commands._agent_commands import choose_model, hand_off, relay, undo, use
from agent_relay.faces.shell.commands._session_commands import (
    attach,
    leave,
    resume,
    show_status,
    start_new_session,
)
from agent_relay.faces.shell.commands.interface import Act, Completes, ShellCommand

_WIDEST = 80
_NARROWEST = 44
_SAID = 23
"""The columns for what is typed, left of what it does."""


def _mirror(name: str, *, completes: Completes = "") -> ShellCommand:
    """Return the plain command of that name, as its own table describes it."""
    _, usage, about = COMMANDS[name]
    return ShellCommand(name, usage, about, f"agent-relay {name}", completes=completes)


def _act(name: str, act: Act, *, completes: Completes = "") -> ShellCommand:
    """Return the plain command of that name, done by `act` in the shell's own way."""
    return replace(_mirror(name, completes=completes), act=act)


_TABLE = (
    ShellCommand(
        "use",
        "AGENT [MESSAGE]",
        "hand over to AGENT; with MESSAGE, that is what it is told first",
        "agent-relay AGENT --session ID",
        use,
        (
            "While an agent works, its turn passes on at once; else AGENT has the next message.",
            "It reads a packet, or goes on in its own conversation with what changed since.",
            "While somebody is taking over, AGENT is asked for when that is through.",
        ),
        completes="agent",
    ),
    ShellCommand(
        "relay",
        "[MESSAGE]",
        "hand over to the next agent of the order",
        "agent-relay relay",
        relay,
    ),
    ShellCommand(
        "handoff",
        "[FOCUS] | list | show ID | history | plan | retry ID | …",
        "the agent writes a handoff document, then the next agent goes on with it",
        "agent-relay relay --narrative, agent-relay handoff",
        hand_off,
        (
            "It is asked in a copy of its conversation, which stays as it is; Esc cancels.",
            "FOCUS is what the next agent is told first.",
            "list, show, history, plan, retry, cancel, complete and fail are about handoffs as records.",
        ),
        completes="record",
    ),
    _act("undo-handoff", undo),
    ShellCommand(
        "attach",
        "[SESSION]",
        "open this conversation in the agent's own screen; /detach comes back here",
        "agent-relay attach",
        attach,
        (
            "While a turn is under way, it opens when that ends, before what waits is sent.",
            "Detached, the agent goes on there; your next message waits until it is done.",
        ),
        completes="session",
    ),
    _act("status", show_status),
    _mirror("sessions"),
    ShellCommand(
        "new",
        "",
        "the next message begins a session of its own",
        "agent-relay AGENT --new",
        start_new_session,
        ("The one so far stays as it is: /resume takes it up again.",),
    ),
    ShellCommand(
        "resume",
        "[SESSION]",
        "go on with another session of this repository, its turn under way included",
        "agent-relay resume",
        resume,
        (
            "A turn nobody could take, because all rested, waits to be sent again.",
            "Where another shell has the session too, you are told; what you send waits for its turns.",
        ),
        completes="session",
    ),
    _mirror("agents"),
    _mirror("limits"),
    _mirror("order", completes="agent"),
    ShellCommand(
        "model",
        "[MODEL]",
        "the model of the agent's next turns in this shell; - for its own",
        "agent-relay model",
        choose_model,
    ),
    _mirror("metrics"),
    _mirror("watch", completes="session"),
    _mirror("packet", completes="packet"),
    ShellCommand("help", "[COMMAND]", "what can be typed here", "agent-relay --help", completes="command"),
    ShellCommand(
        "exit",
        "",
        "leave; a turn under way goes on, and what waits is kept for the next shell",
        "Ctrl-D",
        leave,
    ),
)

SHELL_COMMANDS: Mapping[str, ShellCommand] = {command.name: command for command in _TABLE}
"""By name, in the order of the help."""

KEYS = (
    ("Enter", "send; while an agent works, the message waits for its turn"),
    ("Ctrl-J, Alt-Enter", "a new line; a paste may have several"),
    ("Up on an empty line", "take the newest waiting message back to edit it"),
    ("Enter on an empty line", "send on what waits after a turn was stopped or failed"),
    ("Enter at the beginning", "go on with the last session here, where one is offered"),
    ("Ctrl-C, Esc", "stop the turn; once more leaves"),
    ("Tab", "complete commands, agents, sessions, and paths behind @"),
    ("!COMMAND", "run a command of your own shell here"),
    ("Ctrl-D", "leave"),
)
"""What the keys do."""


def render_shell_help(name: str = "", *, columns: int = _WIDEST) -> tuple[str, ...]:
    """Return the lines of `/help`, or of one command's own help; empty for an unknown command.

    None of them is wider than `columns`, as far as words allow, nor than an ordinary terminal.
    """
    room = max(_NARROWEST, min(columns, _WIDEST) - 1)
    if name:
        command = SHELL_COMMANDS.get(name.removeprefix("/"))
        return () if command is None else tuple(_render_one(command, room))
    return (
        "Anything else you type is the next message to the agent.",
        *(line for one in SHELL_COMMANDS.values() for line in _render_row(_spell(one), one.about, room)),
        "",
        *(line for keys, about in KEYS for line in _render_row(keys, about, room)),
        "",
        "Every command answers --help.",
    )


def _render_row(said: str, about: str, room: int) -> list[str]:
    """Return what can be typed, and what it does beside it; below it if it is long."""
    indent = " " * (_SAID + 4)
    lines = wrap(about, room, initial_indent=indent, subsequent_indent=indent)
    if len(said) > _SAID:
        return [f"  {said}", *lines]
    return [f"  {said:{_SAID}}  {lines[0][len(indent) :]}", *lines[1:]]


def _render_one(command: ShellCommand, room: int) -> Iterator[str]:
    yield f"usage: {_spell(command)}"
    yield ""
    for sentence in (f"{command.about[0].upper()}{command.about[1:]}.", *command.more):
        yield from wrap(sentence, room)
    yield f"Outside of the shell: {command.plain}"


def _spell(command: ShellCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip()
