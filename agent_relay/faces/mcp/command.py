"""`agent-relay mcp`: the pipe between an MCP client and relay's tools, on standard input and output."""

import os
import sys

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.options import OptionParser
from agent_relay.faces.mcp.pipe import Pipe
from agent_relay.system.disk.folders import get_folders

HELP = """usage: agent-relay mcp

The tools by which an agent speaks for its own session, as an MCP server on standard input and output. Agents
that agent-relay starts have them already; this is for one whose own configuration names its servers.

An agent that agent-relay did not start is refused: it has no session here.
"""


def run_mcp(words: list[str]) -> int:
    """Serve the MCP client that started us until it closes its side; return 0."""
    found = OptionParser("mcp", flags=(), most=0).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if os.isatty(0):
        raise WrongUseError(
            "agent-relay mcp speaks with a program on its standard input, not with people",
            hint="Agents that agent-relay starts have its tools already: see docs/mcp.md",
        )
    folders = get_folders()
    connect_or_start(folders).close()
    return Pipe(folders.runtime).run()
