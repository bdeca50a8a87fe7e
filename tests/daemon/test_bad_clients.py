import asyncio
import socket

import pytest

from tests.support.server_world import HELLO, World, read, until


@pytest.mark.parametrize("garbage", [b"\x00\xff\n", b"[]\n", b"y" * (3 << 20) + b"\n"])
async def test_garbage_after_the_hello_ends_only_its_own_connection(world: World, garbage: bytes) -> None:
    """One bad client never harms another."""
    good = await world.connect()
    reader, writer = await world.connect()
    writer.write(garbage)
    answer = await read(reader)
    assert (answer["id"], answer["ok"], answer["code"]) == (None, False, 65)
    await until(lambda: world.server.connections == 1)
    assert (await world.ask(good, op="echo", id=1))["ok"] is True
    writer.close()
    good[1].close()


async def test_an_answer_that_is_too_long_is_an_error_not_a_broken_stream(world: World) -> None:
    """The bound holds for both sides."""
    streams = await world.connect()
    answer = await world.ask(streams, op="big", id=1, size=2 << 20)
    assert (answer["id"], answer["ok"], answer["code"]) == (1, False, 65)
    streams[1].close()


async def test_a_slow_reader_costs_bounded_memory_and_nobody_else_waits(world: World) -> None:
    """A stopped terminal must not grow the daemon."""
    good = await world.connect()
    slow = socket.socket(socket.AF_UNIX)
    slow.setblocking(False)
    slow.connect(world.path)
    slow.send(HELLO)
    request = b'{"op":"big","id":1,"size":900000}\n'
    slow.send(request * 200)
    await until(lambda: world.server.connections == 2)
    for _ in range(20):
        assert (await world.ask(good, op="echo", id=1))["ok"] is True
    waiting = sum(
        line.transport.get_write_buffer_size()  # type: ignore[attr-defined]
        for line in _writers()
    )
    assert waiting < 2 << 20
    slow.close()
    good[1].close()
    await until(lambda: world.server.connections == 0)


def _writers() -> list[asyncio.StreamWriter]:
    import gc

    return [found for found in gc.get_objects() if isinstance(found, asyncio.StreamWriter)]


async def test_a_flood_of_small_requests_leaves_room_for_others(world: World) -> None:
    """A full buffer of requests is answered in turn with the rest."""
    good, flood = await world.connect(), await world.connect()
    flood[1].write(b'{"op":"echo","id":1}\n' * 20_000)
    answered = 0

    async def count() -> None:
        nonlocal answered
        while await flood[0].readline():
            answered += 1

    counting = asyncio.create_task(count())
    await until(lambda: answered > 10)
    assert (await world.ask(good, op="echo", id=1))["ok"] is True
    assert answered < 20_000
    counting.cancel()
    flood[1].close()
    good[1].close()


async def test_two_hundred_connections_are_served_and_one_too_many_is_told(world: World) -> None:
    """Many terminals are normal; a leak in one client must not starve the daemon of descriptors."""
    crowd = [await world.connect() for _ in range(200)]
    answers = await asyncio.gather(*(world.ask(streams, op="echo", id=n) for n, streams in enumerate(crowd)))
    assert [answer["id"] for answer in answers] == list(range(200))
    crowd += [await world.connect() for _ in range(50)]
    reader, writer = await world.connect(hello=False)
    assert "already serves 250" in str((await read(reader))["error"])
    writer.close()
    for streams in crowd:
        streams[1].close()
    await until(lambda: world.server.connections == 0)
    again = await world.connect()
    again[1].close()


async def test_a_half_open_client_still_gets_its_answer(world: World) -> None:
    """A script may close its side after asking."""
    reader, writer = await world.connect()
    writer.write(b'{"op":"wait","id":1}\n')
    writer.write_eof()
    world.release.set()
    assert (await read(reader))["waited"] is True
    assert await reader.read() == b""
    writer.close()


async def test_a_handler_ends_its_work_when_its_client_is_gone(world: World) -> None:
    """A closed terminal must not tear a handoff."""
    _, writer = await world.connect()
    writer.write(b'{"op":"wait","id":1}\n')
    await writer.drain()
    writer.transport.abort()
    good = await world.connect()
    assert world.server.connections == 2
    world.release.set()
    await until(lambda: world.server.connections == 1)
    assert world.reports == []
    good[1].close()
