"""Send requests to a server on this machine over HTTP/1.1; read responses as they come, in bounded memory."""

import asyncio
import base64
import contextlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent_relay.domain.errors import ConfigurationError

MAX_HEAD_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
_LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
_MAX_SIZE_LINE = 1024
_OK = 200


class StreamError(Exception):
    """The server refused, or its response is not valid HTTP."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A parsed URL."""

    host: str
    port: int
    target: str


def parse_url(url: str) -> ServerAddress:
    """Parse `url`; raise ConfigurationError unless it is plain HTTP on this machine, with a port."""
    try:
        parts = urlsplit(url)
        host, port = _LOOPBACK.get(parts.hostname or ""), parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme != "http" or any(ord(mark) <= ord(" ") for mark in url):
        raise ConfigurationError(
            "a source's URL is not plain HTTP with a port on this machine", hint="http://127.0.0.1:…"
        )
    target = parts.path or "/"
    return ServerAddress(host, port, f"{target}?{parts.query}" if parts.query else target)


class Body:
    """Decodes the body of a response: chunked, of known length, or until the connection ends."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.is_done = False
        self._buffer = b""
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._left = 0
        self._state = "size" if self._is_chunked else "data"
        length = headers.get("content-length")
        if not self._is_chunked and length is not None:
            self._left = _parse_size(length.encode(), 10)
            self._state = "rest"
            self.is_done = not self._left

    def feed(self, wire: bytes) -> bytes:
        """Return the body's bytes among `wire`; raise StreamError if chunks are not valid HTTP."""
        if self._state == "data":
            return wire
        self._buffer += wire
        parts: list[bytes] = []
        while not self.is_done and self._step(parts):
            pass
        return b"".join(parts)

    def _step(self, parts: list[bytes]) -> bool:
        if self._state in ("chunk", "rest"):
            part, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            self._left -= len(part)
            parts.append(part)
            if self._left:
                return False
            self.is_done = self._state == "rest"
            self._state = "gap"
            return True
        line, end, rest = self._buffer.partition(b"\n")
        if not end:
            if len(line) > _MAX_SIZE_LINE:
                raise StreamError("a chunk's size line never ends")
            return False
        self._buffer = rest
        if self._state == "gap":
            self._state = "size"
            return True
        self._left = _parse_size(line.split(b";")[0], 16)
        self._state = "chunk"
        self.is_done = not self._left
        return True


def _parse_size(text: bytes, radix: int) -> int:
    digits = text.strip()
    if not digits.isalnum() or len(digits) > 16:  # noqa: PLR2004 - 64 bits in hexadecimal
        raise StreamError("a length is no number")
    try:
        return int(digits, radix)
    except ValueError:
        raise StreamError("a length is no number") from None


class HttpResponse:
    """A server's response that is being read; close it when done."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: Body, first: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._body = body
        self._first = first

    async def read(self, wait_s: float) -> bytes:
        """Return the next bytes of the body, as they come; empty at its end.

        Raises TimeoutError if nothing came for `wait_s` seconds, StreamError and OSError.
        """
        while not self._body.is_done or self._first:
            wire, self._first = self._first, b""
            if not wire:
                wire = await asyncio.wait_for(self._reader.read(READ_BYTES), wait_s)
            if not wire:
                break
            if part := self._body.feed(wire):
                return part
        return b""

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def open_response(url: str, *, user: str, password: str, wait_s: float) -> HttpResponse:
    """Request `url` with GET, and return the response with its head read.

    Raises StreamError for any status but 200, TimeoutError if the head does not come within `wait_s`
    seconds, OSError if there is no listener.
    """
    place = parse_url(url)
    async with asyncio.timeout(wait_s):
        reader, writer = await asyncio.open_connection(place.host, place.port, limit=MAX_HEAD_BYTES)
        found = None
        try:
            writer.write(_build_request(place, user, password))
            await writer.drain()
            head, first = await _read_head(reader)
            found = HttpResponse(reader, writer, Body(_parse_head(head)), first)
        finally:
            if found is None:
                writer.close()
        return found


def _build_request(place: ServerAddress, user: str, password: str) -> bytes:
    host = f"[{place.host}]" if ":" in place.host else place.host
    lines = [
        f"GET {place.target} HTTP/1.1",
        f"Host: {host}:{place.port}",
        "Accept: text/event-stream, application/json",
        "Accept-Encoding: identity",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if user or password:
        token = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape")).decode()
        lines.append(f"Authorization: Basic {token}")
    return "".join(line + "\r\n" for line in [*lines, ""]).encode("latin-1", "replace")


async def _read_head(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        part = await reader.read(READ_BYTES)
        if not part or len(buffer) > MAX_HEAD_BYTES:
            raise StreamError("the server's answer has no end of its head")
        buffer += part
    head, _, first = buffer.partition(b"\r\n\r\n")
    return head, first


def _parse_head(head: bytes) -> dict[str, str]:
    status, *lines = head.decode("latin-1").split("\r\n")
    words = status.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1."):  # noqa: PLR2004 - version and code
        raise StreamError("what answers is no HTTP server")
    if words[1] != str(_OK):
        raise StreamError(f"the server answered {words[1][:3]}")
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
