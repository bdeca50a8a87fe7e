"""The page while others on the machine connect to it in numbers, and ask for nothing or never enough."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest
from starlette.types import Message

from agent_relay.faces.watch._watch_loop import LatestView
from agent_relay.faces.watch._web import MOST_UNAUTHENTICATED, ConnectionLimit, build_app
from tests.faces.cli_run import create_world
from tests.faces.watch.site import Site, serve
from tests.support.legs import wait_until


def count_files(site: Site) -> int:
    """The files and connections the page's process has open."""
    return len(os.listdir(f"/proc/{site.pid}/fd"))


def connect(site: Site) -> socket.socket:
    """A connection that asks for nothing yet."""
    return socket.create_connection(("127.0.0.1", site.port), 60)


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
    with serve(world.cwd, world.environ()) as found:
        yield found
        assert found.command.end(signal.SIGTERM) == 143
        assert found.command.stderr.read() == ""


@pytest.mark.size("test")
def test_a_flood_of_idle_connections_does_not_keep_the_users_browser_out(site: Site) -> None:
    """Anybody on the machine may connect; the page is the user's, and so are the process' files."""
    files, allowed = count_files(site), f"Bearer {site.token}"
    with contextlib.ExitStack() as stack:
        looking = stack.enter_context(site.open(path="/events", Authorization=allowed))
        assert json.loads(looking.readline())["type"] == "daemon"
        for _ in range(900):
            stack.enter_context(connect(site))
        page = stack.enter_context(site.open())
        assert (page.status, b"<html" in page.read()) == (200, True)
        again = stack.enter_context(site.open(path="/events", Authorization=allowed))
        assert (again.status, json.loads(again.readline())["type"]) == (200, "daemon")
        wait_until(
            lambda: count_files(site) <= files + MOST_UNAUTHENTICATED + 10,
            "the oldest connections to be let go of",
        )
        assert not is_over(looking.fileno())  # who looks on already is none of the crowd


@pytest.mark.size("every")
def test_a_connection_that_never_asks_is_ended(site: Site) -> None:
    """A byte now and then does not keep it."""
    with connect(site) as idle, connect(site) as slow:
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


async def _ask_at_once(count: int) -> tuple[Counter[int], Counter[int]]:
    """The statuses of so many who ask at once, and of as many after those have gone."""
    app = build_app(LatestView(), "token", 80, ConnectionLimit())
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "headers": [(b"host", b"localhost:80"), (b"authorization", b"Bearer token")],
        "query_string": b"",
    }

    async def ask_all() -> Counter[int]:
        told: asyncio.Queue[int] = asyncio.Queue()

        async def send(message: Message) -> None:
            await asyncio.sleep(0)
            if message["type"] == "http.response.start":
                told.put_nowait(int(message["status"]))

        async def receive() -> Message:
            await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        asking = [asyncio.create_task(app(dict(scope), receive, send)) for _ in range(count)]
        statuses = Counter([await told.get() for _ in asking])
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        return statuses

    return await ask_all(), await ask_all()


def test_no_more_look_on_than_may_also_where_all_ask_at_once() -> None:
    """Each is written everything that changes: hundreds of pages left open would cost a core."""
    at_first, again = asyncio.run(asyncio.wait_for(_ask_at_once(60), 30))
    assert (at_first, again) == ({200: 16, 503: 44}, {200: 16, 503: 44})
