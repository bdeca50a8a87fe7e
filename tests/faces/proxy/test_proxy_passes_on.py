"""What the proxy passes on between an agent and its provider: everything, as it comes, and nothing else."""

import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator

import pytest

from agent_relay.faces.proxy._upstream import find_user_proxy
from agent_relay.store.proxied_legs import Upstream
from tests.support.proxied import (
    RawProvider,
    RunningProxy,
    Script,
    add_leg,
    build_request,
    read_all,
    read_head,
    read_request,
    run_proxy,
)

pytestmark = pytest.mark.size("every")

EVERY_BYTE = bytes(range(256)) * 300
STREAMS = 200
EVENT = b'event: ping\ndata: {"type": "ping"}\n\n'


@contextlib.contextmanager
def open_pair(running: RunningProxy, play: Script) -> Iterator[RunningProxy]:
    """A proxy in front of a provider that plays `play`."""
    with contextlib.closing(RawProvider(play)) as provider:
        yield add_leg(running, Upstream(f"http://{provider.address}/v1"), prefix="/v1")


def answer(connection: socket.socket, head: bytes, body: bytes = b"") -> None:
    """Send an answer whose length is that of `body`."""
    connection.sendall(b"HTTP/1.1 " + head + f"\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@pytest.mark.size("test")
def test_a_request_and_its_answer_arrive_byte_for_byte(running: RunningProxy) -> None:
    """Signatures, spelling of headers and bodies of any bytes must survive; only the host is another."""
    seen: list[tuple[bytes, bytes]] = []

    def play(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        answer(
            connection,
            b"299 Quite Fine\r\nX-ODD-Case: a  b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2",
            EVERY_BYTE,
        )

    with open_pair(running, play) as proxy:
        lines = (
            "X-Api-KEY: sk-secret",
            "Accept: */*",
            "accept: text/plain",
            "Content-Type: application/json",
        )
        got = proxy.ask(build_request(proxy, "/messages?beta=true&k=%2F", *lines, body=EVERY_BYTE))
    head, body = seen[0]
    provider = head.split(b"Host: ")[1].split(b"\r\n")[0]
    assert head == (
        b"POST /v1/messages?beta=true&k=%2F HTTP/1.1\r\nHost: " + provider + b"\r\nX-Api-KEY: sk-secret\r\n"
        b"Accept: */*\r\naccept: text/plain\r\nContent-Type: application/json\r\n"
        b"Content-Length: 76800\r\n\r\n"
    )
    assert body == EVERY_BYTE
    assert got == (
        b"HTTP/1.1 299 Quite Fine\r\nX-ODD-Case: a  b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        b"Content-Length: 76800\r\nConnection: close\r\n\r\n" + EVERY_BYTE
    )


@pytest.mark.size("test")
def test_each_event_of_a_stream_arrives_before_the_next_is_sent(running: RunningProxy) -> None:
    """An agent shows words as they are written: a proxy that waits for more is seen at once."""
    arrived = threading.Semaphore(0)

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
            assert arrived.acquire(timeout=60)
        connection.sendall(b"0\r\n\r\n")

    with open_pair(running, play) as proxy, proxy.connect() as agent:
        agent.sendall(build_request(proxy, "/messages", body=b"{}"))
        _, stream = read_head(agent)
        for number in range(1, 21):
            while stream.count(EVENT) < number:
                part = agent.recv(1 << 16)
                assert part
                stream += part
            arrived.release()
        assert (stream + read_all(agent)).endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("lengths", [(), ("Content-Length: 4",)], ids=["one length", "two lengths"])
def test_a_request_is_passed_on_while_it_is_sent_and_has_one_length(
    running: RunningProxy, lengths: tuple[str, ...]
) -> None:
    """A long upload must not gather in memory: its first bytes are there before its last are written.

    Connections to a provider are shared: where one request ends there must never be in doubt.
    """
    begun, seen = threading.Event(), list[bytes]()

    def play(connection: socket.socket) -> None:
        head, rest = read_head(connection)
        seen.append(head)
        while b"first" not in rest:
            rest += connection.recv(1 << 16)
        begun.set()
        while b"0\r\n\r\n" not in rest:
            rest += connection.recv(1 << 16)
        answer(connection, b"200 OK")

    with open_pair(running, play) as proxy, proxy.connect() as agent:
        request = build_request(proxy, "/up", *lengths, "Transfer-Encoding: chunked")
        agent.sendall(request + b"5\r\nfirst\r\n")
        assert begun.wait(60)
        agent.sendall(b"4\r\nlast\r\n0\r\n\r\n")
        assert read_all(agent).startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Transfer-Encoding: chunked" in seen[0]
    assert b"content-length" not in seen[0].lower()


def test_an_answer_of_two_lengths_arrives_whole(running: RunningProxy) -> None:
    """Chunks count, whatever length is named beside them; the agent is told of one way only."""

    def play(connection: socket.socket) -> None:
        read_request(connection)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"a\r\n0123456789\r\n0\r\n\r\n")

    with open_pair(running, play) as proxy:
        said = proxy.ask(build_request(proxy, "/messages", body=b"{}"))
        assert said.endswith(b"a\r\n0123456789\r\n0\r\n\r\n")
        assert b"content-length" not in said.lower()


def test_a_connection_serves_one_request_after_the_other(running: RunningProxy) -> None:
    """Agents keep their connections; the provider's is kept, too."""
    connections = []

    def play(connection: socket.socket) -> None:
        connections.append(connection)
        while read_request(connection)[0]:
            answer(connection, b"200 OK", b"again")

    with open_pair(running, play) as proxy, proxy.connect() as agent:
        for _ in range(5):
            head = f"GET {proxy.base}/models HTTP/1.1\r\nHost: {proxy.host}\r\n\r\n"
            agent.sendall(head.encode())
            _, body = read_head(agent)
            while len(body) < len(b"again"):
                body += agent.recv(1 << 16)
            assert body == b"again"
    assert len(connections) == 1


def test_two_hundred_streams_flow_at_once(running: RunningProxy) -> None:
    """Subagents and parallel sessions share the one proxy: none waits for another's end."""
    together = threading.Barrier(STREAMS)

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
        together.wait(120)
        connection.sendall(b"4\r\nover\r\n0\r\n\r\n")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with open_pair(running, play) as proxy, contextlib.ExitStack() as agents:
        opened = [agents.enter_context(proxy.connect()) for _ in range(STREAMS)]
        for agent in opened:
            agent.sendall(build_request(proxy, "/messages", body=b"{}"))
        answers = [read_all(agent) for agent in opened]
    assert all(one.endswith(b"5\r\nbegun\r\n4\r\nover\r\n0\r\n\r\n") for one in answers)


def test_what_is_not_taken_is_not_read(tmp_path: object) -> None:
    """An agent that stops reading stops its provider; the proxy's memory does not grow with the answer."""
    sent = 0
    stopped = threading.Event()
    whole = 64 << 20

    def play(connection: socket.socket) -> None:
        nonlocal sent
        read_request(connection)
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {whole}\r\n\r\n".encode())
        connection.settimeout(1.0)
        piece = bytes(1 << 16)
        while sent < whole:
            try:
                sent += connection.send(piece[: whole - sent])
            except TimeoutError:
                stopped.set()
                connection.settimeout(60)

    with run_proxy(str(tmp_path)) as running, open_pair(running, play) as proxy, proxy.connect() as agent:
        agent.sendall(build_request(proxy, "/messages", body=b"{}"))
        assert stopped.wait(60)
        assert sent < whole // 2
        with open(f"/proc/{proxy.process.pid}/status", encoding="utf-8") as file:
            peak_kb = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        assert len(read_all(agent).partition(b"\r\n\r\n")[2]) == whole
    assert peak_kb < 120 << 10


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun",
    ],
)
def test_an_answer_that_breaks_off_breaks_off_for_the_agent(running: RunningProxy, begun: bytes) -> None:
    """An agent retries what was cut; an answer ended tidily would pass for whole."""

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(begun)

    with open_pair(running, play) as proxy:
        got = proxy.ask(build_request(proxy, "/messages", body=b"{}"))
    assert got.endswith(b"begun\r\n" if b"chunked" in begun else b"begun")
    assert not got.endswith(b"0\r\n\r\n")


@pytest.mark.size("test")
def test_an_agent_that_leaves_ends_its_request(running: RunningProxy) -> None:
    """A turn that is interrupted must not go on at the provider, where it costs money."""
    ended = threading.Event()

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
        if not connection.recv(1):
            ended.set()

    with open_pair(running, play) as proxy:
        with proxy.connect() as agent:
            agent.sendall(build_request(proxy, "/messages", body=b"{}"))
            read_head(agent)
        assert ended.wait(60)


def test_a_provider_that_says_nothing_looks_as_it_does_without_the_proxy(running: RunningProxy) -> None:
    """A connection closed before an answer is a network error to the agent, which retries it itself."""

    def play(connection: socket.socket) -> None:
        read_request(connection)

    with open_pair(running, play) as proxy:
        assert proxy.ask(build_request(proxy, "/messages", body=b"{}")) == b""


@pytest.mark.size("test")
def test_a_provider_that_cannot_be_reached_is_named(running: RunningProxy) -> None:
    """The person reads whose fault it is; the agent retries a 502."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = add_leg(running, Upstream(f"http://127.0.0.1:{port}"))
    got = proxy.ask(build_request(proxy, "/v1/messages", body=b"{}"))
    assert proxy.read_evidence() == []
    assert got.startswith(b"HTTP/1.1 502 ")
    assert f"agent-relay's proxy cannot reach http://127.0.0.1:{port}".encode() in got


@pytest.mark.size("test")
def test_a_changed_protocol_is_passed_on_as_bytes(running: RunningProxy) -> None:
    """Codex speaks to its provider by a WebSocket."""

    def play(connection: socket.socket) -> None:
        head, _ = read_head(connection)
        assert b"Upgrade: websocket\r\n" in head
        assert b"Connection: Upgrade\r\n" in head
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi"
        )
        connection.sendall(connection.recv(1 << 16).upper())

    with open_pair(running, play) as proxy, proxy.connect() as agent:
        head = [f"GET {proxy.base}/responses HTTP/1.1", f"Host: {proxy.host}", "Upgrade: websocket"]
        agent.sendall("\r\n".join([*head, "Connection: Upgrade", "", ""]).encode())
        head_back, came = read_head(agent)
        agent.sendall(b"\x81frame")
        assert head_back.startswith(b"HTTP/1.1 101 ")
        assert came + read_all(agent) == b"hi\x81FRAME"


@pytest.mark.size("test")
def test_others_are_refused(running: RunningProxy) -> None:
    """A page in a browser, or a program that guesses, reaches nobody through the proxy."""
    with open_pair(running, lambda _: None) as proxy:
        for target, host, status in (
            (f"{proxy.base}/messages", "evil.example", 421),
            (f"{proxy.base}/messages", "127.0.0.1", 421),
            (f"/{proxy.leg}.wrong/0/messages", proxy.host, 404),
            ("/", proxy.host, 404),
            ("/v1/messages", proxy.host, 404),
            ("http://evil.example/", proxy.host, 404),
            (f"/{proxy.leg}.{proxy.secret}/9/m", proxy.host, 404),
        ):
            got = proxy.ask(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert got.startswith(f"HTTP/1.1 {status} ".encode()), (target, host)


def test_garbage_ends_its_connection_alone(running: RunningProxy) -> None:
    """Whatever is sent to the port, others are served."""

    def play(connection: socket.socket) -> None:
        read_request(connection)
        answer(connection, b"200 OK", b"well")

    with open_pair(running, play) as proxy:
        tls, huge = b"\x16\x03\x01\x02\x00\x01\x00", b"A" * (1 << 20)
        for garbage in (tls, b"GET\r\n\r\n", huge, b"CONNECT a:1 HTTP/1.1\r\n\r\n"):
            with proxy.connect() as rude, contextlib.suppress(OSError):
                rude.sendall(garbage)
                rude.shutdown(socket.SHUT_WR)
                read_all(rude)
            said = proxy.ask(build_request(proxy, "/messages", body=b"{}"))
            assert said.endswith(b"well"), garbage[:20]


@pytest.mark.size("check")
def test_the_users_own_proxy_is_used_where_they_say() -> None:
    """In a company's network the provider is reached by no other way."""
    rows: list[tuple[dict[str, str], str, str]] = [
        ({}, "https://api.example.com", ""),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://api.example.com", "http://p:3128"),
        ({"https_proxy": "p:3128"}, "https://api.example.com", "http://p:3128"),
        ({"HTTPS_PROXY": "http://p:3128"}, "http://api.example.com", ""),
        ({"ALL_PROXY": "http://p:3128"}, "http://api.example.com", "http://p:3128"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com"}, "https://api.example.com", ""),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "api.example.com:443"}, "https://api.example.com", ""),
        ({"HTTPS_PROXY": "http://p", "no_proxy": "*"}, "https://api.example.com", ""),
    ]
    assert [(environ, url, find_user_proxy(environ, url)) for environ, url, _ in rows] == rows


def test_requests_go_through_the_users_own_proxy(running: RunningProxy) -> None:
    """The variables of the agent's own terminal count, with the password that stands in them."""
    seen: list[bytes] = []

    def play(connection: socket.socket) -> None:
        seen.append(read_request(connection)[0])
        answer(connection, b"200 OK", b"by proxy")

    company = RawProvider(play)
    environ = {"HTTP_PROXY": f"http://me:pass%40word@{company.address}"}
    upstream = Upstream("http://api.example.com/v1")
    proxy = add_leg(running, upstream, environ=environ)
    with contextlib.closing(company):
        assert proxy.ask(build_request(proxy, "/messages", body=b"{}")).endswith(b"by proxy")
    assert seen[0].startswith(b"POST http://api.example.com/v1/messages HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGFzc0B3b3Jk\r\n" in seen[0]
    assert os.path.exists(proxy.leg_folder)
