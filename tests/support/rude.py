"""What no well-behaved program sends to the sockets of relay."""

import contextlib
import os
import random
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

HELLO = b'{"op":"hello","version":1,"client":"rude"}\n'


def say_all(folder: str, name: str, garbage: list[bytes]) -> None:
    """All of it was said to the socket, several at a time."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda data: say(folder, name, data), garbage))


def say(folder: str, name: str, data: bytes) -> bytes:
    """What the socket answers to `data` before it closes or falls silent."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            # Waits for room among those not yet let in: with a limit it would be refused at once.
            connection.connect(f"/proc/self/fd/{handle}/{name}")
            connection.settimeout(0.1)
            with contextlib.suppress(OSError):
                connection.sendall(data)
            with contextlib.suppress(OSError):
                while part := connection.recv(1 << 16):
                    answer += part
    finally:
        os.close(handle)
    return answer


def list_lines() -> list[bytes]:
    """Garbage for the daemon's socket: lines that are none, too long, too deep, or of the wrong kind."""
    chance = random.Random(3)  # noqa: S311 - reproducible, not secret
    wrong = (
        b'{"op":7}',
        b'{"op":"open"}',
        b'{"op":"open","id":1,"agent":"demo","cwd":5,"env":[]}',
        b'{"op":"open","id":{},"agent":"../../etc","cwd":"/","env":{}}',
        b'{"op":"use","session":"../../../etc/passwd","agent":"understudy"}',
        b'{"op":"session.stop","session":"\\ud800"}',
        b'{"op":"where","session":"' + b"A" * 1000 + b'"}',
        b'{"op":"open","agent":"demo","cwd":"/","rows":-1,"env":{}}',
        b'{"op":"open","agent":"demo","cwd":"/nowhere\\u0000","env":{}}',
    )
    return [
        b"",
        b"\n" * 1000,
        b"\0" * 100,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        chance.randbytes(100_000),
        b"x" * (3 << 20),
        b'{"op":"hello"',
        b'{"op":"hello","version":999}\n',
        *(HELLO + line + b"\n" for line in wrong),
        *(HELLO + b'{"op":"where","id":' + nested + b"}\n" for nested in _list_nested()),
        HELLO * 200,
    ]


def list_frames() -> list[bytes]:
    """Garbage for a holder's socket."""
    chance = random.Random(4)  # noqa: S311 - reproducible, not secret
    wrong = (
        b"[]",
        b'"hello"',
        b"\xff\xfe",
        b"{}",
        b'{"op":[]}',
        b'{"op":"input","data":7}',
        b'{"op":"input","data":"\\u2603"}',
        b'{"op":"resize","rows":0,"cols":-5}',
        b'{"op":"resize","rows":1e99,"cols":true}',
        b'{"op":"signal","signal":"SIGNOTHING"}',
        b'{"op":"signal","signal":9}',
        b'{"op":"tail","offset":-1,"limit":99999999999}',
        b'{"op":"attach","rows":24,"cols":80}',
        b'{"op":"attach","way":"socket","rows":"x"}',
        b'{"op":"collect"}',
    )
    return [
        b"",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        struct.pack(">I", (4 << 20) + 1) + b"x" * 1000,
        struct.pack(">I", 4 << 20) + b"x" * (4 << 20),
        struct.pack(">I", 1000) + b"{",
        chance.randbytes(100_000),
        *(struct.pack(">I", len(body)) + body for body in wrong),
        *(_frame(b'{"op":"hello","id":' + nested + b"}") for nested in _list_nested()),
    ]


def _list_nested() -> list[bytes]:
    """Ids as deep as can be read, and deeper: to write one takes more stack than to read it."""
    return [b"[" * depth + b"]" * depth for depth in (*range(950, 1001), 100_000)]


def _frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body
