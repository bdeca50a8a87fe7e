"""What a thread writes is written before anything follows it, whoever has given up waiting."""

import asyncio
import threading

import pytest

from agent_relay.engine.threads import finish, finish_or_end


def test_its_answer_and_its_error_come_through() -> None:
    """It is a call like any other."""
    assert asyncio.run(finish(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(finish(divmod, 7, 0))


@pytest.mark.parametrize("cancels", [1, 3])
def test_who_is_cancelled_waits_for_its_end(cancels: int) -> None:
    """Once, or again and again: a thread cannot be stopped."""
    begun, go, done = threading.Event(), threading.Event(), list[str]()

    def write() -> None:
        begun.set()
        go.wait(60)
        done.append("written")
        raise OSError("nobody hears this")

    async def give_up() -> None:
        writing = asyncio.create_task(finish(write))
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(cancels):
            writing.cancel()
            await asyncio.sleep(0)
            assert not writing.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert done == ["written"]

    asyncio.run(give_up())


def test_work_that_begins_after_it_was_to_end_is_ended_too() -> None:
    """A daemon that was asked to leave right then waited for all of it."""
    begun, go_on = threading.Event(), threading.Event()
    ending: list[threading.Event] = []

    def work() -> None:
        begun.set()
        go_on.wait(60)
        ending.append(is_over := threading.Event())
        assert is_over.wait(60)

    def end() -> None:
        for is_over in ending:
            is_over.set()
        go_on.set()

    async def give_up() -> None:
        working = asyncio.create_task(finish_or_end(end, work))
        await asyncio.to_thread(begun.wait, 60)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(working, 30)

    asyncio.run(give_up())
