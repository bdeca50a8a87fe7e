"""Install relay's tools as an extension of an agent that cannot be given them when it is started.

The extension is a folder of its own with one file, which says that it is relay's and which folders were made
for it: nothing else is needed to remove it without a trace.
"""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import PIPE_PATH, build_tool_values
from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.agent_configuration import ToolExtension
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.values import AgentName
from agent_relay.system.disk.files import cannot_write, read_bounded, write_atomic

ExtensionState = Literal["absent", "installed", "other", "gone", "foreign"]
_MARKED = re.compile(r"owned by agent-relay, made=([0-9])\b")
_LIMIT_BYTES = 1 << 16
_MOST_MADE = 9
_NAME = "agent_relay"
STARTED_ONLY = "started-only"
"""Tells the pipe to list no tools to an agent that relay did not start."""


class ExtensionFile(msgspec.Struct, frozen=True):
    """The file of an agent's extension for relay's tools; it need not be there."""

    agent: str
    path: str
    spec: ToolExtension


class ExtensionStatus(msgspec.Struct, frozen=True):
    """The state of an extension.

    An `other` one belongs to another installation, whose pipe is `program`, a `gone` one to one that is no
    longer there; a `foreign` file is none of relay's.
    """

    file: ExtensionFile
    state: ExtensionState
    program: str = ""


def list_extensions(
    adapters: Mapping[AgentName, LoadedAdapter], environ: Mapping[str, str]
) -> list[ExtensionFile]:
    """Return the files of all agents whose adapters have such an extension."""
    found = []
    for name, loaded in adapters.items():
        spec = loaded.adapter.tool_extension
        path = fill_text(spec.path, {"home": environ.get("HOME", "")}, environ) if spec is not None else None
        if spec is not None and path is not None and os.path.isabs(path):
            found.append(ExtensionFile(str(name), os.path.normpath(path), spec))
    return found


def read_extension(file: ExtensionFile, folder: str) -> ExtensionStatus:
    """Return the state of the extension; `folder` is where the daemon's sockets are. Reads disk."""
    text = _read(file.path)
    if text is None:
        return ExtensionStatus(file, "absent")
    found = _MARKED.search(text)
    if found is None:
        return ExtensionStatus(file, "foreign")
    program, pipe = _find_program(text)
    if not (os.access(program, os.X_OK) and os.access(pipe, os.R_OK)):
        return ExtensionStatus(file, "gone", pipe)
    is_current = text == _render(file.spec, folder, int(found[1]))
    return ExtensionStatus(file, "installed" if is_current else "other", pipe)


def install_extension(file: ExtensionFile, folder: str) -> bool:
    """Write the extension, in place of an older one of relay's; return whether anything changed.

    Raises ConfigurationError for a file that is none of relay's, RelayError if it cannot be written; then
    nothing is left behind.
    """
    before = _read(file.path)
    found = _MARKED.search(before) if before is not None else None
    if before is not None and found is None:
        raise ConfigurationError(
            f"{file.path} is not relay's, so it was left alone", hint="Move it away; then try again."
        )
    lacking = _list_lacking(os.path.dirname(file.path))
    text = _render(file.spec, folder, int(found[1]) if found is not None else len(lacking))
    if text == before:
        return False
    try:
        for one in reversed(lacking):
            os.mkdir(one, 0o700)
        write_atomic(file.path, text.encode())
    except (OSError, RelayError) as error:
        _remove_empty(lacking)
        raise (cannot_write(file.path, error) if isinstance(error, OSError) else error) from error
    return True


def remove_extension(file: ExtensionFile) -> bool:
    """Remove the extension and the folders made for it, unless they hold something else.

    Return whether there was one; a file that is none of relay's is left alone. Raises RelayError.
    """
    text = _read(file.path)
    found = _MARKED.search(text) if text is not None else None
    if found is None:
        return False
    try:
        os.unlink(file.path)
    except OSError as error:
        raise cannot_write(file.path, error) from error
    made, one = list[str](), file.path
    for _ in range(int(found[1])):
        one = os.path.dirname(one)
        made.append(one)
    _remove_empty(made)
    return True


def _render(spec: ToolExtension, folder: str, made: int) -> str:
    """Return the text of the file. Raise ConfigurationError for a path that the agent would change."""
    values = build_tool_values(folder, more=(STARTED_ONLY,))
    if "$" in values["mcp_words"]:
        raise ConfigurationError(f"the agent would take a part of {PIPE_PATH} or {folder} for a variable")
    text = spec.text.replace("{mark}", f"owned by agent-relay, made={min(made, _MOST_MADE)}")
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _read(path: str) -> str | None:
    """Return the text of the file; `None` if there is none. Raise RelayError if it cannot be read."""
    try:
        return read_bounded(path, limit_bytes=_LIMIT_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RelayError(f"{path} cannot be read: {error.strerror}") from error


def _find_program(text: str) -> tuple[str, str]:
    """Return the Python and the pipe that the extension runs; empty where it does not say."""
    with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, IndexError):
        server = json.loads(text)["mcpServers"][_NAME]
        return str(server["command"]), str(server["args"][2])
    return "", ""


def _list_lacking(folder: str) -> list[str]:
    """Return the folders that have to be made, the deepest first."""
    lacking = []
    while not os.path.isdir(folder):
        lacking.append(folder)
        folder = os.path.dirname(folder)
    return lacking


def _remove_empty(folders: list[str]) -> None:
    for one in folders:
        try:
            os.rmdir(one)
        except OSError:
            return  # somebody else uses it by now
