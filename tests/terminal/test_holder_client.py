"""The daemon's side of a holder: starting it, asking it, being told, and its end."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

import pytest

from agent_relay.domain.screen import Row
from agent_relay.terminal.holder.wire import HolderSpec, parse_spec, render_spec
from agent_relay.terminal.holder_client import HolderConnection, HolderError
from tests.support.heard import in_loop
from tests.support.legs import Held, hold, python, wait_until


@contextlib.asynccontextmanager
async def connected(
    folder: object, argv: list[str], **more: object
) -> AsyncIterator[tuple[Held, HolderConnection]]:
    """A leg of that program, and a daemon's connection to its holder."""
    with hold(str(folder), argv, **more) as held:
        holder = await HolderConnection.open(held.folder)
        yield held, holder
        await holder.close()


@pytest.mark.size("test")
@in_loop
async def test_a_leg_is_watched_typed_into_and_collected(tmp_path: object) -> None:
    """Everything the daemon does with a leg, over one connection."""
    code = "import sys; name = input('name? '); print('hello', name); sys.exit(3)"
    async with connected(tmp_path, python(code), luggage="L") as (held, holder):
        status = await holder.watch()
        assert status["child"] == held.started.child_pid
        events = holder.events()
        while "name?" not in (await holder.screen(peek=True)).text():
            assert (await anext(events))["event"] == "settled"
        await holder.type(b"x\r", unless_typed=True)
        async for event in events:
            if event["event"] == "exit":
                assert event["status"] == 3
                break
        screen = await holder.screen()
        assert Row("name? x") in screen.rows
        offset, data = await holder.tail(0)
        assert (offset, data) == (0, b"name? x\r\nhello x\r\n")
        assert await holder.luggage() == "L"
        assert (await holder.collect())["status"] == 3
        assert await holder.luggage() == "L"
        await holder.leave()
        # The screen may have settled after its end.
        assert {event["event"] async for event in events} <= {"settled"}
        with pytest.raises(HolderError) as caught:
            await holder.request("hello")
        assert caught.value.why == "gone"
        wait_until(lambda: not held.is_locked(), "the holder's end")


@pytest.mark.size("test")
@in_loop
async def test_a_note_tells_whoever_comes_later_what_was_typed(tmp_path: object) -> None:
    """A daemon that dies while it types cannot say how far it came."""
    async with connected(tmp_path, python("input()")) as (held, holder):
        assert await holder.read_note() == ""
        await holder.type(b"x", note="half")
        await holder.close()
        later = await HolderConnection.open(held.folder)
        assert await later.read_note() == "half"
        await later.type(b"y")
        assert await later.read_note() == "half"
        for refused in (1, "n" * 2001):
            with pytest.raises(HolderError, match="note must be text of at most 2000 characters"):
                await later.request("input", data="z", note=refused)
        assert await later.read_note() == "half"
        await later.type(b"", note="")
        assert await later.read_note() == ""
        await later.type(b"\r", note="whole")
        async for event in _watch(later):
            if event["event"] == "exit":
                break
        assert "xy" in (await later.screen()).text()
        with pytest.raises(HolderError, match="has ended"):
            await later.type(b"z", note="too late")
        assert await later.read_note() == "whole"
        await later.collect()
        await later.leave()
        await later.close()


async def _watch(holder: HolderConnection) -> AsyncIterator[dict[str, object]]:
    """Events of the leg from now on, its end also where it ended before."""
    status = await holder.watch()
    if isinstance(status["exit"], dict):
        yield status["exit"]
    async for event in holder.events():
        yield event


@pytest.mark.size("test")
@in_loop
async def test_a_refusal_says_why_to_programs_and_people(tmp_path: object) -> None:
    """The host chooses by the code and shows the sentence."""
    async with connected(tmp_path, ["cat"]) as (_, holder):
        with pytest.raises(HolderError, match="the program has not ended") as caught:
            await holder.collect()
        assert caught.value.why == "running"
        with pytest.raises(HolderError, match="the program has not ended"):
            await holder.leave()
        assert await holder.signal("SIGKILL") == 1


@pytest.mark.size("test")
@in_loop
async def test_requests_in_flight_end_when_the_holder_is_killed(tmp_path: object) -> None:
    """Nothing waits unseen: a killed holder is noticed at once."""
    async with connected(tmp_path, ["cat"]) as (held, holder):
        await holder.watch()
        os.kill(held.started.holder_pid, 19)
        question = asyncio.create_task(holder.request("hello"))
        await asyncio.sleep(0)
        os.kill(held.started.holder_pid, 9)
        with pytest.raises(HolderError) as caught:
            await question
        assert caught.value.why == "gone"
        assert [event async for event in holder.events()] == []


def test_no_holder_is_told_apart_from_one_that_refuses(tmp_path: object) -> None:
    """The daemon marks a leg lost only when nobody listens."""
    with pytest.raises(HolderError, match="no holder listens") as caught:
        asyncio.run(HolderConnection.open(str(tmp_path)))
    assert caught.value.why == "gone"


@pytest.mark.size("test")
@in_loop
async def test_folders_of_any_depth_work(tmp_path: object) -> None:
    """Socket paths are limited to 107 bytes; homes are not."""
    async with connected(f"{tmp_path}/" + "/".join(["deep" * 10] * 4), ["cat"]) as (_, holder):
        assert (await holder.request("hello"))["protocol"] == 1


def test_a_spec_survives_its_way_to_the_holder() -> None:
    """Names that are no UTF-8 stay what they are."""
    spec = HolderSpec(
        argv=["a", "\udcff"],
        env={"K": "\udcfe中"},
        cwd="/",
        leg_folder="/l",
        rows=1,
        cols=2,
        lock_fd=3,
        luggage="l",
        linger_s=0.5,
    )
    again = parse_spec(render_spec(spec), [3])
    assert {name: getattr(again, name) for name in HolderSpec.__slots__} == {
        name: getattr(spec, name) for name in HolderSpec.__slots__
    }


def test_a_spec_without_a_program_or_a_size_is_an_error() -> None:
    """A holder that starts nothing would only confuse."""
    for argv, rows in (([], 24), (["a"], 0)):
        with pytest.raises(ValueError, match="a holder needs a program and a size"):
            HolderSpec(argv=argv, env={}, cwd="/", leg_folder="/l", rows=rows, cols=80, lock_fd=3)
