"""`agent-relay mcp`: the pipe between an MCP client and relay's tools, and the extension of some agents.

Agents start it: what changes an extension is imported late.
"""

import os
import sys

from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import ConfigurationError, ExitCode, RelayError, WrongUseError
from agent_relay.faces.cli.dispatch import render_extra_install
from agent_relay.faces.cli.options import OptionParser, ParsedOptions, UsageError
from agent_relay.faces.mcp.pipe import Pipe
from agent_relay.system.disk.folders import get_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.agents.tool_extension import ExtensionFile, ExtensionState

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
        return _run_extension(word, found)
    if os.isatty(0):
        raise WrongUseError(
            "agent-relay mcp is for programs: it needs an MCP client on standard input",
            hint="Agents that agent-relay starts already have its tools. See: docs/mcp.md",
        )
    folders = get_folders()
    connect_or_start(folders).close()
    return Pipe(folders.runtime).run()


_STATES: "dict[ExtensionState, str]" = {
    "absent": "not installed",
    "installed": "installed",
    "other": "installed by another agent-relay, or for other folders",
    "gone": "the extension points to an installation that is gone",
    "foreign": "not relay's; left alone",
}


def _run_extension(word: str, found: ParsedOptions) -> int:
    """Run `install`, `uninstall` or `status` for the agents named; return 0. Raises RelayError."""
    import importlib.util

    from agent_relay.agents.adapters import find_program
    from agent_relay.agents.catalog import load_adapters
    from agent_relay.agents.tool_extension import list_extensions, read_extension
    from agent_relay.domain.values import AgentName
    from agent_relay.faces.render.output import plain, print_either, print_lines

    adapters, folders = load_adapters(get_folders()), get_folders()
    files = _choose(list_extensions(adapters, os.environ), found.arguments[1:])
    as_json = "--json" in found.flags
    if word == "status":
        states = [read_extension(file, folders.runtime) for file in files]
        rows = [
            {
                "agent": one.file.agent,
                "path": plain(one.file.path),
                "state": one.state,
                "program": plain(one.program),
            }
            for one in states
        ]
        lines = [f"{one.file.agent:10}{_STATES[one.state]}: {plain(one.file.path)}" for one in states]
        print_either({"extensions": rows}, *lines, as_json=as_json)
        return ExitCode.DONE
    is_install = word == "install"
    if is_install:
        if importlib.util.find_spec("mcp") is None:
            raise ConfigurationError(
                "the tools are not installed", hint=f"They come with: {render_extra_install('mcp')}"
            )
        if not found.arguments[1:]:
            files = [one for one in files if find_program(adapters[AgentName(one.agent)], os.environ)]
    changed = _change(files, folders.runtime, is_install=is_install, asks=_may_ask(found))
    if changed is None:
        print_lines("Nothing was changed.")
        return ExitCode.DONE
    verb = "Installed" if is_install else "Removed"
    lines = [f"{verb}: {plain(path)}" for path in changed] or ["Nothing had to be changed."]
    print_either({"changed": [plain(path) for path in changed]}, *lines, as_json=as_json)
    return ExitCode.DONE


def _choose(files: "list[ExtensionFile]", agents: "Sequence[str]") -> "list[ExtensionFile]":
    known = [file.agent for file in files]
    for agent in agents:
        if agent not in known:
            raise WrongUseError(
                f"{agent[:40]!r} takes no extension of relay's",
                hint=f"Known: {', '.join(known)}; other agents get the tools when relay starts them",
            )
    return [file for file in files if file.agent in agents] if agents else files


def _may_ask(found: ParsedOptions) -> bool:
    is_silent = bool(found.flags & {"--yes", "--json"})
    return not is_silent and sys.stdin.isatty() and sys.stdout.isatty()


def _change(
    files: "Sequence[ExtensionFile]", folder: str, *, is_install: bool, asks: bool
) -> list[str] | None:
    """Make the changes, after asking if it `asks`; return the paths, `None` if they are not wanted."""
    from agent_relay.agents.tool_extension import install_extension, read_extension, remove_extension
    from agent_relay.faces.render.output import ask, plain

    states = {file.path: read_extension(file, folder).state for file in files}
    done = {"installed"} if is_install else {"absent", "foreign"}
    due = [file for file in files if states[file.path] not in done]
    names = "\n".join(f"  {plain(file.path)}" for file in due)
    if due and asks and ask(f"These files will be changed:\n{names}\nContinue? [y/N] ") not in {"y", "yes"}:
        return None
    changed, refused = list[str](), list[RelayError]()
    for file in due:
        try:
            is_changed = install_extension(file, folder) if is_install else remove_extension(file)
            changed += [file.path] if is_changed else []
        except RelayError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    return changed
