"""Run a typed line: a command, a command of the user's own shell (`!`), or a message."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.start.attach import measure
from agent_relay.faces.cli.start.relay_prompt import find_plain, split_words
from agent_relay.faces.cli.start.run import check_task
from agent_relay.faces.shell._greeting import NO_AGENT
from agent_relay.faces.shell.commands.interface import ShellCommand, ShellFace
from agent_relay.faces.shell.commands.registry import SHELL_COMMANDS, render_shell_help

_NO_NAME = frozenset("/.*\n")
"""What stands in no command's name, but where a message begins with a path or with code."""


async def run_line(shell: ShellFace, line: str) -> None:
    """The line is done, sent, or refused. Raises RelayError where it cannot be done."""
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
    if command.name == "help":
        lines = render_shell_help(rest, columns=measure()[1])
        if not lines:
            raise _refuse(f"/{rest.removeprefix('/')}")
        shell.say(*lines)
    elif rest in {"--help", "-h"} and command.act is not None:
        shell.say(*render_shell_help(command.name, columns=measure()[1]))
    elif command.act is not None:
        await command.act(shell, rest)
    else:
        shell.run_plain(build_plain(command, rest, shell.conversation.session))


def is_command(line: str) -> bool:
    """Whether the line is for the shell; a path or a comment of code at its beginning makes it a message."""
    if line.startswith("/"):
        return not _NO_NAME & set(line.partition(" ")[0][1:])
    return line.startswith("!")


def build_plain(command: ShellCommand, rest: str, session: str) -> Sequence[str]:
    """The words of the plain command, about this session where it may be about one."""
    found = find_plain(f"/{command.name}", rest, session) if session and "--help" not in rest else ()
    return found or (command.name, *split_words(rest))


def run_user_command(text: str) -> int:
    """The exit status of a command of the user's own shell, run on this terminal."""
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
    """A handler, because what is ignored here would be ignored by the command too."""
    del number, frame


class _Ending:
    """Whoever ends the shell, or closes its window, ends what it runs, from its first moment on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = 0

    def begin(self, process: "subprocess.Popen[bytes]") -> None:
        """This is what is run; what was heard while it was started reaches it now."""
        self._process = process
        if self._heard:
            process.send_signal(self._heard)

    def hear(self, number: int, _frame: object) -> None:
        """A handler of Unix signals."""
        self._heard = number
        if self._process is not None:
            self._process.send_signal(number)


def _end_row() -> None:
    """The cursor begins a row: as many blanks as one has wrap only where something stands before them."""
    with suppress(OSError):
        os.write(1, b" " * measure()[1] + b"\r")


def _refuse(word: str) -> WrongUseError:
    from difflib import get_close_matches

    close = get_close_matches(word.removeprefix("/"), SHELL_COMMANDS, n=1)
    meant = f"Did you mean /{close[0]}? " if close else ""
    return WrongUseError(f"there is no command {word[:40]!r} here", hint=f"{meant}See: /help")
