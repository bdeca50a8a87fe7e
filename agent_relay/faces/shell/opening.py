"""`agent-relay` alone: the relay shell on a terminal, the short help anywhere else."""

import asyncio
import os
import sys

from agent_relay.domain.errors import ExitCode
from agent_relay.faces.cli.commands import render_help
from agent_relay.faces.shell.modes import Modes
from agent_relay.system.folders import get_folders


def open_shell(session: str = "") -> int:
    """The exit status of a shell on this terminal, in `session` if one is named; 2 where there is none."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stdout.write(render_help())
        return ExitCode.WRONG_USE
    from agent_relay.faces.shell.building import run_shell

    modes = Modes()
    # Not asyncio.run: its way with Ctrl-C would end the shell with the first command that is interrupted.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(run_shell(get_folders(), os.getcwd(), modes, session=session))
    finally:
        loop.close()
        modes.restore()
