"""Start the MCP server when an agent's pipe asks for it."""

import asyncio
import os
import sys
from collections.abc import Mapping

from agent_relay.domain.errors import DaemonUnreachableError, RelayError, UntrustedDataError
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.operations import MCP_SERVE, Handler, Peer
from agent_relay.domain.protocol.wire import parse_line, parse_refusal
from agent_relay.system.disk.folders import Folders
from agent_relay.system.net.unix_sockets import connect
from agent_relay.system.programs import start_and_hear

_START_LIMIT_S = 30.0
_LOOK_S = 5.0
_ANSWER_BYTES = 1 << 16
_READY = b"ready\n"
_PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faces", "mcp", "server.py"
)


def build_mcp_handlers(folders: Folders) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""
    starting = asyncio.Lock()

    async def serve(_asked: Fields, _peer: Peer) -> Mapping[str, object]:
        """Return the server's `socket` once it listens there; raise RelayError if it cannot be started."""
        async with starting:
            await asyncio.to_thread(_start_tool_server, folders)
        return {"socket": folders.mcp_socket}

    return dict((MCP_SERVE.performed_by(serve),))


def _start_tool_server(folders: Folders) -> None:
    """Make sure that the server listens. Raise RelayError, or its own error, if it does not."""
    try:
        connect(folders.mcp_socket, timeout_s=_LOOK_S).close()
    except OSError:
        _start()


def _start() -> None:
    command = [sys.executable, "-I", _PROGRAM]
    try:
        pid, answer = start_and_hear(
            command, stream=2, until=_READY, limit_bytes=_ANSWER_BYTES, limit_s=_START_LIMIT_S
        )
    except OSError as error:
        raise DaemonUnreachableError(f"cannot start the MCP server: {error.strerror}") from error
    # The child left at once; its own child is the server.
    os.waitpid(pid, 0 if answer.endswith(_READY) else os.WNOHANG)
    if not answer.endswith(_READY):
        raise _why(answer)


def _why(answer: bytes) -> RelayError:
    lines = answer.strip().split(b"\n")
    try:
        return parse_refusal(parse_line(lines[-1]))
    except UntrustedDataError:
        said = lines[-1].decode("utf-8", "replace")[:200] or f"it was not ready after {_START_LIMIT_S:.0f} s"
        return DaemonUnreachableError(f"the MCP server could not be started: {said}")
