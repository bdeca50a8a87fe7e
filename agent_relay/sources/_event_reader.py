"""Listen to one event stream of a leg over HTTP as long as the leg lives, and request what was missed."""

import asyncio
import base64
import contextlib
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from agent_relay.agents.source_paths import LegPlace, expand_text
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.limits import Record, Source
from agent_relay.sources.record_fields import find_record_time
from agent_relay.sources.record_framing import MAX_RECORD_BYTES, Data, build_framer, parse_object

if TYPE_CHECKING:
    import h11

MAX_HEAD_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
_LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
_OK = 200


class StreamError(Exception):
    """The server refused, or its response is not valid HTTP."""


class ServerAddress(msgspec.Struct, frozen=True):
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
            # What it says of it may be what the server sent.
            is_cut = self._connection.trailing_data == (b"", True)
            why = "the server closed the stream" if is_cut else "the server's answer is not valid HTTP"
            raise StreamError(why) from error
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


CONNECT_S = 5.0
QUIET_S = 60.0
SNAPSHOT_S = 5.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
_FIRST_GAP_S = 1.0
_LONGEST_GAP_S = 300.0

Deliver = Callable[[list[Record]], None]
_Snapshot = tuple[str, Mapping[str, object]]


class EventReader:
    """Listens to the agent's server on this machine, with growing pauses while it does not answer.

    On each new connection the snapshots are requested too, after the stream is open, so that nothing between
    them is missed. A snapshot that fails, as with a server that is still starting, is requested again when
    events come, with growing gaps. `nudge` ends a pause early: something changed, the server may be up now.
    `quiet_s` is how long a connected server may be silent before the connection is made anew.
    """

    def __init__(
        self, spec: SourceSpec, place: LegPlace, deliver: Deliver, *, quiet_s: float = QUIET_S
    ) -> None:
        self.spec = spec
        self.trouble = ""
        self._deliver = deliver
        self._quiet_s = quiet_s
        self._nudge = asyncio.Event()
        self._pause_s = FIRST_PAUSE_S
        self._task: asyncio.Task[None] | None = None
        self.update(place)

    def update(self, place: LegPlace) -> None:
        """Use the leg's values, and begin to listen once all are known.

        Raises ConfigurationError for a URL that is not plain HTTP on this machine.
        """
        url, user = expand_text(self.spec.path, place), expand_text(self.spec.user, place)
        password = expand_text(self.spec.password, place)
        found = [(expand_text(one.url, place), one.each) for one in self.spec.snapshots]
        snapshots = [(address, each) for address, each in found if address is not None]
        if self._task is not None or url is None or user is None or password is None:
            return
        if len(snapshots) < len(found):
            return
        for address in (url, *(address for address, _ in snapshots)):
            parse_url(address)
        self._url, self._snapshots, self._user, self._password = url, snapshots, user, password
        self._task = asyncio.get_running_loop().create_task(self._listen())

    def nudge(self) -> None:
        """End the present pause, if there is one."""
        self._nudge.set()

    def stop(self) -> None:
        """Stop listening; the connection is dropped when the loop next runs."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop listening, and return when the connection is dropped."""
        self.stop()
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
                self.trouble = "the server closed the stream"
            except (OSError, StreamError, TimeoutError) as error:
                self.trouble = str(error) or "the server is silent"
            self._nudge.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), self._pause_s)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    async def _hear(self) -> None:
        answer = await self._ask(self._url)
        try:
            self.trouble = ""
            untold, gap_s = await self._hear_snapshots(self._snapshots), _FIRST_GAP_S
            framer, again_at = build_framer(self.spec.framing), 0.0
            while chunk := await answer.read(self._quiet_s):
                self._pause_s = FIRST_PAUSE_S
                self._send(framer.feed(chunk), self._url)
                now = asyncio.get_running_loop().time()
                if untold and now >= again_at:
                    untold = await self._hear_snapshots(untold)
                    again_at, gap_s = now + gap_s, min(2 * gap_s, _LONGEST_GAP_S)
        finally:
            await answer.close()

    async def _hear_snapshots(self, asked: Sequence[_Snapshot]) -> list[_Snapshot]:
        """Request the server's state and deliver it; return the snapshots that failed.

        The stream is listened to even if some fail.
        """
        untold = []
        for address, each in asked:
            try:
                async with asyncio.timeout(SNAPSHOT_S):
                    text = await self._fetch(address)
            except (OSError, StreamError, TimeoutError) as error:
                self.trouble = str(error) or "the server does not say its state"
                untold.append((address, each))
                continue
            data = parse_object(text)
            if data is not None:
                self._send(_shape(data, each), address)
        if not untold:
            self.trouble = ""
        return untold

    async def _fetch(self, url: str) -> bytes:
        answer = await self._ask(url)
        text = b""
        try:
            while chunk := await answer.read(SNAPSHOT_S):
                text += chunk
                if len(text) > MAX_RECORD_BYTES:
                    raise StreamError("the server's state is too long")
        finally:
            await answer.close()
        return text

    async def _ask(self, url: str) -> HttpResponse:
        return await open_response(url, user=self._user, password=self._password, wait_s=CONNECT_S)

    def _send(self, found: list[Data], where: str) -> None:
        source = Source(self.spec.role)
        records = [Record(source, data, find_record_time(data), where) for data in found]
        if records:
            self._deliver(records)


def _shape(data: Data, each: Mapping[str, object]) -> list[Data]:
    """Convert the snapshot into records: itself, or one for each entry in the shape of an event."""
    if not each:
        return [data]
    shaped = (_fill(each, key, value) for key, value in data.items())
    return [record for record in shaped if isinstance(record, dict)]


def _fill(shape: object, key: str, value: object) -> object:
    if isinstance(shape, Mapping):
        return {name: _fill(part, key, value) for name, part in shape.items()}
    if shape == "$key":
        return key
    return value if shape == "$value" else shape
