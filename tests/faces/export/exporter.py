"""`agent-relay export` under way for tests, and what it serves."""

import contextlib
import http.client
import socket
from collections.abc import Iterator, Mapping

from tests.support.piped import Piped, piped
from tests.support.preloaded import Command

STARTED = "Press Ctrl-C to stop.\n"


def find_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
