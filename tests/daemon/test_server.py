import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from agent_relay.daemon.handlers import Daemon, build_handlers
from agent_relay.daemon.notices import Notices
from agent_relay.daemon.server import Server
from agent_relay.domain.errors import NobodyAvailableError
from agent_relay.domain.serving import Peer, Request
from agent_relay.system.clock import SystemClock
from agent_relay.system.folders import Folders
from agent_relay.system.sockets import listen

HELLO = b'{"op":"hello","version":1,"client":"test"}\n'
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _World:
    """A server in this process, and what it reported."""

    def __init__(self, path: str, uid: int) -> None:
        self.path = path
        self.notices = Notices()
        self.reports: list[tuple[str, str]] = []
        self.release = asyncio.Event()
        handlers = {
            "echo": self._echo,
            "wait": self._wait,
            "refuse": self._refuse,
            "break": self._break,
            "big": self._big,
        }
        self.server = Server(
            handlers, self.notices, uid=uid, report=self._report, hello_limit_s=0.3, connection_limit=250
        )

    def _report(self, error: BaseException, doing: str) -> str:
        self.reports.append((type(error).__name__, doing))
        return "/the/report"

    async def _echo(self, request: Request, peer: Peer) -> Mapping[str, object]:
        return {"fields": dict(request.fields), "pid": peer.pid, "client": peer.client}

    async def _wait(self, _request: Request, _peer: Peer) -> Mapping[str, object]:
        await self.release.wait()
        return {"waited": True}

    async def _refuse(self, _request: Request, _peer: Peer) -> Mapping[str, object]:
        raise NobodyAvailableError("everybody rests", hint="Wait.")

    async def _break(self, _request: Request, _peer: Peer) -> Mapping[str, object]:
        raise KeyError("sk-secret")

    async def _big(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        return {"text": "x" * request.number("size")}

    async def connect(self, *, hello: bool = True) -> Streams:
        reader, writer = await asyncio.open_unix_connection(self.path, limit=1 << 21)
        if hello:
            writer.write(HELLO)
            assert (await _read(reader))["ok"] is True
        return reader, writer

    async def ask(self, streams: Streams, **message: object) -> dict[str, object]:
        streams[1].write(json.dumps(message).encode() + b"\n")
        return await _read(streams[0])


async def _read(reader: asyncio.StreamReader) -> dict[str, object]:
    async with asyncio.timeout(10):
        found: dict[str, object] = json.loads(await reader.readline())
        return found


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the server has no event for what is awaited
            await asyncio.sleep(0.005)


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., None]:
    """Runs a test's body beside a server on a fresh socket."""

    def run(body: Callable[[_World], Awaitable[None]], uid: int = os.geteuid()) -> None:
        async def main() -> None:
            os.chmod(tmp_path, 0o700)
            world = _World(str(tmp_path / "sock"), uid)
            await world.server.start(listen(world.path))
            try:
                await body(world)
            finally:
                await world.server.stop()
            assert world.server.connections == 0

        asyncio.run(main())

    return run


def test_a_request_is_answered_under_its_id(serve: Callable[..., None]) -> None:
    """The whole protocol in one exchange."""

    async def body(world: _World) -> None:
        streams = await world.connect()
        answer = await world.ask(streams, op="echo", id=7, text="hi")
        assert answer == {"id": 7, "ok": True, "fields": {"text": "hi"}, "pid": os.getpid(), "client": "test"}
        streams[1].close()

    serve(body)


def test_the_hello_names_version_and_process(serve: Callable[..., None]) -> None:
    """A client decides by it whether it may go on."""

    async def body(world: _World) -> None:
        reader, writer = await world.connect(hello=False)
        writer.write(HELLO)
        answer = await _read(reader)
        assert answer["version"] == 1
        assert answer["pid"] == os.getpid()
        writer.close()

    serve(body)


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        (b'{"op":"hello","version":2}\n', 69, "speaks protocol 1"),
        (b'{"op":"echo","id":1}\n', 2, "must be hello"),
        (b"GET / HTTP/1.1\r\n", 65, "not JSON"),
        (b"", 65, "no hello came"),
        (b"x" * (3 << 20), 65, "longer than"),
    ],
)
def test_a_bad_beginning_gets_one_error_and_the_door(
    serve: Callable[..., None], line: bytes, code: int, sentence: str
) -> None:
    """A stranger, an old client, a browser: told once, then gone."""

    async def body(world: _World) -> None:
        reader, writer = await world.connect(hello=False)
        writer.write(line)
        answer = await _read(reader)
        assert answer["ok"] is False
        assert answer["code"] == code
        assert sentence in str(answer["error"])
        if code == 69:
            assert answer["hint"] == "Run: agent-relay daemon restart"
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        await _until(lambda: world.server.connections == 0)

    serve(body)


@pytest.mark.parametrize("garbage", [b"\x00\xff\n", b"[]\n", b"y" * (3 << 20) + b"\n"])
def test_garbage_after_the_hello_ends_only_its_own_connection(
    serve: Callable[..., None], garbage: bytes
) -> None:
    """One bad client never harms another."""

    async def body(world: _World) -> None:
        good = await world.connect()
        reader, writer = await world.connect()
        writer.write(garbage)
        answer = await _read(reader)
        assert (answer["id"], answer["ok"], answer["code"]) == (None, False, 65)
        await _until(lambda: world.server.connections == 1)
        assert (await world.ask(good, op="echo", id=1))["ok"] is True
        writer.close()
        good[1].close()

    serve(body)


def test_errors_keep_sentence_hint_and_code(serve: Callable[..., None]) -> None:
    """The user reads them as if they had happened in the command."""

    async def body(world: _World) -> None:
        streams = await world.connect()
        assert await world.ask(streams, op="refuse", id="a") == {
            "id": "a",
            "ok": False,
            "error": "everybody rests",
            "hint": "Wait.",
            "code": 3,
        }
        unknown = await world.ask(streams, op="fly", id=2)
        assert (unknown["ok"], unknown["code"]) == (False, 2)
        nothing = await world.ask(streams, op=["echo"], id={"no": "id"})
        assert (nothing["ok"], nothing["code"], nothing["id"]) == (False, 2, None)
        streams[1].close()

    serve(body)


def test_a_mistake_of_ours_is_reported_without_contents_and_the_connection_lives(
    serve: Callable[..., None],
) -> None:
    """One broken operation must not take the daemon, and its values may be secrets."""

    async def body(world: _World) -> None:
        streams = await world.connect()
        answer = await world.ask(streams, op="break", id=1)
        assert answer["code"] == 70
        assert "/the/report" in str(answer["hint"])
        assert "sk-secret" not in str(answer)
        assert world.reports == [("KeyError", "answering break")]
        assert (await world.ask(streams, op="echo", id=2))["ok"] is True
        streams[1].close()

    serve(body)


def test_an_answer_that_is_too_long_is_an_error_not_a_broken_stream(serve: Callable[..., None]) -> None:
    """The bound holds for both sides."""

    async def body(world: _World) -> None:
        streams = await world.connect()
        answer = await world.ask(streams, op="big", id=1, size=2 << 20)
        assert (answer["id"], answer["ok"], answer["code"]) == (1, False, 65)
        streams[1].close()

    serve(body)


def test_a_slow_reader_costs_bounded_memory_and_nobody_else_waits(serve: Callable[..., None]) -> None:
    """A stopped terminal must not grow the daemon."""

    async def body(world: _World) -> None:
        good = await world.connect()
        slow = socket.socket(socket.AF_UNIX)
        slow.setblocking(False)
        slow.connect(world.path)
        slow.send(HELLO)
        request = b'{"op":"big","id":1,"size":900000}\n'
        slow.send(request * 200)
        await _until(lambda: world.server.connections == 2)
        for _ in range(20):
            assert (await world.ask(good, op="echo", id=1))["ok"] is True
        waiting = sum(
            line.transport.get_write_buffer_size()  # type: ignore[attr-defined]
            for line in _writers()
        )
        assert waiting < 2 << 20
        slow.close()
        good[1].close()
        await _until(lambda: world.server.connections == 0)

    serve(body)


def _writers() -> list[asyncio.StreamWriter]:
    import gc

    return [found for found in gc.get_objects() if isinstance(found, asyncio.StreamWriter)]


def test_a_flood_of_small_requests_leaves_room_for_others(serve: Callable[..., None]) -> None:
    """A full buffer of requests is answered in turn with the rest."""

    async def body(world: _World) -> None:
        good, flood = await world.connect(), await world.connect()
        flood[1].write(b'{"op":"echo","id":1}\n' * 20_000)
        answered = 0

        async def count() -> None:
            nonlocal answered
            while await flood[0].readline():
                answered += 1

        counting = asyncio.create_task(count())
        await _until(lambda: answered > 10)
        assert (await world.ask(good, op="echo", id=1))["ok"] is True
        assert answered < 20_000
        counting.cancel()
        flood[1].close()
        good[1].close()

    serve(body)


def test_two_hundred_connections_are_served_and_one_too_many_is_told(serve: Callable[..., None]) -> None:
    """Many terminals are normal; a leak in one client must not starve the daemon of descriptors."""

    async def body(world: _World) -> None:
        crowd = [await world.connect() for _ in range(200)]
        answers = await asyncio.gather(
            *(world.ask(streams, op="echo", id=n) for n, streams in enumerate(crowd))
        )
        assert [answer["id"] for answer in answers] == list(range(200))
        crowd += [await world.connect() for _ in range(50)]
        reader, writer = await world.connect(hello=False)
        assert "already serves 250" in str((await _read(reader))["error"])
        writer.close()
        for streams in crowd:
            streams[1].close()
        await _until(lambda: world.server.connections == 0)
        again = await world.connect()
        again[1].close()

    serve(body)


def test_a_half_open_client_still_gets_its_answer(serve: Callable[..., None]) -> None:
    """A script may close its side after asking."""

    async def body(world: _World) -> None:
        reader, writer = await world.connect()
        writer.write(b'{"op":"wait","id":1}\n')
        writer.write_eof()
        world.release.set()
        assert (await _read(reader))["waited"] is True
        assert await reader.read() == b""
        writer.close()

    serve(body)


def test_a_handler_ends_its_work_when_its_client_is_gone(serve: Callable[..., None]) -> None:
    """A closed terminal must not tear a handoff."""

    async def body(world: _World) -> None:
        _, writer = await world.connect()
        writer.write(b'{"op":"wait","id":1}\n')
        await writer.drain()
        writer.transport.abort()
        good = await world.connect()
        assert world.server.connections == 2
        world.release.set()
        await _until(lambda: world.server.connections == 1)
        assert world.reports == []
        good[1].close()

    serve(body)


def test_notices_reach_subscribers_once_and_carry_no_contents(serve: Callable[..., None]) -> None:
    """They are names; whoever wants contents asks."""

    async def body(world: _World) -> None:
        deaf, hearing = await world.connect(), await world.connect()
        assert (await world.ask(hearing, op="subscribe", id=1))["ok"] is True
        assert (await world.ask(hearing, op="subscribe", id=2))["ok"] is True
        assert len(world.notices) == 1
        for _ in range(1000):
            world.notices.tell("S1")
        world.notices.tell("S2")
        assert await _read(hearing[0]) == {"notice": "session", "session": "S1"}
        assert await _read(hearing[0]) == {"notice": "session", "session": "S2"}
        assert (await world.ask(hearing, op="echo", id=3))["id"] == 3
        assert (await world.ask(deaf, op="echo", id=4))["id"] == 4
        hearing[1].close()
        await _until(lambda: len(world.notices) == 0)
        deaf[1].close()

    serve(body)


def test_a_sleeping_subscriber_is_told_any_instead_of_growing(serve: Callable[..., None]) -> None:
    """A suspended watch must cost nothing however long it sleeps."""

    async def body(world: _World) -> None:
        hearing = await world.connect()
        await world.ask(hearing, op="subscribe", id=1)
        for number in range(5000):
            world.notices.tell(f"S{number}")
        assert await _read(hearing[0]) == {"notice": "session", "session": "*"}
        world.notices.tell("S1")
        assert await _read(hearing[0]) == {"notice": "session", "session": "S1"}
        hearing[1].close()

    serve(body)


def test_a_stopping_daemon_says_so(serve: Callable[..., None]) -> None:
    """A watch shall end in order instead of reporting a crash."""

    async def body(world: _World) -> None:
        reader, writer = await world.connect()
        await world.server.stop()
        assert await _read(reader) == {"notice": "stopping"}
        assert await reader.read() == b""
        writer.close()

    serve(body)


def test_another_user_is_turned_away(serve: Callable[..., None]) -> None:
    """Permissions on the socket should prevent it; the kernel's word is asked all the same."""

    async def body(world: _World) -> None:
        reader, writer = await world.connect(hello=False)
        assert "another user" in str((await _read(reader))["error"])
        writer.close()

    serve(body, os.geteuid() + 1)


def test_the_application_cannot_hide_the_daemons_own_operations() -> None:
    """`daemon stop` must work whatever the application offers."""

    async def handler(_request: Request, _peer: Peer) -> Mapping[str, object]:
        return {}

    daemon = Daemon(
        Folders("/r", "/s", "/c"),
        SystemClock().now(),
        count_connections=lambda: 0,
        count_subscribers=lambda: 0,
        stop=lambda: None,
    )
    assert set(build_handlers(daemon, {"x": handler})) == {
        "ping",
        "daemon.status",
        "daemon.stop",
        "daemon.logs",
        "x",
    }
    with pytest.raises(ValueError, match="ping"):
        build_handlers(daemon, {"ping": handler})
