"""`agent-relay` alone and `agent-relay resume`: the relay shell, or short help without a terminal."""

import asyncio
import signal
import sys
from typing import NoReturn

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.command_help import render_help
from agent_relay.faces.cli.options import OptionParser, UsageError
from agent_relay.faces.shell._terminal import Modes
from agent_relay.system.disk.folders import get_cwd, get_folders

_TURN_OF_A_THREAD_S = 0.001

HELP = """usage: agent-relay resume [SESSION] [--json]

Open the relay shell in a session that was left: the newest one of this repository, or the one whose id
begins or ends with SESSION. A turn that is under way is shown from its beginning.
--json prints which session that is, and opens none.
"""


def resume(words: list[str]) -> int:
    """Run `agent-relay resume` and return the exit status."""
    found = OptionParser("resume", flags=("--json",), most=1).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if found.arguments == [""]:
        raise UsageError("the session is empty", command="resume")
    (session,) = found.arguments or ("",)
    return _print_session(session) if "--json" in found.flags else open_shell(f"/resume {session}".strip())


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _print_session(text: str) -> int:
    """Print the session that would be opened: the one `text` names, else the newest of this repository."""
    from agent_relay.faces.cli.session.lookup import find_newest_here, find_session
    from agent_relay.faces.render.output import print_json

    print_json(find_session(get_folders(), text) if text else find_newest_here(get_folders()))
    return ExitCode.DONE


def open_shell(first: str = "") -> int:
    """Run a shell on this terminal, the line `first` typed already; return the exit status.

    Without a terminal it is 2; with `first`, WrongUseError is raised instead.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        if first:
            raise WrongUseError(
                "no session can be resumed: the relay shell needs a terminal",
                hint="Without one: agent-relay run AGENT TASK --continue ID",
            )
        sys.stdout.write(render_help())
        return ExitCode.WRONG_USE
    # Before and after the shell heeds them itself: ended by default it would leave a terminal without echo.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    modes = Modes()
    # Before the slow part of the start: what is typed meanwhile arrives as the keys that were pressed.
    ahead = modes.take_over()
    try:
        return _run(modes, first, ahead)
    finally:
        modes.restore()


def _run(modes: Modes, first: str, ahead: int) -> int:
    from agent_relay.faces.shell._startup import run_shell

    # A turn is laid out on a thread beside the prompt's, and a key must not wait for it.
    sys.setswitchinterval(_TURN_OF_A_THREAD_S)
    # Not asyncio.run: its way with Ctrl-C would end the shell with the first command that is interrupted.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(run_shell(get_folders(), get_cwd(), modes, first=first, ahead=ahead))
    finally:
        loop.close()
