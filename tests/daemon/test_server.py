import asyncio
import os
from collections.abc import Mapping

import pytest

from agent_relay.daemon.run import Daemon, build_handlers
from agent_relay.domain.protocol.operations import Peer
from agent_relay.system.clock import SystemClock
from agent_relay.system.disk.folders import Folders
from tests.support.server_world import HELLO, World, read, until


async def test_a_request_is_answered_under_its_id(world: World) -> None:
    """The whole protocol in one exchange."""
    streams = await world.connect()
    answer = await world.ask(streams, op="echo", id=7, text="hi")
    assert answer == {"id": 7, "ok": True, "fields": {"text": "hi"}, "pid": os.getpid(), "client": "test"}
    streams[1].close()


async def test_the_hello_names_version_and_process(world: World) -> None:
    """A client decides by it whether it may go on."""
    reader, writer = await world.connect(hello=False)
    writer.write(HELLO)
    answer = await read(reader)
    assert answer["version"] == 1
    assert answer["pid"] == os.getpid()
    writer.close()


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        (b'{"op":"hello","version":2}\n', 69, "speaks protocol 1"),
        (b'{"op":"echo","id":1}\n', 2, "must be hello"),
        (b"GET / HTTP/1.1\r\n", 65, "not JSON"),
        (b"x" * (3 << 20), 65, "longer than"),
    ],
)
async def test_a_bad_beginning_gets_one_error_and_the_door(
    world: World, line: bytes, code: int, sentence: str
) -> None:
    """A stranger, an old client, a browser: told once, then gone."""
    reader, writer = await world.connect(hello=False)
    writer.write(line)
    answer = await read(reader)
    assert answer["ok"] is False
    assert answer["code"] == code
    assert sentence in str(answer["error"])
    if code == 69:
        assert answer["hint"] == "Run: agent-relay daemon restart"
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    await until(lambda: world.server.connections == 0)


@pytest.mark.parametrize("world", [{"hello_limit_s": 0.5}], indirect=True)
async def test_a_beginning_that_does_not_come_is_not_waited_for(world: World) -> None:
    """Whoever connects and says nothing would keep a place for ever."""
    reader, writer = await world.connect(hello=False)
    answer = await read(reader)
    assert (answer["ok"], answer["code"]) == (False, 65)
    assert "no hello came" in str(answer["error"])
    writer.close()


async def test_errors_keep_sentence_hint_and_code(world: World) -> None:
    """The user reads them as if they had happened in the command."""
    streams = await world.connect()
    assert await world.ask(streams, op="refuse", id="a") == {
        "id": "a", "ok": False, "error": "everybody rests", "hint": "Wait.", "code": 3,
    }  # fmt: skip
    unknown = await world.ask(streams, op="fly", id=2)
    assert (unknown["ok"], unknown["code"]) == (False, 2)
    nothing = await world.ask(streams, op=["echo"], id={"no": "id"})
    assert (nothing["ok"], nothing["code"], nothing["id"]) == (False, 2, None)
    streams[1].close()


async def test_a_mistake_of_ours_is_reported_without_contents_and_the_connection_lives(
    world: World,
) -> None:
    """One broken operation must not take the daemon, and its values may be secrets."""
    streams = await world.connect()
    answer = await world.ask(streams, op="break", id=1)
    assert answer["code"] == 70
    assert "/the/report" in str(answer["hint"])
    assert "sk-secret" not in str(answer)
    assert world.reports == [("KeyError", "answering break")]
    assert (await world.ask(streams, op="echo", id=2))["ok"] is True
    streams[1].close()


async def test_notices_reach_subscribers_once_and_carry_no_contents(world: World) -> None:
    """They are names; whoever wants contents asks."""
    deaf, hearing = await world.connect(), await world.connect()
    assert (await world.ask(hearing, op="subscribe", id=1))["ok"] is True
    assert (await world.ask(hearing, op="subscribe", id=2))["ok"] is True
    assert len(world.notices) == 1
    for _ in range(1000):
        world.notices.tell("S1")
    world.notices.tell("S2")
    assert await read(hearing[0]) == {"notice": "session", "session": "S1"}
    assert await read(hearing[0]) == {"notice": "session", "session": "S2"}
    assert (await world.ask(hearing, op="echo", id=3))["id"] == 3
    assert (await world.ask(deaf, op="echo", id=4))["id"] == 4
    hearing[1].close()
    await until(lambda: len(world.notices) == 0)
    deaf[1].close()


async def test_a_sleeping_subscriber_is_told_any_instead_of_growing(world: World) -> None:
    """A suspended watch must cost nothing however long it sleeps."""
    hearing = await world.connect()
    await world.ask(hearing, op="subscribe", id=1)
    for number in range(5000):
        world.notices.tell(f"S{number}")
    assert await read(hearing[0]) == {"notice": "session", "session": "*"}
    world.notices.tell("S1")
    assert await read(hearing[0]) == {"notice": "session", "session": "S1"}
    hearing[1].close()


async def test_a_stopping_daemon_says_so(world: World) -> None:
    """A watch shall end in order instead of reporting a crash."""
    reader, writer = await world.connect()
    await world.server.stop()
    assert await read(reader) == {"notice": "stopping"}
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("world", [{"uid": os.geteuid() + 1}], indirect=True)
async def test_another_user_is_turned_away(world: World) -> None:
    """Permissions on the socket should prevent it; the kernel's word is asked all the same."""
    reader, writer = await world.connect(hello=False)
    assert "another user" in str((await read(reader))["error"])
    writer.close()


def test_the_application_cannot_hide_the_daemons_own_operations() -> None:
    """`daemon stop` must work whatever the application offers."""

    async def handler(_sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
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
