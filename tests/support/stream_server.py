"""A scripted HTTP server on loopback: each connection gets the next answer, byte for byte."""

import asyncio
from collections.abc import Awaitable, Callable

Play = Callable[[asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(text: bytes) -> bytes:
    """One chunk on the wire."""
    return b"%x\r\n%s\r\n" % (len(text), text)


def event(number: int) -> bytes:
    """One event as a chunk."""
    return chunk(b'data: {"n":%d}\n\n' % number)


def say(*parts: bytes) -> Play:
    """Send these parts, then hang up."""

    async def play(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return play


def say_and_wait(*parts: bytes) -> Play:
    """Send these parts, then stay silent for ever."""

    async def play(writer: asyncio.StreamWriter) -> None:
        await say(*parts)(writer)
        await asyncio.Event().wait()

    return play


class StreamServer:
    """Plays `answers[path]` one after the other, the last one again and again; keeps the requests."""

    def __init__(self, answers: dict[str, list[Play]]) -> None:
        self.requests: list[bytes] = []
        self._answers = answers
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> int:
        """Listen; the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and hang up on everybody."""
        assert self._server is not None
        self._server.close()
        for task in list(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            plays = self._answers[head.split(b" ")[1].decode()]
            await (plays.pop(0) if len(plays) > 1 else plays[0])(writer)
        except (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        finally:
            self._busy.discard(task)
            writer.close()
