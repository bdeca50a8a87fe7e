"""`agent-relay export` under way for tests, and what it serves."""

import contextlib
import gzip
import http.client
import http.server
import socket
import threading
from collections.abc import Iterator, Mapping

from tests.support.piped import Piped, piped
from tests.support.preloaded import Command

STARTED = "Press Ctrl-C to stop.\n"


def find_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Listener(http.server.ThreadingHTTPServer):
    """A collector and a webhook on this machine, which answers each with `status`; what it heard, by path.

    Whoever it redirects is sent on to another path.
    """

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.heard: dict[str, list[bytes]] = {}
        self.logins: set[str] = set()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.heard.setdefault(self.path, []).append(body)
        self.server.logins.add(self.headers.get("Authorization", ""))
        self.send_response(self.server.status)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
        del format, args


@contextlib.contextmanager
def listen(status: int = 200) -> Iterator[Listener]:
    """One that runs."""
    with Listener(status) as listener:
        threading.Thread(target=listener.serve_forever, args=(0.05,)).start()
        yield listener
        listener.shutdown()


@contextlib.contextmanager
def export(cwd: str, environ: Mapping[str, str], *words: str) -> Iterator[Piped]:
    """The command with these words."""
    with piped(Command(["export", *words], environ, cwd)) as command:
        yield command


def wait_started(command: Piped) -> list[str]:
    """What it said until it had begun."""
    said = []
    while not said or said[-1] != STARTED:
        said.append(command.stdout.readline())
        assert said[-1], "it ended"
    return said


def ask(port: int, path: str = "/metrics", *, method: str = "GET", host: str = "") -> tuple[int, str]:
    """Status and text of one request."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
