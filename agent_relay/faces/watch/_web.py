"""The watched sessions in a browser: one read-only page on loopback.

Connections that have not shown the page's token are limited in number and in time: a program that connects to
the port must not use up the descriptors of this one.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_relay.domain.errors import ExitCode, RelayError
from agent_relay.faces.render.output import print_lines
from agent_relay.faces.watch._watch_loop import LatestView, WatchLoop
from agent_relay.faces.watch.view import View, list_changes

MOST_UNAUTHENTICATED = 256
"""Most unauthenticated connections; more close the oldest: no browser's, which sends its request at once."""
UNAUTHENTICATED_LIMIT_S = 10.0
"""Longest time one of them may stay open, in seconds, whatever it does meanwhile."""

Address = tuple[str, int]


class ConnectionLimit:
    """Limits the number and time of unauthenticated connections; the oldest are closed first."""

    def __init__(self, *, most: int = MOST_UNAUTHENTICATED, limit_s: float = UNAUTHENTICATED_LIMIT_S) -> None:
        self._most = most
        self._limit_s = limit_s
        self._strangers: dict[Address, tuple[Callable[[], None], asyncio.TimerHandle]] = {}

    def enter(self, address: Address, end: Callable[[], None]) -> None:
        """Add a new connection; `end` closes it."""
        self._strangers[address] = end, asyncio.get_running_loop().call_later(self._limit_s, end)
        if len(self._strangers) > self._most:
            oldest, (end_oldest, _) = next(iter(self._strangers.items()))
            self.leave(oldest)
            end_oldest()

    def leave(self, address: Address) -> None:
        """Remove a connection that is closed, or has shown the token and may stay."""
        if stranger := self._strangers.pop(address, None):
            stranger[1].cancel()


def build_protocol(limit: ConnectionLimit) -> type[asyncio.Protocol]:
    """Build the server's protocol; its connections count for `limit` until they leave it."""

    class Counted(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base
            super().connection_made(transport)
            if self.client is None:
                transport.abort()  # they are gone again
            else:
                limit.enter(self.client, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                limit.leave(self.client)
            super().connection_lost(exc)

    return Counted


HOST = "127.0.0.1"
_PAGE = os.path.join(os.path.dirname(__file__), "page")
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/timeline.js": ("timeline.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_MOST_STREAMS = 16
_WAITING = 128
"""Most connections that the kernel queues for us, and that we take at once."""
_ALIVE_S = 15.0
"""Seconds until something is sent if nothing changed: only writing shows that a reader is gone."""
_HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}


def serve(loop: WatchLoop, port: int) -> int:
    """Serve the page until a Unix signal ends it; return the exit status.

    Raises RelayError if the port cannot be used.
    """
    listening = _listen(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    # Behind the `#` it is sent to nobody: not in a request, a log, or the address another page sees.
    print_lines(f"Watching at http://{HOST}:{port}/#{token}", "Press Ctrl-C to stop.")
    # Nobody finds the page without its token, also who reads the address from a log or a pipe.
    sys.stdout.flush()
    limit = ConnectionLimit()
    app = build_app(loop.start(), token, port, limit)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            http=build_protocol(limit),
            backlog=_WAITING,
        )
    )
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        loop.stop()
        listening.close()
    return 128 + signal.SIGTERM


def build_app(latest: LatestView, token: str, port: int, limit: ConnectionLimit) -> ASGIApp:
    """Build the page, its files, and the stream of events for clients that have the token."""
    board = _ViewBroadcast(latest)
    routes = [Route(path, _build_file(name, kind)) for path, (name, kind) in _FILES.items()]
    routes.append(Route("/events", _build_stream(board, token, limit)))
    app = Starlette(routes=routes, lifespan=lambda _app: board.kept())
    return _Guard(app, {f"{name}:{port}" for name in (HOST, "localhost")})


class _Guard:
    """Refuses requests under another host name (DNS rebinding), from another page, or to change something."""

    def __init__(self, app: ASGIApp, hosts: set[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS.items()]
            await send(message)

        headers = dict(scope["headers"])
        refusal = self._refuse(scope["method"], headers)
        return await (refusal or self._app)(scope, receive, send_guarded)

    def _refuse(self, method: str, headers: Mapping[bytes, bytes]) -> Response | None:
        if headers.get(b"host", b"").decode("latin-1").lower() not in self._hosts:
            return PlainTextResponse("not served under this host name", HTTPStatus.MISDIRECTED_REQUEST)
        if headers.get(b"sec-fetch-site", b"none") not in {b"none", b"same-origin"}:
            return PlainTextResponse("requests from other pages are refused", HTTPStatus.FORBIDDEN)
        if method not in {"GET", "HEAD"}:
            return PlainTextResponse("this page is read-only", HTTPStatus.METHOD_NOT_ALLOWED)
        return None


class _ViewBroadcast:
    """The newest view, for any number of readers, each at its own speed: nothing is queued for a slow one."""

    def __init__(self, latest: LatestView) -> None:
        self._latest = latest
        self._view: View | None = None
        self._changed = asyncio.Condition()
        self._wakers: set[asyncio.Task[None]] = set()
        self.streams = 0

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Let views arrive within this context."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._latest.fileno(), self._take)
        try:
            yield
        finally:
            loop.remove_reader(self._latest.fileno())
            for waker in self._wakers:
                waker.cancel()

    def _take(self) -> None:
        is_taken = False
        try:
            self._view = self._latest.take() or self._view
            is_taken = True
        finally:
            # A mistake of ours in a thread: told once by ending, not by a page that stands still.
            if not is_taken:
                signal.raise_signal(signal.SIGTERM)
        waker = asyncio.get_running_loop().create_task(self._wake())
        self._wakers.add(waker)
        waker.add_done_callback(self._wakers.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def tell(self) -> AsyncIterator[bytes]:
        """Yield everything as it is, then what changes, an event a line; an empty line if nothing does."""
        before: View | None = None
        while True:
            view = self._view
            if view is not None and view is not before:
                events = list_changes(before, view)
                yield b"".join(f"{json.dumps(one.model_dump(mode='json'))}\n".encode() for one in events)
                before = view
            elif not await self._wait(before):
                yield b"\n"

    async def _wait(self, before: View | None) -> bool:
        try:
            async with asyncio.timeout(_ALIVE_S), self._changed:
                await self._changed.wait_for(lambda: self._view is not before)
        except TimeoutError:
            return False
        return True


class _Stream(StreamingResponse):
    """The board's stream of events, counted from its very start: many requests may come at once."""

    def __init__(self, board: _ViewBroadcast) -> None:
        super().__init__(board.tell(), media_type="application/x-ndjson")
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._board.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._board.streams -= 1


def _build_file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    with open(os.path.join(_PAGE, name), "rb") as stream:
        contents = stream.read()

    async def answer(_request: Request) -> Response:
        return Response(contents, headers={"content-type": kind})

    return answer


def _build_stream(
    board: _ViewBroadcast, token: str, limit: ConnectionLimit
) -> Callable[[Request], Awaitable[Response]]:
    wanted = f"Bearer {token}".encode()

    async def answer(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode("utf-8", "replace")
        if not secrets.compare_digest(given, wanted):
            return PlainTextResponse(
                "open the address that was printed: it has the token", HTTPStatus.UNAUTHORIZED
            )
        if board.streams >= _MOST_STREAMS:
            return PlainTextResponse("too many pages are open", HTTPStatus.SERVICE_UNAVAILABLE)
        if request.client is not None:
            limit.leave((request.client.host, request.client.port))
        return _Stream(board)

    return answer


def _listen(port: int) -> socket.socket:
    """Return a socket that only this machine reaches. Raise RelayError if the port cannot be used."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        # At once: who reads the address may be faster than the server.
        listening.listen(_WAITING)
    except (OSError, OverflowError) as error:
        listening.close()
        raise RelayError(
            f"cannot listen on port {port} of {HOST}: {getattr(error, 'strerror', error)}",
            hint="Choose another one with --port, or none: any free one is taken",
        ) from error
    return listening
