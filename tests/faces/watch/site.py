"""Serves the page of `watch --web` and opens it in a real browser."""

import contextlib
import http.client
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from playwright.sync_api import Browser, sync_playwright

from tests.support.piped import Piped, piped
from tests.support.preloaded import Command

BROWSER = shutil.which("chromium-headless-shell")


@dataclass
class Site:
    """A served page: its command and where it is."""

    command: Piped
    port: int
    token: str

    @property
    def pid(self) -> int:
        """The process that serves it."""
        return self.command.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#{self.token}"

    def ask(self, method: str = "GET", path: str = "/", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; `Host` is right unless it is given."""
        with self.open(method, path, **headers) as answer:
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.readline() if answer.chunked else answer.read()

    @contextlib.contextmanager
    def open(
        self, method: str = "GET", path: str = "/", **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, its connection open until the end."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.putrequest(method, path, skip_host=True)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            for name, value in ({"Host": f"127.0.0.1:{self.port}"} | named).items():
                connection.putheader(name, value)
            connection.endheaders()
            with connection.getresponse() as answer:
                yield answer


@contextlib.contextmanager
def serve(cwd: str, environ: Mapping[str, str], *watched: str) -> Iterator[Site]:
    """The page of the sessions in a user's folder, or of the one named."""
    with piped(Command(["watch", "--web", *watched], environ, cwd)) as command:
        told = re.fullmatch(r"Watching at http://127\.0\.0\.1:(\d+)/#(\S+)\n", command.stdout.readline())
        assert told is not None
        yield Site(command, int(told[1]), told[2])


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A real browser without a screen."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()
