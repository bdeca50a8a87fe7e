"""Serves the page of `watch --web` and opens it in a real browser."""

import contextlib
import http.client
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from playwright.sync_api import Browser, sync_playwright

from tests.support.measured import measured

BROWSER = shutil.which("chromium-headless-shell")


@dataclass
class Site:
    """A served page: its process and where it is."""

    process: "subprocess.Popen[str]"
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#{self.token}"

    def ask(self, method: str = "GET", path: str = "/", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; `Host` is right unless it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Host": f"127.0.0.1:{self.port}"} | named).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        body = answer.readline() if answer.chunked else answer.read()
        connection.close()
        return answer.status, found, body


@contextlib.contextmanager
def serve(cwd: str, environ: Mapping[str, str], *watched: str) -> Iterator[Site]:
    """The page of the sessions in a user's folder, or of the one named."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "watch", "--web", *watched],
        cwd=cwd,
        env={**environ, **measured()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        told = re.fullmatch(r"Watching at http://127\.0\.0\.1:(\d+)/#(\S+)\n", process.stdout.readline())
        assert told is not None
        yield Site(process, int(told[1]), told[2])
    finally:
        process.kill()
        process.wait(90)
        process.stdout.close()


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A real browser without a screen."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()
