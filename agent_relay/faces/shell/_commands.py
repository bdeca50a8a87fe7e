"""Run a typed line: a command of the table, a command of the user's own shell (`!`), or a message."""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nsmallest
from textwrap import wrap

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.command_help import get_room, render_form_help
from agent_relay.faces.cli.commands import SHELL_COMMANDS, Command
from agent_relay.faces.cli.options import suggest
from agent_relay.faces.cli.session.attach import measure
from agent_relay.faces.cli.session.run import check_task
from agent_relay.faces.cli.session.slash_commands import (
    asks_for_help,
    find_plain,
    split_words,
)
from agent_relay.faces.render.output import plain
from agent_relay.faces.shell._actions import (
    Act,
    ShellFace,
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
from agent_relay.store.session_index import list_named
from agent_relay.system.disk.folders import Folders

_WIDEST = 80
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
"""Keys, and what they do."""


def render_shell_help(name: str = "", *, columns: int = _WIDEST) -> tuple[str, ...]:
    """Return the lines of `/help`, or of one command's own help; empty for an unknown command.

    None of them is wider than `columns`, as far as words allow, nor than an ordinary terminal.
    """
    if name:
        command = SHELL_COMMANDS.get(name.removeprefix("/"))
        return () if command is None else render_form_help(command.name, command.shell_form, columns=columns)
    room = get_room(columns)
    return (
        "Anything else you type is the next message to the agent.",
        *(
            row
            for one in SHELL_COMMANDS.values()
            for row in _render_row(render_usage(one), one.shell_form.about, room)
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


def render_usage(command: Command) -> str:
    """Return how the command is typed in the shell."""
    return f"/{command.name} {command.shell_form.usage}".rstrip()


_ELSEWHERE = {"/log": "/watch --no-follow", "/detach": "/exit"}
"""Commands of the relay key alone, and what does the same in the shell."""
NO_AGENT = "Install one of those /agents lists and say /use AGENT; to try it out: /use demo"
"""The hint if no agent of the order is installed."""
_NO_NAME = frozenset("/.*\n")
"""Characters that no command's name has, but a path or code at the beginning of a message does."""


async def run_line(shell: ShellFace, line: str) -> None:
    """Run, send or refuse the line. Raise RelayError if it cannot be done."""
    if line.startswith("!"):
        with shell.lend_terminal():
            status = run_user_command(line[1:])
        if status:
            shell.say(f"→ exit status {status if status > 0 else 128 - status}")
        return
    if not is_command(line):
        check_task(line, "a turn")
        if not shell.conversation.agent:
            raise WrongUseError("there is no agent to send that to", hint=NO_AGENT)
        shell.turns.send(line)
        return
    await shell.turns.wait_over()
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    command = SHELL_COMMANDS.get(word[1:])
    if command is None:
        raise _refuse(word)
    act = ACTIONS.get(command.name)
    if command.name == "help":
        lines = render_shell_help(rest, columns=measure()[1])
        if not lines:
            raise _refuse(f"/{rest.removeprefix('/')}")
        shell.show(*lines)
    elif act is None:
        shell.run_plain(build_plain(command, rest, shell.conversation.session))
    elif asks_for_help(command, rest):
        shell.show(*render_shell_help(command.name, columns=measure()[1]))
    else:
        await act(shell, rest)


def is_command(line: str) -> bool:
    """Return whether the line is for the shell; a path or a comment at its beginning makes it a message."""
    if line.startswith("/"):
        return not _NO_NAME & set(line.partition(" ")[0][1:])
    return line.startswith("!")


def build_plain(command: Command, rest: str, session: str) -> Sequence[str]:
    """Build the words of the plain command, about this session if it may be about one."""
    found = find_plain(f"/{command.name}", rest, session) if session and "--help" not in rest else ()
    if not found and command.name == "packet" and not rest.strip():
        return ("packet", "show")
    return found or (command.name, *split_words(rest))


def run_user_command(text: str) -> int:
    """Run a command of the user's own shell on this terminal; return its exit status."""
    if not text.strip():
        raise WrongUseError("! needs a command", hint="For example: !git status")
    program = os.environ.get("SHELL") or "/bin/sh"
    # Ctrl-C is the command's; the shell around it goes on.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, _ignore)}
    ending = _Ending()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, ending.hear)
    try:
        with subprocess.Popen([program, "-c", text]) as process:
            ending.begin(process)
            return process.wait()
    except OSError as error:
        raise WrongUseError(f"cannot run {program}: {error.strerror}") from error
    finally:
        _end_row()
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(number: int, frame: object) -> None:
    """Do nothing; a handler, because the command would inherit an ignored signal."""
    del number, frame


class _Ending:
    """Passes Unix signals that end the shell on to what it runs, from its first moment on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = 0

    def begin(self, process: "subprocess.Popen[bytes]") -> None:
        """Pass signals on to this process from now on, and one that came while it was started."""
        self._process = process
        if self._heard:
            process.send_signal(self._heard)

    def hear(self, number: int, _frame: object) -> None:
        """Handle a Unix signal."""
        self._heard = number
        if self._process is not None:
            self._process.send_signal(number)


def _end_row() -> None:
    """Put the cursor at the beginning of a row: a row of blanks wraps only if something is before it."""
    with suppress(OSError):
        os.write(1, b" " * measure()[1] + b"\r")


def _refuse(word: str) -> WrongUseError:
    if word in _ELSEWHERE:
        hint = f"It is typed behind the relay key, in the agent's own screen; here: {_ELSEWHERE[word]}"
        return WrongUseError(f"there is no command '{word}' here", hint=hint)
    meant = suggest(word, [f"/{name}" for name in SHELL_COMMANDS])
    return WrongUseError(f"there is no command {word[:40]!r} here", hint=f"{meant}See: /help")


_MOST = 200


class ShellCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, folders: Folders, cwd: str) -> None:
        self._folders = folders
        self._cwd = cwd

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions, best first; none in prose."""
        del complete_event
        before = document.text_before_cursor
        word = before.split("\n")[-1].rpartition(" ")[2]
        if word.startswith("@"):
            return _complete_path(word[1:], self._cwd)
        if before.startswith("/"):
            return self._complete_command(before)
        return ()

    def _complete_command(self, before: str) -> Iterator[Completion]:
        name, space, rest = before[1:].partition(" ")
        if not space:
            for command in SHELL_COMMANDS.values():
                if command.name.startswith(name):
                    about = command.shell_form.about
                    yield Completion(f"/{command.name}", start_position=-len(before), display_meta=about)
            return
        known = SHELL_COMMANDS.get(name)
        if known is None or (" " in rest and known.name != "order"):
            return
        word = rest.rpartition(" ")[2]
        for choice in self._list_choices(known):
            if choice.lower().startswith(word.lower()):
                yield Completion(choice, start_position=-len(word))

    def _list_choices(self, command: Command) -> Iterable[str]:
        match command.shell_form.completes:
            case "agent":
                return _list_agents(self._folders)
            case "session":
                return list_named(self._folders.sessions)[::-1]
            case "word":
                return command.words
            case "command":
                return SHELL_COMMANDS
            case _:
                return ()


def _list_agents(folders: Folders) -> list[str]:
    """Return the names of the adapters the user has; only the daemon reads and checks them."""
    found = set()
    for place in (find_builtin_folder(), os.path.join(folders.config, "adapters")):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        found |= {name for name in names if os.path.isfile(os.path.join(place, name, "adapter.toml"))}
    return sorted(found)


def _complete_path(word: str, cwd: str) -> Iterator[Completion]:
    folder, _, name = word.rpartition("/")
    place = os.path.join(cwd, os.path.expanduser(f"{folder}/" if folder or word.startswith("/") else ""))
    try:
        with os.scandir(place) as entries:
            names = (entry.name for entry in entries)
            shown = (one for one in names if one.startswith(name) and (name or not one.startswith(".")))
            found = nsmallest(_MOST, (one for one in shown if one.isprintable()))
    except (OSError, ValueError):
        # A NUL in the word is no name of anything either.
        return
    for entry in found:
        is_folder = os.path.isdir(os.path.join(place, entry))
        yield Completion(entry + ("/" if is_folder else ""), start_position=-len(name), display=plain(entry))
