"""`agent-relay mcp`: the pipe between an MCP client and relay's tools, on standard input and output."""

import os
import sys

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.options import OptionParser
from agent_relay.faces.mcp.pipe import Pipe
from agent_relay.system.disk.folders import get_folders

HELP = """usage: agent-relay mcp

Serve an agent the tools for its own session, as an MCP server on standard input and output. Agents that
agent-relay starts usually have them already; this command is for one that you configure yourself.

An agent that agent-relay did not start has no session here, so every tool refuses it.
"""


def run_mcp(words: list[str]) -> int:
    """Serve the MCP client that started us until it closes its side; return 0."""
    found = OptionParser("mcp", flags=(), most=0).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if os.isatty(0):
        raise WrongUseError(
            "agent-relay mcp is for programs: it needs an MCP client on standard input",
            hint="Agents that agent-relay starts already have its tools. See: docs/mcp.md",
        )
    folders = get_folders()
    connect_or_start(folders).close()
    return Pipe(folders.runtime).run()
