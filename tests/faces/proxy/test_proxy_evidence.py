"""What the proxy notes for the detector: status codes and named headers, and none of the rest."""

import contextlib
import gzip
import json
import socket
import ssl
import subprocess

import pytest

from agent_relay.store.proxied_legs import Upstream
from tests.support.provider.errors import claude_limit, codex_limit, gemini_exhausted
from tests.support.proxied import (
    LIMIT_S,
    RawProvider,
    RunningProxy,
    add_leg,
    build_request,
    read_line,
    read_request,
    run_proxy,
    start_proxy,
)

pytestmark = pytest.mark.size("test")

KEEPS = ("retry-after", "x-window-*")


def render(status: int, headers: dict[str, str], body: bytes) -> bytes:
    """An answer as it goes over the wire."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return (
        "\r\n".join([f"HTTP/1.1 {status} Said", *lines, f"Content-Length: {len(body)}", "", ""]).encode()
        + body
    )


def note(
    running: RunningProxy, *answers: bytes, request: bytes = b"{}", **wishes: tuple[str, ...]
) -> list[dict[str, object]]:
    """What is noted of these answers, one for each request."""
    left = list(answers)

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(left.pop(0))

    provider = RawProvider(play)
    upstream = Upstream(f"http://{provider.address}")
    proxy = add_leg(running, upstream, **{"keeps": KEEPS, **wishes})
    with contextlib.closing(provider):
        for said in answers:
            lines = ("User-Agent: agent/1", "Authorization: Bearer sk-secret", "Cookie: sk-secret")
            got = proxy.ask(build_request(proxy, "/v1/messages?key=sk-secret", *lines, body=request))
            assert got.endswith(said.partition(b"\r\n\r\n")[2])
    return proxy.read_evidence()


def test_a_refusal_is_noted_with_its_reason_and_no_secret(running: RunningProxy) -> None:
    """The detector needs code, headers and kind; keys, prompts and answers stay out of the file."""
    body = {"error": {"type": "rate_limit_error", "message": "Try again later.", "prompt": "sk-secret"}}
    headers = {"Retry-After": "3600", "X-Window-Used": "0.92", "Set-Cookie": "sk-secret"}
    said = render(429, headers, json.dumps(body).encode())
    rows = note(running, said, request=b'{"prompt": "sk-secret"}')
    assert "sk-secret" not in json.dumps(rows)
    assert [{**row, "at": ""} for row in rows] == [
        {
            "at": "",
            "status": 429,
            "path": "/v1/messages",
            "client": "agent/1",
            "headers": {"retry-after": 3600, "x-window-used": 0.92},
            "error": {"type": "rate_limit_error", "message": "Try again later."},
            "text": "HTTP 429 at /v1/messages: rate_limit_error: Try again later.",
        }
    ]


def test_an_error_that_quotes_a_key_is_noted_without_it(running: RunningProxy) -> None:
    """Some providers say which key they refuse; the file is read by people who look for help."""
    key = "sk-ant-api03-" + "aB3" * 30
    body = {"error": {"type": "authentication_error", "message": f"invalid key {key}", "reason": key}}
    [row] = note(running, render(401, {}, json.dumps(body).encode()))
    assert key[:20] not in json.dumps(row)
    assert "invalid key [redacted" in str(row["text"])


def test_numbers_that_json_does_not_have_are_left_out(running: RunningProxy) -> None:
    """A line with NaN in it cannot be read again, and the limit it tells of would be lost."""
    body = (
        b'{"error": {"type": "rate_limit_error", "retry_after": NaN, "resets_at": 1e999, "code": -Infinity}}'
    )
    [row] = note(running, render(429, {}, body))
    assert row["error"] == {"type": "rate_limit_error"}


def test_a_compressed_refusal_is_read_and_passed_on_as_it_is(running: RunningProxy) -> None:
    """Agents accept gzip, and providers use it."""
    body = gzip.compress(json.dumps({"error": {"code": "insufficient_quota"}}).encode())
    rows = note(running, render(429, {"Content-Encoding": "gzip"}, body))
    assert rows[0]["text"] == "HTTP 429 at /v1/messages: insufficient_quota"


def test_answers_are_noted_when_a_window_has_changed(running: RunningProxy) -> None:
    """A window's use is told with every answer; only news is written."""
    one, two = ({"X-Window-Used": used} for used in ("41", "42"))
    talk = b'{"text": "HTTP 429: You\'ve hit your session limit"}'
    answers = [render(200, headers, talk) for headers in (one, one, two, {})]
    rows = note(running, *answers)
    assert [row["headers"] for row in rows] == [{"x-window-used": 41}, {"x-window-used": 42}]
    assert all("text" not in row and "error" not in row for row in rows)


def test_an_error_that_is_no_json_is_noted_by_its_status(running: RunningProxy) -> None:
    """Gateways answer with anything; it is passed on, and nothing ends because of it."""
    bodies = [b"", b"[]", b"\x00" * 100, b"[" * 100_000, b'{"error": [1]}', b'{"error": {"details": 7}}']
    rows = note(running, *(render(503, {}, body) for body in bodies))
    assert [row["text"] for row in rows] == ["HTTP 503 at /v1/messages"] * len(bodies)


def test_what_belongs_to_no_conversation_is_marked(running: RunningProxy) -> None:
    """A title that another provider refuses stops nobody."""
    said = render(429, {}, b"{}")
    sides = ("You are a title generator",)
    rows = note(running, said, request=b'{"system": "You are a title generator."}', sides=sides)
    assert rows[0]["side"] is True


def test_the_providers_own_reasons_are_found(running: RunningProxy) -> None:
    """Each provider's errors have a shape of their own."""
    for (status, headers, body), field, value in (
        (claude_limit(), "type", "rate_limit_error"),
        (codex_limit(), "type", "usage_limit_reached"),
        (gemini_exhausted(), "reason", "QUOTA_EXHAUSTED"),
    ):
        (row,) = note(running, render(status, headers, json.dumps(body).encode()))
        assert isinstance(row["error"], dict)
        assert row["error"][field] == value


@pytest.mark.size("every")
def test_a_provider_without_a_trusted_certificate_is_refused(tmp_path: object, running: RunningProxy) -> None:
    """Keys go to the provider, not to whoever answers in its place; the user's own certificates count."""
    key, certificate = f"{tmp_path}/key.pem", f"{tmp_path}/cert.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key]
    command += ["-out", certificate, *name]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def play(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            read_request(secured)
            secured.sendall(render(200, {}, b"secret answer"))

    provider = RawProvider(play)
    upstream = Upstream(f"https://localhost:{provider.address.partition(':')[2]}")
    with contextlib.closing(provider):
        proxy = add_leg(running, upstream)
        refused = proxy.ask(build_request(proxy, "/v1", body=b"{}"))
        proxy = add_leg(running, upstream, certificates=(certificate,))
        trusted = proxy.ask(build_request(proxy, "/v1", body=b"{}"))
    assert refused.startswith(b"HTTP/1.1 502 ")
    assert b"certificate verify failed" in refused
    assert trusted.endswith(b"secret answer")


@pytest.mark.size("every")
def test_there_is_one_proxy_and_the_next_gets_its_port(tmp_path: object) -> None:
    """Agents know the port: whoever takes over from a killed proxy serves them where they ask."""

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(render(200, {}, b"well"))

    provider = RawProvider(play)
    upstream = Upstream(f"http://{provider.address}")
    with contextlib.closing(provider), run_proxy(str(tmp_path)) as running:
        proxy = add_leg(running, upstream)
        second = start_proxy(proxy.home, port=proxy.port)
        assert read_line(second) == "another proxy is running"
        second.communicate(timeout=LIMIT_S)
        proxy.process.kill()
        proxy.process.wait(LIMIT_S)
        third = start_proxy(proxy.home, port=proxy.port)
        try:
            assert read_line(third) == f"ready {proxy.port}"
            assert proxy.ask(build_request(proxy, "/v1", body=b"{}")).endswith(b"well")
        finally:
            third.terminate()
            third.communicate(timeout=LIMIT_S)
