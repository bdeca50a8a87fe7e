"""The page while others on the machine connect to it in numbers, and ask for nothing or never enough."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from agent_relay.faces.watch._web import MOST_UNAUTHENTICATED, ConnectionLimit
from tests.faces.cli_run import create_world
from tests.support.legs import wait_until
from tests.support.measured import measured


@dataclass
class Site:
    """A served page."""

    pid: int
    port: int
    token: str

    @contextlib.contextmanager
    def ask(self, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """The answer, its connection open until the end."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as answer:
                yield answer

    def connect(self) -> socket.socket:
        """A connection that asks for nothing yet."""
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def count_files(self) -> int:
        """The files and connections the page's process has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def is_over(handle: int) -> bool:
    """Whether the other side of a connection has hung up."""
    with socket.socket(fileno=os.dup(handle)) as seen:
        try:
            return seen.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page of a user without sessions."""
    world = create_world(f"{tmp_path_factory.mktemp('crowd')}")
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "watch", "--web"],
        cwd=world.cwd,
        env=world.environ() | measured(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = re.fullmatch(r"Watching at http://127\.0\.0\.1:(\d+)/#(\S+)\n", process.stdout.readline())
    assert told is not None
    yield Site(process.pid, int(told[1]), told[2])
    process.terminate()
    assert process.communicate(timeout=60)[1] == ""


@pytest.mark.size("test")
def test_a_flood_of_idle_connections_does_not_keep_the_users_browser_out(site: Site) -> None:
    """Anybody on the machine may connect; the page is the user's, and so are the process' files."""
    files, allowed = site.count_files(), f"Bearer {site.token}"
    with contextlib.ExitStack() as stack:
        looking = stack.enter_context(site.ask("/events", Authorization=allowed))
        assert json.loads(looking.readline())["type"] == "daemon"
        for _ in range(900):
            stack.enter_context(site.connect())
        page = stack.enter_context(site.ask("/"))
        assert (page.status, b"<html" in page.read()) == (200, True)
        again = stack.enter_context(site.ask("/events", Authorization=allowed))
        assert (again.status, json.loads(again.readline())["type"]) == (200, "daemon")
        wait_until(
            lambda: site.count_files() <= files + MOST_UNAUTHENTICATED + 10,
            "the oldest connections to be let go of",
        )
        assert not is_over(looking.fileno())  # who looks on already is none of the crowd


@pytest.mark.size("test")
def test_a_connection_that_never_asks_is_ended(site: Site) -> None:
    """A byte now and then does not keep it."""
    with site.connect() as idle, site.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")

        def are_over() -> bool:
            with contextlib.suppress(OSError):
                slow.sendall(b"x")
            return is_over(idle.fileno()) and is_over(slow.fileno())

        wait_until(are_over, "the connections' end")


def test_the_oldest_gives_way_and_who_left_is_not_ended() -> None:
    """Whoever came last is about to ask; who showed the token stays, whatever comes."""

    async def crowd_in() -> list[int]:
        crowd, ended, are_all = ConnectionLimit(most=2, limit_s=0.05), list[int](), asyncio.Event()

        def end(number: int) -> None:
            ended.append(number)
            if len(ended) == 4:
                are_all.set()

        for number in range(5):
            crowd.enter(("127.0.0.1", number), partial(end, number))
            if number == 1:
                crowd.leave(("127.0.0.1", 1))
        assert ended == [0, 2]
        await are_all.wait()
        return ended

    assert sorted(asyncio.run(crowd_in())) == [0, 2, 3, 4]
