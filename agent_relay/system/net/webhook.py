"""Notify somebody elsewhere: by a webhook, in order and each try limited in time, or on the desktop."""

import html
import http.client
import json
import os
import queue
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from email.message import Message
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import IO, Self

from agent_relay import __version__
from agent_relay.system.net.delivery_report import DeliveryCounter
from agent_relay.system.programs import Ending, run_program
from agent_relay.system.spawn import keep_absolute

Address = tuple[int, int, int, str, tuple[str | int, ...] | tuple[int, bytes]]
"""Family, type, protocol, canonical name (not used) and address, as `getaddrinfo` returns them."""
LookUp = Callable[[str, int], Sequence[Address]]


def ask_system(host: str, port: int) -> Sequence[Address]:
    """Resolve the host by the system, for a stream connection. Raise OSError, UnicodeError."""
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


class Resolver:
    """Calls `look_up` in a thread that does not keep the process alive, and never twice at once.

    A caller that asks while one question hangs waits for its answer: a name server that is gone costs one
    thread.
    """

    def __init__(self, look_up: LookUp = ask_system) -> None:
        self._look_up = look_up
        self._turn = threading.Lock()
        self._asked: tuple[str, int] | None = None
        self._answer: Future[Sequence[Address]] = Future()

    def find(self, host: str, port: int, limit_s: float) -> Sequence[Address]:
        """Resolve the host. Raise OSError, UnicodeError for no host, TimeoutError after `limit_s`."""
        ends_at = time.monotonic() + limit_s
        while True:
            asked, answer = self._ask((host, port))
            wait([answer], max(0.0, ends_at - time.monotonic()))
            if not answer.done():
                raise TimeoutError
            if asked == (host, port):
                return answer.result()

    def _ask(self, name: tuple[str, int]) -> tuple[tuple[str, int], Future[Sequence[Address]]]:
        """Return the question under way, this one if there was none, and its answer."""
        with self._turn:
            if self._asked is None or self._answer.done():
                self._asked, self._answer = name, Future()
                threading.Thread(
                    target=self._run, args=(name, self._answer), name="resolve", daemon=True
                ).start()
            return self._asked, self._answer

    def _run(self, name: tuple[str, int], answer: Future[Sequence[Address]]) -> None:
        try:
            found = self._look_up(*name)
            answer.set_result(found)
        except (OSError, ValueError, OverflowError) as error:
            answer.set_exception(error)
        finally:
            # Whatever else it ended with is shown where threads fail; who asks next asks anew.
            if not answer.done():
                answer.set_exception(OSError("the look-up failed"))


class Deadline:
    """Ends the connections it makes or watches at the latest `limit_s` seconds after it is entered.

    A socket's time limit is one for each of its calls, and starts anew with every byte. Names are looked up
    by `resolver`, within the same limit.
    """

    def __init__(self, limit_s: float, resolver: Resolver) -> None:
        self._limit_s = limit_s
        self._ends_at = 0.0
        self._resolver = resolver
        self._turn = threading.Lock()
        self._held: list[socket.socket] = []
        self._timer = threading.Timer(limit_s, self._hang_up)
        self._timer.daemon = True
        self.is_over = False

    def __enter__(self) -> Self:
        """Start the time limit."""
        self._ends_at = time.monotonic() + self._limit_s
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching the connections."""
        self._timer.cancel()
        with self._turn:
            for one in self._held:
                one.close()
            self._held.clear()

    def connect(
        self, address: tuple[str, int], timeout: float | None, source: tuple[str, int] | None = None
    ) -> socket.socket:
        """Return a connection that ends with the deadline, to the first address of the host that accepts one.

        Raise OSError, and TimeoutError if no address does in time.
        """
        trouble = OSError(f"no address is known for {address[0]}")
        for found in self._resolver.find(*address, self._find_left()):
            try:
                made = self._reach(found, source)
            except OSError as error:
                trouble = error
                continue
            made.settimeout(timeout)
            return self.watch(made)
        raise trouble

    def _reach(self, found: Address, source: tuple[str, int] | None) -> socket.socket:
        family, kind, protocol, _, place = found
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(self._find_left())
            if source is not None:
                made.bind(source)
            made.connect(place)
        except OSError:
            made.close()
            raise
        return made

    def _find_left(self) -> float:
        """Return how many seconds are left. Raise TimeoutError if none are."""
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def watch(self, made: socket.socket) -> socket.socket:
        """Return `made`, which ends with the deadline whatever wraps it. Raise TimeoutError if it is over."""
        with self._turn:
            if self.is_over:
                made.close()
                raise TimeoutError
            self._held.append(made.dup())
        return made

    def _hang_up(self) -> None:
        with self._turn:
            self.is_over = True
            for one in self._held:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # they hung up before


MOST_WAITING = 256
"""Events kept for a receiver that is slow or gone; beyond that the oldest are given up."""
WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Seconds between two tries of the same event; after the last one it is given up."""
_LIMIT_S = 10.0
"""Longest time for one try from its beginning to the answer, in seconds, even if bytes keep coming."""
LATE = "it does not answer in time"
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Webhook:
    """One receiver; `deliveries` counts events, and has the reason why the newest could not be delivered."""

    def __init__(
        self,
        url: str,
        deliveries: DeliveryCounter,
        *,
        pause: Callable[[float], None] = time.sleep,
        limit_s: float = _LIMIT_S,
        look_up: LookUp = ask_system,
    ) -> None:
        self._url = url
        self._deliveries = deliveries
        self._pause = pause
        self._limit_s = limit_s
        self._resolver = Resolver(look_up)
        self._waiting: queue.Queue[Mapping[str, object]] = queue.Queue(MOST_WAITING)
        self._is_sending = False

    def start(self) -> None:
        """Start sending events, in a thread that does not keep the process alive."""
        threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def put(self, event: Mapping[str, object]) -> None:
        """Queue `event` for sending; return at once. If too many wait, the oldest is given up for it."""
        while True:
            try:
                return self._waiting.put_nowait(event)
            except queue.Full:
                try:
                    self._waiting.get_nowait()
                    self._deliveries.note(lost=1)
                except queue.Empty:
                    continue

    def send(self, event: Mapping[str, object]) -> bool:
        """Send the event, with a few tries; return whether the receiver took it."""
        body = json.dumps(event).encode()
        for wait_s in (*WAITS_S, None):
            trouble, is_final = self._try(body)
            is_final = is_final or wait_s is None
            self._deliveries.note(taken=not trouble, lost=bool(trouble) and is_final, trouble=trouble)
            if is_final or wait_s is None:
                break
            self._pause(wait_s)
        return not trouble

    def end(self) -> None:
        """Give up what still waits, and count it as lost."""
        self._deliveries.note(lost=self._waiting.qsize() + self._is_sending)

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            self._is_sending = True
            self.send(event)
            self._is_sending = False

    def _try(self, body: bytes) -> tuple[str, bool]:
        """Try once; return why it failed, empty if it did not, and whether that is final."""
        request = urllib.request.Request(  # noqa: S310 - https, or http to this machine: `check_address`
            self._url,
            body,
            {"Content-Type": "application/json", "User-Agent": f"agent-relay/{__version__}"},
            method="POST",
        )
        with Deadline(self._limit_s, self._resolver) as deadline:
            try:
                with _build_opener(self._url, deadline).open(request, timeout=self._limit_s):
                    # The library takes the end of a connection for the end of an answer.
                    return (LATE, False) if deadline.is_over else ("", True)
            except urllib.error.HTTPError as error:
                with error:
                    is_theirs = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _AGAIN
                    return f"it answered {error.code}", not is_theirs
            except (OSError, ValueError, http.client.HTTPException) as error:
                # Also an answer that is none, from whatever listens there.
                return describe_failure(error, is_late=deadline.is_over), False


def describe_failure(error: Exception, *, is_late: bool) -> str:
    """Describe for people why nothing was delivered; `is_late` if the deadline ended the connection."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if is_late or isinstance(reason, TimeoutError):
        return LATE
    if isinstance(reason, OSError) and reason.strerror:
        return f"it cannot be reached ({reason.strerror})"
    return f"it cannot be reached ({type(reason).__name__})"


def _build_opener(url: str, deadline: Deadline) -> urllib.request.OpenerDirector:
    # A machine's own receiver is not behind a proxy; a redirect would lead past the address's check.
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), _Handler(deadline)]
    if url.startswith("http:"):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


class _Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections, encrypted or not, that end with the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Return the answer, if one comes before the deadline."""
        return self.do_open(partial(_Connection, self._deadline), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Return the answer, if one comes before the deadline."""
        return self.do_open(partial(_EncryptedConnection, self._deadline), req)


class _Connection(http.client.HTTPConnection):
    def __init__(self, deadline: Deadline, host: str, /, *, timeout: float | None) -> None:
        super().__init__(host, timeout=timeout)
        self._create_connection = deadline.connect


class _EncryptedConnection(_Connection, http.client.HTTPSConnection):
    """A `_Connection` over TLS."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - its base's arguments
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow no redirect: events go only to the address the user wrote."""
        del req, fp, code, msg, headers, newurl


_PROGRAM = "notify-send"
_DESKTOP_LIMIT_S = 5.0
_KEPT = ("HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "LANG")
"""Variables the program needs to reach the desktop; it gets no others, and so no keys."""


def find_desktop(environ: Mapping[str, str]) -> str:
    """Return the program that shows a notification; empty without one, or without a session bus."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    has_bus = bool(environ.get("DBUS_SESSION_BUS_ADDRESS")) or (
        os.path.isabs(runtime) and os.path.exists(os.path.join(runtime, "bus"))
    )
    if not has_bus:
        return ""
    return shutil.which(_PROGRAM, path=keep_absolute(environ.get("PATH", ""))) or ""


def show_on_desktop(
    environ: Mapping[str, str], title: str, text: str, *, limit_s: float = _DESKTOP_LIMIT_S
) -> str:
    """Show the notification; return why that failed, empty if it did not, or if there is no desktop.

    The program runs in this process's folder, which is `/` where the daemon asks: no folder is kept in use.
    """
    program = find_desktop(environ)
    if not program:
        return ""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    # Desktops read the text, and only the text, as a little HTML.
    command = [program, "--app-name=agent-relay", "--", title, html.escape(text, quote=False)]
    answer = run_program(
        command, limit_s=limit_s, environ={**kept, "PATH": keep_absolute(environ.get("PATH", ""))}
    )
    match answer.ending:
        case Ending.LATE | Ending.LONG:
            return answer.ending.name.lower()
        case Ending.NOT_STARTED:
            return type(OSError(answer.errno, answer.why)).__name__
    return f"status-{answer.status}" if answer.status else ""
