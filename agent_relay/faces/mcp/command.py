"""`agent-relay mcp`: the pipe between an MCP client and relay's tools, and the extension of some agents."""

import os
import sys

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import ExitCode, WrongUseError
from agent_relay.faces.cli.options import OptionParser, UsageError
from agent_relay.faces.mcp.pipe import Pipe
from agent_relay.system.disk.folders import get_folders

HELP = """usage: agent-relay mcp
       agent-relay mcp install|uninstall|status [AGENT...] [--yes] [--json]

Serve an agent the tools for its own session, as an MCP server on standard input and output. Agents that
agent-relay starts usually have them already; this command is for one that you configure yourself.

An agent that agent-relay did not start has no session here, so every tool refuses it.

  install     add the tools to an agent that cannot be given them at its start, as an extension of its own;
              default: every such agent that is installed
  uninstall   remove that extension, and the folders that were made for it
  status      show which agents have it, and whether it works

  --yes       do not ask for confirmation
  --json      as JSON: {changed}, of status {extensions}
"""
_WORDS = ("install", "uninstall", "status")


def run_mcp(words: list[str]) -> int:
    """Serve the MCP client that started us until it closes its side, or change an extension; return 0."""
    flags = ("--yes", "--json") if words else ()
    found = OptionParser("mcp", flags=flags).parse(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    if found.arguments or found.flags:
        word = found.arguments[0] if found.arguments else ""
        if word not in _WORDS:
            raise UsageError(f"unknown command {word[:40]!r}", command="mcp")
        from agent_relay.faces.mcp.extension import run_extension

        return run_extension(word, found)
    if os.isatty(0):
        raise WrongUseError(
            "agent-relay mcp is for programs: it needs an MCP client on standard input",
            hint="Agents that agent-relay starts already have its tools. See: docs/mcp.md",
        )
    folders = get_folders()
    connect_or_start(folders).close()
    return Pipe(folders.runtime).run()
