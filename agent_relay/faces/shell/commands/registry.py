"""What each command of the shell does there, and the help of commands and keys."""

from collections.abc import Iterator, Mapping
from textwrap import wrap

from agent_relay.faces.cli.commands import SHELL_COMMANDS, Command
from agent_relay.faces.shell.commands._actions import (
    attach,
    choose_model,
    hand_off,
    leave,
    relay,
    resume,
    show_status,
    start_new_session,
    undo,
    use,
)
from agent_relay.faces.shell.commands.interface import Act

_WIDEST = 80
_NARROWEST = 44
_TYPED_WIDTH = 23
"""The columns for what is typed, left of what it does."""

ACTIONS: Mapping[str, Act] = {
    "attach": attach,
    "exit": leave,
    "handoff": hand_off,
    "model": choose_model,
    "new": start_new_session,
    "relay": relay,
    "resume": resume,
    "status": show_status,
    "undo-handoff": undo,
    "use": use,
}
"""Commands the shell runs itself; the others, but for `help`, run as on the command line."""

KEYS = (
    ("Enter", "send; while an agent works, the message waits for its turn"),
    ("Ctrl-J, Alt-Enter", "a new line; a paste may have several"),
    ("Up on an empty line", "take the newest waiting message back to edit it"),
    ("Enter on an empty line", "send waiting messages after a turn was stopped or failed"),
    ("Enter at the beginning", "go on with the last session here, if one is offered"),
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
        *(
            row
            for one in SHELL_COMMANDS.values()
            for row in _render_row(spell(one), one.shell_form.about, room)
        ),
        "",
        *(line for keys, about in KEYS for line in _render_row(keys, about, room)),
        "",
        "Every command answers --help.",
    )


def _render_row(typed: str, about: str, room: int) -> list[str]:
    """Return what can be typed, and what it does beside it; below it if it is long."""
    indent = " " * (_TYPED_WIDTH + 4)
    lines = wrap(about, room, initial_indent=indent, subsequent_indent=indent)
    if len(typed) > _TYPED_WIDTH:
        return [f"  {typed}", *lines]
    return [f"  {typed:{_TYPED_WIDTH}}  {lines[0][len(indent) :]}", *lines[1:]]


def _render_one(command: Command, room: int) -> Iterator[str]:
    form = command.shell_form
    yield f"usage: {spell(command)}"
    yield ""
    for sentence in (f"{form.about[0].upper()}{form.about[1:]}.", *form.more):
        yield from wrap(sentence, room)
    yield f"Outside of the shell: {form.outside}"


def spell(command: Command) -> str:
    """Return how the command is typed in the shell."""
    return f"/{command.name} {command.shell_form.usage}".rstrip()
