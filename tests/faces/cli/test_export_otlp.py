"""Figures are pushed to the address the user wrote, and nothing of theirs goes with them."""

import http.server
import threading
from pathlib import Path

import pytest

from agent_relay.client.export_loop import Newest
from agent_relay.faces.cli.export.otlp import start_otlp
from agent_relay.logic.exporting.figures import Figure


class Collector(http.server.ThreadingHTTPServer):
    """A collector that sends whoever pushes on to another path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[tuple[str, str]] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(307)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
        del format, args


def test_a_push_follows_no_redirect_and_takes_no_login_or_proxy_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address was checked, where it points to was not; logins in `.netrc` are other tools'."""
    logins = tmp_path / "netrc"
    logins.write_text("machine 127.0.0.1 login user password not-ours\n")
    logins.chmod(0o600)
    monkeypatch.setenv("NETRC", str(logins))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    newest = Newest()
    newest.put([Figure("turns", "counter", "Turns.", (), {(): 1.0})])
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, args=(0.05,)).start()
        start_otlp(newest, f"http://127.0.0.1:{collector.server_port}", interval_s=3600).shutdown()
        collector.shutdown()
    assert collector.heard == [("/v1/metrics", "")]
