"""The proxy's own process with a leg of a made-up agent, and a provider that says what a test says."""

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent_relay.store.proxied_legs import (
    EVIDENCE_FILE,
    ProxiedLeg,
    ProxyRoute,
    Upstream,
    create_secret,
    write_proxied_leg,
)

KEEPER = "01JD0000000000000000000PXY"
"""A leg that keeps a proxy at work until its test ends."""
_NUMBERS = itertools.count()
ENTRY = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "agent_relay/faces/proxy/__main__.py",
)
LIMIT_S = 60.0
READ_BYTES = 1 << 16
Script = Callable[[socket.socket], None]


@dataclass
class RawProvider:
    """Listens on this machine; `play` gets each connection in a thread of its own."""

    play: Script
    _socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.settimeout(LIMIT_S)
                threading.Thread(target=self._play, args=(connection,), daemon=True).start()

    def _play(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.play(connection)


@dataclass
class RunningProxy:
    """A proxy at work; requests for its leg's one route begin with `base`."""

    home: str
    port: int
    process: subprocess.Popen[str]
    leg: str = KEEPER
    secret: str = ""
    prefix: str = ""

    @property
    def host(self) -> str:
        """What agents write into their `Host` header."""
        return f"127.0.0.1:{self.port}"

    @property
    def base(self) -> str:
        """The path of the leg's base URL."""
        return f"/{self.leg}.{self.secret}/0{self.prefix}"

    @property
    def leg_folder(self) -> str:
        """The leg's folder."""
        return f"{self.home}/run/legs/{self.leg}"

    def connect(self) -> socket.socket:
        """A connection as an agent makes it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)

    def ask(self, request: bytes) -> bytes:
        """Everything that is answered to `request` until the connection ends."""
        with self.connect() as agent:
            agent.sendall(request)
            return read_all(agent)

    def read_evidence(self) -> list[dict[str, object]]:
        """The rows noted so far."""
        try:
            with open(f"{self.leg_folder}/{EVIDENCE_FILE}", encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []


def build_request(
    proxy: RunningProxy, path: str, *lines: str, body: bytes = b"", method: str = "POST"
) -> bytes:
    """A request for `path` below the leg's base URL; the connection ends with its answer."""
    head = [f"{method} {proxy.base}{path} HTTP/1.1", f"Host: {proxy.host}", "Connection: close", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode() + body


def read_all(connection: socket.socket) -> bytes:
    """All bytes until the other side ends."""
    parts = []
    while part := connection.recv(READ_BYTES):
        parts.append(part)
    return b"".join(parts)


def read_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """A message's head, its empty line included, and what came with it of the body."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(READ_BYTES)
        if not part:
            break
        data += part
    head, gap, rest = data.partition(b"\r\n\r\n")
    return head + gap, rest


def read_request(connection: socket.socket) -> tuple[bytes, bytes]:
    """A request's head and its whole body, by its length."""
    head, body = read_head(connection)
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    wanted = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < wanted:
        body += connection.recv(READ_BYTES)
    return head, body


def start_proxy(home: str, *, port: int = 0) -> subprocess.Popen[str]:
    """Start the process the daemon starts; its first line is what it tells the daemon."""
    env = {"AGENT_RELAY_HOME": home, "PATH": os.defpath}
    return subprocess.Popen(
        [sys.executable, "-I", ENTRY, str(port)], env=env, stdout=subprocess.PIPE, text=True
    )


def read_line(process: subprocess.Popen[str]) -> str:
    """What it tells, within a limit."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], LIMIT_S)[0]
    return process.stdout.readline().strip()


@contextlib.contextmanager
def run_proxy(home: str) -> Iterator[RunningProxy]:
    """A proxy to which legs may be added."""
    _write_leg(home, KEEPER, ProxiedLeg(create_secret(), ()))
    process = start_proxy(home)
    try:
        word, port = read_line(process).split()
        assert word == "ready"
        yield RunningProxy(home, int(port), process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)


def add_leg(
    proxy: RunningProxy,
    *upstreams: Upstream,
    prefix: str = "",
    keeps: tuple[str, ...] = (),
    sides: tuple[str, ...] = (),
    environ: dict[str, str] | None = None,
    certificates: tuple[str, ...] = (),
) -> RunningProxy:
    """The same proxy for another leg, whose route leads to `upstreams`."""
    leg, secret = f"01JD0000000000000000000{next(_NUMBERS):03}", create_secret()
    route = ProxyRoute(upstreams, prefix)
    _write_leg(proxy.home, leg, ProxiedLeg(secret, (route,), keeps, sides, environ or {}, certificates))
    return RunningProxy(proxy.home, proxy.port, proxy.process, leg, secret, prefix)


def _write_leg(home: str, leg: str, known: ProxiedLeg) -> None:
    folder = f"{home}/run/legs/{leg}"
    os.makedirs(folder, mode=0o700)
    write_proxied_leg(folder, known)
