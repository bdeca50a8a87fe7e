"""The MCP server: one process for all agents of this user, started by the daemon, gone when nobody uses it.

Each connection comes from a pipe: its first line names the leg and the token of the agent behind it, which
go with every call to the daemon. Nothing is kept here that a restart would lose.
"""

import importlib
import os
import sys

if not __package__:
    # Started by its path in isolated mode: run the very package this file belongs to, and let it hide
    # nothing else that lies beside it.
    _root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.path.insert(0, _root)
    importlib.import_module("agent_relay")
    sys.path.remove(_root)
    sys.path.append(_root)

import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_relay import __version__
from agent_relay.client.autostart import connect_or_start
from agent_relay.domain.errors import DaemonUnreachableError, ExitCode, RelayError
from agent_relay.domain.protocol.agent_fields import NOTE_KEY
from agent_relay.domain.protocol.wire import LINE_LIMIT_BYTES, build_refusal, render_line
from agent_relay.faces.cli.dispatch import missing_extra
from agent_relay.faces.mcp._tools import BY_NAME, INSTRUCTIONS, TOOLS, RelayTool
from agent_relay.system.disk.folder_alarm import identify
from agent_relay.system.disk.folders import Folders, ensure_private, get_folders
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.unix_sockets import connect, listen, peer_of

if TYPE_CHECKING:
    import mcp_types
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

NAME = "agent-relay"
IDLE_S = 15.0
"""Seconds the server stays without a connection: agents come and go in a handoff."""
HELLO_S = 10.0
LEAVE_S = 5.0
"""Longest time for a server that no longer listens to exit, in seconds."""
READY = b"ready\n"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller named in a connection's first line; the daemon checks whether that is true."""

    leg: str = ""
    token: str = ""


def parse_caller(line: bytes) -> Caller:
    """Parse the first line of a pipe, `LEG TOKEN`; a dash stands for what it does not have."""
    words = [word if word != "-" else "" for word in line.decode("ascii", "replace").split()]
    return Caller(*words) if len(words) == len(Caller.__dataclass_fields__) else Caller()


def call_tool(folders: Folders, caller: Caller, name: str, given: Mapping[str, object]) -> str:
    """Return the answer of the tool as text. Raise RelayError if there is no such tool, or it refuses.

    A daemon that a person has stopped is not started.
    """
    tool = BY_NAME.get(name)
    if tool is None:
        raise RelayError(f"there is no tool {name[:40]!r}", hint=f"Known: {', '.join(BY_NAME)}")
    fields = {key: value for key, value in given.items() if key in tool.takes and value is not None}
    sent = {**fields, **tool.always, "leg": caller.leg, "token": caller.token}
    with connect_or_start(folders, unless_stopped=True) as connection:
        answer = connection.request(tool.operation, limit_s=tool.answer_s, **sent)
    return render_answer({key: value for key, value in answer.items() if key not in {"ok", "id"}})


def render_answer(answer: Mapping[str, object]) -> str:
    """Render the daemon's answer for an agent: quoted texts line by line, all else as JSON."""
    quoted = answer.get("turns")
    if not isinstance(quoted, list):
        return json.dumps(answer, ensure_ascii=False, indent=1)
    from agent_relay.packet.render import prefix_lines

    lacks = answer.get("lacks")
    lines = [str(answer.get("about", "")), *map(str, lacks if isinstance(lacks, list) else ())]
    for turn in quoted:
        lines += [f"\nTurn {turn['turn']} of {turn['agent']}", prefix_lines(str(turn["text"]))]
    if NOTE_KEY in answer:
        lines.append(f"\n{answer[NOTE_KEY]}")
    return "\n".join(lines)


def build_server(folders: Folders, caller: Caller) -> "Server[dict[str, object]]":
    """Return the server of one connection."""
    import mcp_types
    from mcp.server.lowlevel import Server

    async def list_tools(
        _context: "ServerRequestContext[dict[str, object]]",
        _asked: "mcp_types.PaginatedRequestParams | None",
    ) -> "mcp_types.ListToolsResult":
        return mcp_types.ListToolsResult(tools=[_describe(tool) for tool in TOOLS])

    async def answer(
        _context: "ServerRequestContext[dict[str, object]]", asked: "mcp_types.CallToolRequestParams"
    ) -> "mcp_types.CallToolResult":
        try:
            text = await asyncio.to_thread(call_tool, folders, caller, asked.name, asked.arguments or {})
        except RelayError as error:
            text = ". ".join(part for part in (error.sentence, error.hint) if part)
            return mcp_types.CallToolResult(content=[_build_text(text)], is_error=True)
        return mcp_types.CallToolResult(content=[_build_text(text)])

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=answer,
    )


def _describe(tool: RelayTool) -> "mcp_types.Tool":
    import mcp_types

    return mcp_types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=tool.build_schema(),
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False
        ),
    )


def _build_text(text: str) -> "mcp_types.TextContent":
    import mcp_types

    return mcp_types.TextContent(type="text", text=text)


class ConnectionCounter:
    """Counts the connections of a server, and ends it when there has been none for a while."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._count = 0
        self.is_over = asyncio.Event()
        self._timer = self._wait()

    def _wait(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._idle_s, self.is_over.set)

    def enter(self) -> None:
        """Note a connection."""
        self._count += 1
        self._timer.cancel()

    def leave(self) -> None:
        """Note the end of a connection."""
        self._count -= 1
        if not self._count:
            self._timer = self._wait()


async def serve(folders: Folders, listening: socket.socket, *, idle_s: float = IDLE_S) -> None:
    """Serve pipes until there has been none for `idle_s` seconds, or SIGTERM comes."""
    counter = ConnectionCounter(idle_s)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, counter.is_over.set)
    accept = partial(_accept, folders, counter)
    server = await asyncio.start_unix_server(accept, sock=listening, limit=LINE_LIMIT_BYTES)
    async with server:
        await counter.is_over.wait()


async def _accept(
    folders: Folders,
    counter: ConnectionCounter,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    counter.enter()
    try:
        if peer_of(writer.get_extra_info("socket"))[1] == os.geteuid():
            async with asyncio.timeout(HELLO_S):
                first = await reader.readline()
            await _converse(build_server(folders, parse_caller(first)), reader, writer)
    except (OSError, ValueError, TimeoutError):
        pass  # it is gone, or sends what is no line
    finally:
        counter.leave()
        writer.close()


async def _converse(
    server: "Server[dict[str, object]]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve one connection until its pipe closes it."""
    import anyio

    to_server, from_agent = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    to_agent, from_server = anyio.create_memory_object_stream["SessionMessage"](0)
    reading = asyncio.create_task(_read(reader, to_server))
    writing = asyncio.create_task(_write(writer, from_server))
    try:
        await server.run(from_agent, to_agent, server.create_initialization_options())
    finally:
        for task in (reading, writing):
            task.cancel()
        await asyncio.gather(reading, writing, return_exceptions=True)


async def _read(
    reader: asyncio.StreamReader, to_server: "MemoryObjectSendStream[SessionMessage | Exception]"
) -> None:
    import mcp_types
    from mcp.shared.message import SessionMessage

    async with to_server:
        # A line that is too long ends the connection: nobody knows where the next one begins.
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await to_server.send(error)
                    continue
                await to_server.send(SessionMessage(message))


async def _write(
    writer: asyncio.StreamWriter, from_server: "MemoryObjectReceiveStream[SessionMessage]"
) -> None:
    async with from_server:
        with contextlib.suppress(OSError):
            async for one in from_server:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()


def main() -> int:
    """Become this user's one MCP server, or leave at once if there is one; return the exit code.

    Standard error says that the server is ready, or why it cannot be, and is then closed.
    """
    if os.fork():
        return ExitCode.DONE  # whoever started us need not wait for the end
    told = os.dup(2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        return _run(get_folders(), told)
    except RelayError as error:
        os.write(told, render_line(build_refusal(error)))
        return error.code


def _run(folders: Folders, told: int) -> int:
    ensure_private(folders.runtime)
    lock = take_lock(folders.mcp_lock, limit_s=LEAVE_S)
    if lock is None:
        # There is another one; on a busy machine it may take long to leave.
        _check_listener(folders)
        os.write(told, READY)
        return ExitCode.DONE
    try:
        build_server(folders, Caller())
    except ModuleNotFoundError as error:
        raise missing_extra(error, "mcp") from None
    try:
        listening = listen(folders.mcp_socket)
    except OSError as error:
        raise DaemonUnreachableError(f"cannot listen at {folders.mcp_socket}: {error.strerror}") from error
    own = identify(folders.mcp_socket)
    os.write(told, READY)
    os.close(told)
    try:
        asyncio.run(serve(folders, listening))
    finally:
        # Whoever comes now must find nobody, and have the next one started, which waits for nothing.
        if identify(folders.mcp_socket) == own:
            os.unlink(folders.mcp_socket)
        os.close(lock)
    return ExitCode.DONE


def _check_listener(folders: Folders) -> None:
    """Raise DaemonUnreachableError unless a server listens."""
    try:
        connect(folders.mcp_socket, timeout_s=LEAVE_S).close()
    except OSError:
        raise DaemonUnreachableError("another MCP server is about to exit: ask again") from None


if __name__ == "__main__":
    sys.exit(main())
