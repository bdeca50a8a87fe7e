"""Send requests to a server on this machine over HTTP/1.1; read responses as they come, in bounded memory."""

import asyncio
import base64
import contextlib
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from agent_relay.domain.errors import ConfigurationError

if TYPE_CHECKING:
    import h11

MAX_HEAD_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
_LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
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


class HttpResponse:
    """A server's response that is being read; close it when done."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: "h11.Connection"
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = connection

    async def read_event(self) -> object:
        """Return h11's next event; raise StreamError if what came is not valid HTTP."""
        import h11

        try:
            while (event := self._connection.next_event()) is h11.NEED_DATA:
                self._connection.receive_data(await self._reader.read(READ_BYTES))
        except h11.RemoteProtocolError as error:
            raise StreamError(f"the server's answer is not valid HTTP: {error}") from error
        return event

    async def read(self, wait_s: float) -> bytes:
        """Return the next bytes of the body, as they come; empty at its end.

        Raises TimeoutError if nothing came for `wait_s` seconds, StreamError and OSError.
        """
        import h11

        async with asyncio.timeout(wait_s):
            event = await self.read_event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

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
    import h11

    place = parse_url(url)
    async with asyncio.timeout(wait_s):
        reader, writer = await asyncio.open_connection(place.host, place.port)
        is_open = False
        try:
            connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
            writer.write(connection.send(_build_request(place, user, password)) or b"")
            writer.write(connection.send(h11.EndOfMessage()) or b"")
            await writer.drain()
            response = HttpResponse(reader, writer, connection)
            head = await response.read_event()
            while isinstance(head, h11.InformationalResponse):
                head = await response.read_event()
            if not isinstance(head, h11.Response):
                raise StreamError("the server ended the connection without an answer")
            if head.status_code != _OK:
                raise StreamError(f"the server answered {head.status_code}")
            is_open = True
        finally:
            if not is_open:
                writer.close()
        return response


def _build_request(place: ServerAddress, user: str, password: str) -> "h11.Request":
    import h11

    host = f"[{place.host}]" if ":" in place.host else place.host
    headers = [
        ("Host", f"{host}:{place.port}"),
        ("Accept", "text/event-stream, application/json"),
        ("Accept-Encoding", "identity"),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    if user or password:
        token = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape")).decode()
        headers.append(("Authorization", f"Basic {token}"))
    target = quote(place.target, safe=string.punctuation, errors="surrogateescape")
    return h11.Request(method="GET", target=target, headers=headers)
