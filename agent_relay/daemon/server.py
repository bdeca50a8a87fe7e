"""Serve the daemon's socket: greet, read one request a line, answer, send notices; clients are isolated."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping

from agent_relay import __version__
from agent_relay.domain import errors
from agent_relay.domain.protocol import wire
from agent_relay.domain.protocol.operations import Handler, Peer
from agent_relay.system.failures import find_outer_cause
from agent_relay.system.net.unix_sockets import peer_of

_log = logging.getLogger(__name__)

ANY_SESSION = "*"
_PENDING_LIMIT = 1024


class Subscription:
    """One subscriber's pending notices: a set of names, which stays small if the subscriber does not read."""

    __slots__ = ("_pending", "_something")

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._something = asyncio.Event()

    def add(self, session: str) -> None:
        """Note that `session` changed; above 1024 pending names there is only `*`, meaning any."""
        if len(self._pending) >= _PENDING_LIMIT:
            self._pending = {ANY_SESSION: None}
        if ANY_SESSION not in self._pending:
            self._pending[session] = None
        self._something.set()

    async def wait(self) -> list[str]:
        """Wait for a change; return the sessions changed since the last call, in order of first change."""
        await self._something.wait()
        self._something.clear()
        sessions = list(self._pending)
        self._pending.clear()
        return sessions


class Notices:
    """Passes changes of sessions to subscribers; use it from the event loop only."""

    __slots__ = ("_subscriptions",)

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def tell(self, session: str) -> None:
        """Notify every subscriber, when it can read that, that `session` changed; return at once."""
        for subscription in self._subscriptions:
            subscription.add(session)

    def subscribe(self) -> Subscription:
        """Return a subscription that gets notices from now on, until it is dropped."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """End the subscription; harmless when repeated."""
        self._subscriptions.discard(subscription)


CONNECTION_LIMIT = 400
"""Most connections: far above what faces open, and below half of the usual 1024 descriptors."""
HELLO_LIMIT_S = 5.0
"""Longest wait for a connection to say hello, in seconds; afterwards it may be silent for ever."""
_ID_LIMIT = 64
_OTHER_VERSION = "It may be of another version. Run: agent-relay daemon restart"
_BACKLOG = 512

Report = Callable[[BaseException, str], str]
"""Writes a crash report about an error and what was being done; returns its path or empty."""


class Server:
    """Serves `handlers` on a listening socket; `report` gets the errors no handler was meant to raise.

    `place` is sent with the greeting: the folders of the daemon's configuration and state.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        notices: Notices,
        *,
        uid: int,
        report: Report,
        place: Mapping[str, str],
        hello_limit_s: float = HELLO_LIMIT_S,
        connection_limit: int = CONNECTION_LIMIT,
    ) -> None:
        self._handlers = handlers
        self._notices = notices
        self._uid = uid
        self._report = report
        self._place = place
        self._hello_limit_s = hello_limit_s
        self._connection_limit = connection_limit
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Number of connected clients."""
        return len(self._tasks)

    async def start(self, listening: socket.socket) -> None:
        """Serve from now on; clients that connected before are served first."""
        self._listener = await asyncio.start_server(
            self._accept, sock=listening, limit=wire.LINE_LIMIT_BYTES, backlog=_BACKLOG
        )

    async def listen_again(self, listening: socket.socket) -> None:
        """Accept new clients on this socket; those connected stay."""
        before = self._listener
        await self.start(listening)
        if before is not None:
            before.close()

    def stop_listening(self) -> None:
        """Accept no new clients."""
        if self._listener is not None:
            self._listener.close()

    async def stop(self, *, limit_s: float = 2.0) -> None:
        """Notify and close every connection; one that takes longer than `limit_s` seconds is cut off."""
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit_s)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio runs this as a task
        self._tasks.add(task)
        line = _Line(reader, writer)
        try:
            await self._serve(line)
        except asyncio.CancelledError:
            line.say({"notice": wire.NOTICE_STOPPING})
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which is its right at any byte
        except Exception as error:  # noqa: BLE001 - the root of one connection's task
            self._report(error, "serving a connection")
        finally:
            line.close()
            self._tasks.discard(task)

    async def _serve(self, line: "_Line") -> None:
        try:
            peer = await self._greet(line)
        except errors.RelayError as error:
            await line.send(wire.render_line({"id": None, **wire.build_refusal(error), **_introduction()}))
            return
        sender: asyncio.Task[None] | None = None
        subscription: Subscription | None = None
        try:
            while True:
                try:
                    message = wire.parse_line(await line.read())
                except errors.UntrustedDataError as error:
                    await line.send(wire.render_line({"id": None, **wire.build_refusal(error)}))
                    return
                if message.get("op") == wire.OP_SUBSCRIBE and subscription is None:
                    subscription = self._notices.subscribe()
                    sender = asyncio.create_task(_send_notices(line, subscription))
                await line.send(await self._answer(message, peer))
                # A client with a full buffer of requests must let the others have their turn.
                await asyncio.sleep(0)
        finally:
            if sender is not None and subscription is not None:
                self._notices.drop(subscription)
                sender.cancel()

    async def _greet(self, line: "_Line") -> Peer:
        """Return the peer after a hello of our version; first turn away strangers and one client too many."""
        pid, uid = line.credentials()
        if uid != self._uid:
            _log.warning("stranger uid=%d", uid)
            raise errors.DaemonUnreachableError("this daemon serves another user")
        if len(self._tasks) > self._connection_limit:
            _log.warning("crowded connections=%d", len(self._tasks))
            raise errors.DaemonUnreachableError(
                f"the daemon already serves {self._connection_limit} connections",
                hint="Close some terminals, or run: agent-relay daemon restart",
            )
        try:
            async with asyncio.timeout(self._hello_limit_s):
                message = wire.parse_line(await line.read())
        except TimeoutError:
            raise errors.UntrustedDataError(f"no hello came within {self._hello_limit_s:g} s") from None
        if message.get("op") != wire.OP_HELLO:
            raise errors.WrongUseError("the first message of a connection must be hello")
        if message.get("version") != wire.WIRE_VERSION:
            raise errors.DaemonUnreachableError(
                f"the running daemon ({__version__}) speaks protocol {wire.WIRE_VERSION},"
                " not the one asked for",
                hint="Run: agent-relay daemon restart",
            )
        client = message.get("client")
        await line.send(
            wire.render_line({"id": _id_of(message), "ok": True, **_introduction(), **self._place})
        )
        return Peer(pid, uid, client[:_ID_LIMIT] if isinstance(client, str) else "")

    async def _answer(self, message: dict[str, object], peer: Peer) -> bytes:
        """Return the answer's line; make a refusal of whatever goes wrong."""
        op, number = message.get("op"), _id_of(message)
        try:
            answer = {**await self._perform(op, message, peer), "id": number, "ok": True}
            return wire.render_line(answer)
        except errors.RelayError as error:
            refusal = wire.build_refusal(error)
        except Exception as error:  # noqa: BLE001 - the root of one request; the daemon lives on
            path = self._report(error, f"answering {op}")
            refusal = wire.build_refusal(_tell_failure(op, path, error))
        return wire.render_line({"id": number, **refusal})

    async def _perform(self, op: object, message: dict[str, object], peer: Peer) -> Mapping[str, object]:
        if op == wire.OP_SUBSCRIBE:
            return {}
        handler = self._handlers.get(op) if isinstance(op, str) else None
        if handler is None or not isinstance(op, str):
            raise errors.WrongUseError("the daemon does not know this operation", hint=_OTHER_VERSION)
        fields = {name: value for name, value in message.items() if name not in ("op", "id")}
        return await handler(fields, peer)


class _Line:
    """One connection's stream: whole lines in, whole lines out, one writer at a time.

    What waits to be sent is bounded: a sender waits until the client took nearly all of it.
    """

    __slots__ = ("_reader", "_turn", "_writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()

    def credentials(self) -> tuple[int, int]:
        sock = self._writer.get_extra_info("socket")
        return peer_of(sock)

    async def read(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise errors.UntrustedDataError(f"a line is longer than {wire.LINE_LIMIT_BYTES} bytes") from None

    async def send(self, line: bytes) -> None:
        async with self._turn:
            self._writer.write(line)
            await self._writer.drain()

    def say(self, message: Mapping[str, object]) -> None:
        """Send the message if that is possible at once: for connections that are being closed."""
        if not self._turn.locked():
            self._writer.write(wire.render_line(message))

    def close(self) -> None:
        """Close the connection; what the socket has taken still goes out, the rest is dropped."""
        transport = self._writer.transport
        if transport.get_write_buffer_size():
            transport.abort()
        else:
            transport.close()


async def _send_notices(line: _Line, subscription: Subscription) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            for session in await subscription.wait():
                await line.send(wire.render_line({"notice": wire.NOTICE_SESSION, "session": session}))


def _tell_failure(op: object, report: str, error: Exception) -> errors.RelayError:
    """Return the error a client gets for an unexpected one; `report` is the path of its crash report."""
    if why := find_outer_cause(error):
        return errors.RelayError(
            f"the daemon could not do that just now: {why}", hint="Try again in a moment."
        )
    hint = f"A crash report without contents is in {report}" if report else ""
    return errors.OurBugError(f"an internal error occurred in the daemon while it answered {op}", hint=hint)


def _introduction() -> dict[str, object]:
    return {"version": wire.WIRE_VERSION, "daemon": __version__, "pid": os.getpid()}


def _id_of(message: Mapping[str, object]) -> int | str | None:
    number = message.get("id")
    if isinstance(number, str):
        return number[:_ID_LIMIT]
    return number if isinstance(number, int) and abs(number) < 1 << 63 else None
