"""Serve agents on this machine: check whose a request is, pass it on, and pass the answer back as it comes.

Bodies are streams both ways, with as much in memory as one read holds; nothing more is read than the other
side takes. What breaks off on one side is broken off on the other.
"""

import asyncio
import contextlib
import hmac
import json
import os
from collections.abc import AsyncIterator

import h11
import httpcore2 as httpcore

from agent_relay.faces.proxy._evidence import LegEvidence, ResponseNote
from agent_relay.faces.proxy._upstream import Headers, UnreachableError, Upstreams, pass_on
from agent_relay.store.proxied_legs import LOOPBACK, ProxiedLeg, Upstream, parse_target, read_proxied_leg
from agent_relay.system.net.reserved_port import find_owner

_READ_BYTES = 1 << 16
_HEAD_BYTES = 1 << 17
_BEGINNING_BYTES = 1 << 11
_SWITCHED = 101
_FRAMING = frozenset((b"transfer-encoding",))
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)


class BrokenError(Exception):
    """One side ended in the middle of a message, so that the other has to end, too."""


class KnownLegs:
    """The legs whose agents use the proxy, read from their folders when they are first heard of."""

    def __init__(self, legs_folder: str) -> None:
        self._folder = legs_folder
        self._known: dict[str, tuple[ProxiedLeg, LegEvidence]] = {}

    def find(self, leg_id: str, secret: str) -> tuple[ProxiedLeg, LegEvidence] | None:
        """Return the leg and its evidence; `None` if there is none of that id and secret. Reads disk once."""
        known = self._known.get(leg_id)
        if known is None:
            folder = os.path.join(self._folder, leg_id)
            leg = read_proxied_leg(folder)
            if leg is None:
                return None
            known = (leg, LegEvidence(folder, leg.keeps))
        if not hmac.compare_digest(known[0].secret.encode(), secret.encode("utf-8", "surrogateescape")):
            return None
        self._known[leg_id] = known
        return known

    def forget(self, alive: frozenset[str]) -> None:
        """Forget the legs that are not among those alive."""
        self._known = {leg_id: known for leg_id, known in self._known.items() if leg_id in alive}


class ProxyServer:
    """Serves connections of this user on `port`; `is_used` while there is any."""

    def __init__(self, legs: KnownLegs, port: int) -> None:
        self._legs = legs
        self._port = port
        self._upstreams = Upstreams()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def is_used(self) -> bool:
        """True while anyone is connected."""
        return bool(self._serving)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            if await self._is_ours(writer):
                await _Client(self._legs, self._upstreams, self._port, reader, writer).serve()
        except (OSError, BrokenError, h11.ProtocolError):
            # The other side has left or speaks something else than HTTP, or a provider contradicts itself.
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def close(self) -> None:
        """End every connection."""
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._upstreams.close()

    async def _is_ours(self, writer: asyncio.StreamWriter) -> bool:
        peer, own = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        return await asyncio.to_thread(find_owner, tuple(peer[:2]), tuple(own[:2])) == os.geteuid()


class _Client:
    """One connection of an agent: one request after the other."""

    def __init__(
        self,
        legs: KnownLegs,
        upstreams: Upstreams,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._legs = legs
        self._upstreams = upstreams
        self._hosts = {f"{LOOPBACK}:{port}".encode(), f"localhost:{port}".encode()}
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        self._has_body = asyncio.Event()
        self._beginning = b""
        self._watching: asyncio.Task[bool] | None = None

    async def serve(self) -> None:
        """Answer requests until one side ends the connection."""
        while True:
            self._has_body.clear()
            self._beginning = b""
            event = await self._next_event()
            if not isinstance(event, h11.Request):
                return
            if not await self._answer(event):
                return
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _answer(self, request: h11.Request) -> bool:
        """Answer one request, until the agent leaves; return whether the connection may go on."""
        answering = asyncio.create_task(self._pass_on(request))
        watching = self._watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and not watching.cancelled() and watching.result():
                return False
            return await answering
        finally:
            for task in (answering, watching):
                task.cancel()
            await asyncio.gather(answering, watching, return_exceptions=True)

    async def _watch(self) -> bool:
        """Return true once the agent has left while it is answered; false if it sends its next request."""
        await self._has_body.wait()
        data = await self._reader.read(_READ_BYTES)
        if data:
            self._http.receive_data(data)
        return not data

    async def _pass_on(self, request: h11.Request) -> bool:
        headers: Headers = request.headers.raw_items()
        hosts = [value for name, value in request.headers if name == b"host"]
        if hosts not in ([host] for host in self._hosts):
            return await self._refuse(421, "This proxy serves agents of agent-relay on this machine only.")
        found = parse_target(request.target.decode("ascii", "replace"))
        known = self._legs.find(found[0], found[1]) if found else None
        if found is None or known is None or found[2] >= len(known[0].routes):
            return await self._refuse(404, "No leg of agent-relay has this address.")
        leg, evidence = known
        route = leg.routes[found[2]]
        upstream = _choose(route.upstreams, headers)
        rest = found[3].removeprefix(route.prefix)
        try:
            response = await self._upstreams.send(
                leg, upstream, rest, method=request.method, headers=headers, body=self._iterate_body()
            )
        except UnreachableError as error:
            return await self._refuse(502, f"agent-relay's proxy cannot reach {upstream.url}: {error}")
        except _BROKEN as error:
            raise BrokenError from error
        client = next((value for name, value in request.headers if name == b"user-agent"), b"")
        note = ResponseNote(
            evidence,
            path=rest,
            client=client.decode("latin-1"),
            status=response.status,
            headers=response.headers,
        )
        if any(side.encode() in self._beginning for side in leg.sides):
            note.mark_side()
        try:
            if response.status == _SWITCHED:
                note.finish()
                await self._switch(response)
                return False
            return await self._send(response, note)
        except _BROKEN as error:
            raise BrokenError from error
        finally:
            note.finish()
            await response.aclose()

    async def _send(self, response: httpcore.Response, note: ResponseNote) -> bool:
        reason: bytes = response.extensions["reason_phrase"]
        headers = [item for item in pass_on(response.headers) if item[0].lower() not in _FRAMING]
        if any(name.lower() in _FRAMING for name, _ in response.headers):
            # A length beside chunks counts for nothing (RFC 9112, 6.3), and must not be passed on.
            headers = [item for item in headers if item[0].lower() != b"content-length"]
        await self._write(h11.Response(status_code=response.status, headers=headers, reason=reason))
        if not note.is_error:
            note.finish()
        held = b""
        try:
            async for data in response.aiter_stream():
                note.feed(data)
                # An error is noted before the agent has all of it and says in other words what it was.
                ready, held = (held, data) if note.is_error else (data, b"")
                await self._write(h11.Data(data=ready))
            note.finish()
        finally:
            await self._write(h11.Data(data=held))
        await self._write(h11.EndOfMessage())
        return True

    async def _switch(self, response: httpcore.Response) -> None:
        """Pass bytes both ways, whatever they are, until one side ends."""
        await self._has_body.wait()
        if self._watching is not None:
            # From here on what the agent sends is read below.
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._write(
            h11.InformationalResponse(status_code=_SWITCHED, headers=pass_on(response.headers), reason=b"")
        )
        stream = response.extensions["network_stream"]

        async def send() -> None:
            early, _ = self._http.trailing_data
            if early:
                await stream.write(early)
            while data := await self._reader.read(_READ_BYTES):
                await stream.write(data)

        async def receive() -> None:
            while data := await stream.read(_READ_BYTES):
                self._writer.write(data)
                await self._writer.drain()

        ways = [asyncio.create_task(send()), asyncio.create_task(receive())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _refuse(self, status: int, why: str) -> bool:
        """Answer in the form of a provider's error, and end the connection."""
        body = json.dumps({"error": {"type": "agent_relay_proxy", "message": why}}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        await self._write(h11.Response(status_code=status, headers=[*headers, ("Connection", "close")]))
        await self._write(h11.Data(data=body))
        await self._write(h11.EndOfMessage())
        return False

    async def _iterate_body(self) -> AsyncIterator[bytes]:
        if self._http.they_are_waiting_for_100_continue:
            await self._write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Data):
                data = bytes(event.data)
                self._beginning += data[: _BEGINNING_BYTES - len(self._beginning)]
                yield data
            elif isinstance(event, h11.EndOfMessage):
                self._has_body.set()
                return
            else:
                raise BrokenError

    async def _next_event(self) -> h11.Event | None:
        """Return the next event; `None` if there is none before this request is answered."""
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                return None
            self._http.receive_data(await self._reader.read(_READ_BYTES))

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _choose(upstreams: tuple[Upstream, ...], headers: Headers) -> Upstream:
    names = {name.lower().decode("ascii", "replace") for name, _ in headers}
    fitting = (one for one in upstreams if not one.header or one.header in names)
    return next(fitting, upstreams[-1])
