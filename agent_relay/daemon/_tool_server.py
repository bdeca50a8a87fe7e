"""Start the MCP server when an agent's pipe asks for it."""

import asyncio
import os
import select
import sys
import time
from collections.abc import Mapping

from agent_relay.domain.errors import DaemonUnreachableError, RelayError, UntrustedDataError
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.operations import MCP_SERVE, Handler, Peer
from agent_relay.domain.protocol.wire import parse_line, parse_refusal
from agent_relay.system.disk.folders import Folders
from agent_relay.system.net.unix_sockets import connect
from agent_relay.system.spawn import give_streams, spawn_program

START_LIMIT_S = 30.0
_LOOK_S = 5.0
_ANSWER_BYTES = 1 << 16
_READY = b"ready\n"
PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faces", "mcp", "server.py"
)


class ToolServer:
    """Starts the server of the agents' tools, one at a time. Use it from the event loop only."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._starting = asyncio.Lock()

    async def serve(self, _asked: Fields, _peer: Peer) -> Mapping[str, object]:
        """Return the server's `socket` once it listens there; raise RelayError if it cannot be started."""
        async with self._starting:
            await asyncio.to_thread(start_tool_server, self._folders)
        return {"socket": self._folders.mcp_socket}


def build_mcp_handlers(folders: Folders) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""
    return dict((MCP_SERVE.performed_by(ToolServer(folders).serve),))


def start_tool_server(folders: Folders) -> None:
    """Make sure that the server listens. Raise RelayError, or its own error, if it does not."""
    try:
        connect(folders.mcp_socket, timeout_s=_LOOK_S).close()
    except OSError:
        _start()


def _start() -> None:
    heard, told = os.pipe()
    try:
        try:
            command = [sys.executable, "-I", PROGRAM]
            actions = give_streams(None, None, told)
            pid = spawn_program(sys.executable, command, os.environ, actions=actions)
        except OSError as error:
            raise DaemonUnreachableError(f"cannot start the MCP server: {error.strerror}") from error
        finally:
            os.close(told)
        answer = _read_answer(heard)
        # The child left at once; its own child is the server.
        os.waitpid(pid, 0 if answer.endswith(_READY) else os.WNOHANG)
    finally:
        os.close(heard)
    if not answer.endswith(_READY):
        raise _why(answer)


def _read_answer(heard: int) -> bytes:
    """Return what the server reported until it was ready, closed the pipe or took too long."""
    deadline, answer = time.monotonic() + START_LIMIT_S, b""
    while len(answer) < _ANSWER_BYTES and not answer.endswith(_READY):
        if not select.select([heard], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return answer
        part = os.read(heard, 4096)
        if not part:
            break
        answer += part
    return answer


def _why(answer: bytes) -> RelayError:
    lines = answer.strip().split(b"\n")
    try:
        return parse_refusal(parse_line(lines[-1]))
    except UntrustedDataError:
        said = lines[-1].decode("utf-8", "replace")[:200] or f"it was not ready after {START_LIMIT_S:.0f} s"
        return DaemonUnreachableError(f"the MCP server could not be started: {said}")
