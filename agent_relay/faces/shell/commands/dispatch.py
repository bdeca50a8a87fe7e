"""Run a typed line: a command, a command of the user's own shell (`!`), or a message."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.commands import SHELL_COMMANDS, Command
from agent_relay.faces.cli.start.attach import measure
from agent_relay.faces.cli.start.relay_prompt import find_plain, split_words
from agent_relay.faces.cli.start.run import check_task
from agent_relay.faces.shell.commands.interface import ShellFace
from agent_relay.faces.shell.commands.registry import ACTIONS, render_shell_help

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
        shell.say(*lines)
    elif act is None:
        shell.run_plain(build_plain(command, rest, shell.conversation.session))
    elif rest in {"--help", "-h"}:
        shell.say(*render_shell_help(command.name, columns=measure()[1]))
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
    from difflib import get_close_matches

    close = get_close_matches(word.removeprefix("/"), SHELL_COMMANDS, n=1)
    meant = f"Did you mean /{close[0]}? " if close else ""
    return WrongUseError(f"there is no command {word[:40]!r} here", hint=f"{meant}See: /help")
