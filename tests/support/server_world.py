"""A server in the test's own process, with handlers that misbehave on request."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping

from agent_relay.daemon.server import Notices, Server
from agent_relay.domain.errors import NobodyAvailableError
from agent_relay.domain.protocol.operations import Peer
from agent_relay.system.net.unix_sockets import listen

HELLO = b'{"op":"hello","version":1,"client":"test"}\n'
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class World:
    """A server in this process, and what it reported."""

    def __init__(self, path: str, *, uid: int | None = None, hello_limit_s: float = 60) -> None:
        self.path = path
        self.notices = Notices()
        self.reports: list[tuple[str, str]] = []
        self.release = asyncio.Event()
        handlers = {
            "echo": self._echo,
            "wait": self._wait,
            "refuse": self._refuse,
            "break": self._break,
            "big": self._big,
        }
        self.server = Server(
            handlers,
            self.notices,
            uid=os.geteuid() if uid is None else uid,
            report=self._report,
            place={},
            hello_limit_s=hello_limit_s,
            connection_limit=250,
        )

    def _report(self, error: BaseException, doing: str) -> str:
        self.reports.append((type(error).__name__, doing))
        return "/the/report"

    async def _echo(self, sent: Mapping[str, object], peer: Peer) -> Mapping[str, object]:
        return {"fields": dict(sent), "pid": peer.pid, "client": peer.client}

    async def _wait(self, _sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        await self.release.wait()
        return {"waited": True}

    async def _refuse(self, _sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        raise NobodyAvailableError("everybody rests", hint="Wait.")

    async def _break(self, _sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        raise KeyError("sk-secret")

    async def _big(self, sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        return {"text": "x" * int(str(sent["size"]))}

    async def connect(self, *, hello: bool = True) -> Streams:
        reader, writer = await asyncio.open_unix_connection(self.path, limit=1 << 21)
        if hello:
            writer.write(HELLO)
            assert (await read(reader))["ok"] is True
        return reader, writer

    async def ask(self, streams: Streams, **message: object) -> dict[str, object]:
        streams[1].write(json.dumps(message).encode() + b"\n")
        return await read(streams[0])


async def read(reader: asyncio.StreamReader) -> dict[str, object]:
    async with asyncio.timeout(60):
        found: dict[str, object] = json.loads(await reader.readline())
        return found


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the server has no event for what is awaited
            await asyncio.sleep(0.005)


async def play(world: World, test: Awaitable[None]) -> None:
    """The test, beside the server of its world."""
    await world.server.start(listen(world.path))
    try:
        await test
    finally:
        await world.server.stop()
    assert world.server.connections == 0
