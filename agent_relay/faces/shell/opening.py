"""`agent-relay` alone: the relay shell on a terminal, the short help anywhere else."""

import asyncio
import os
import sys

from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.commands import render_help
from agent_relay.faces.shell.modes import Modes
from agent_relay.system.folders import get_folders

_TURN_OF_A_THREAD_S = 0.001

HELP = """usage: agent-relay resume [SESSION]

Open the relay shell in a session that was left: the newest one of this repository, or the one whose id
begins or ends with SESSION. A turn that is under way is shown from its beginning.
"""


def resume(words: list[str]) -> int:
    """The exit status of `agent-relay resume`."""
    if {"--help", "-h"} & set(words):
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if len(words) > 1 or words[:1] == [""]:
        raise WrongUseError("resume takes one session at most", hint="See: agent-relay resume --help")
    return open_shell(f"/resume {words[0] if words else ''}".strip())


def open_shell(first: str = "") -> int:
    """The exit status of a shell on this terminal, the line `first` typed already; 2 where there is none."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stdout.write(render_help())
        return ExitCode.WRONG_USE
    from agent_relay.faces.shell.building import run_shell

    # A turn is laid out on a thread beside the prompt's, and a key must not wait for it.
    sys.setswitchinterval(_TURN_OF_A_THREAD_S)
    modes = Modes()
    # Not asyncio.run: its way with Ctrl-C would end the shell with the first command that is interrupted.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(run_shell(get_folders(), os.getcwd(), modes, first=first))
    finally:
        loop.close()
        modes.restore()
