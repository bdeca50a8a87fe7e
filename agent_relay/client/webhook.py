"""Tells a webhook what happened: in order, a few times at most, and never keeping anybody waiting."""

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from http import HTTPStatus
from typing import IO

from agent_relay import __version__

MOST_WAITING = 256
"""Events kept for a receiver that is slow or gone; above that the oldest are given up."""
WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Between two tries of the same event; after the last one it is given up."""
_LIMIT_S = 10.0
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Webhook:
    """One receiver. `sent` and `lost` count events; `trouble` is why the newest could not be told."""

    def __init__(self, url: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._url = url
        self._pause = pause
        self._waiting: queue.Queue[Mapping[str, object]] = queue.Queue(MOST_WAITING)
        # A machine's own receiver is not behind a proxy; a redirect would lead past the address's check.
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if url.startswith("http:"):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)
        self.sent = 0
        self.lost = 0
        self.trouble = ""

    def start(self) -> None:
        """From now on events are sent, by a thread that keeps no process waiting."""
        threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def put(self, event: Mapping[str, object]) -> None:
        """`event` will be sent; returns at once. Where too many wait, the oldest is given up for it."""
        while True:
            try:
                return self._waiting.put_nowait(event)
            except queue.Full:
                try:
                    self._waiting.get_nowait()
                    self.lost += 1
                except queue.Empty:
                    continue

    def send(self, event: Mapping[str, object]) -> bool:
        """Whether the receiver took it, after a few tries."""
        body = json.dumps(event).encode()
        for wait_s in (*WAITS_S, None):
            is_final = self._try(body)
            if is_final or wait_s is None:
                break
            self._pause(wait_s)
        is_sent = not self.trouble
        self.sent += is_sent
        self.lost += not is_sent
        return is_sent

    def _run(self) -> None:
        while True:
            self.send(self._waiting.get())

    def _try(self, body: bytes) -> bool:
        """Whether trying again would change nothing."""
        request = urllib.request.Request(  # noqa: S310 - https, or http to this machine: `check_address`
            self._url,
            body,
            {"Content-Type": "application/json", "User-Agent": f"agent-relay/{__version__}"},
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=_LIMIT_S):
                self.trouble = ""
                return True
        except urllib.error.HTTPError as error:
            with error:
                self.trouble = f"it answered {error.code}"
                is_theirs = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _AGAIN
                return not is_theirs
        except (OSError, ValueError, http.client.HTTPException) as error:
            # Also an answer that is none, from whatever listens there.
            self.trouble = f"it cannot be reached ({type(error).__name__})"
            return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - its base's arguments
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Nowhere: the address the user wrote is the only one that is told anything."""
        del req, fp, code, msg, headers, newurl
