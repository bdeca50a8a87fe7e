"""Run blocking work on threads beside the loop that draws the prompt."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

_Found = TypeVar("_Found")


def run_in_background(work: Callable[[], _Found]) -> "asyncio.Future[_Found]":
    """Run `work` on a thread that a leaving process does not wait for; return the future of its result."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[_Found] = loop.create_future()

    def give(found: _Found) -> None:
        if not over.cancelled():
            over.set_result(found)

    def fail(error: Exception) -> None:
        if not over.cancelled():
            over.set_exception(error)

    def run() -> None:
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits for the turn
            call_in_loop(loop, partial(fail, error))
        else:
            call_in_loop(loop, partial(give, found))

    threading.Thread(target=run, name="turn", daemon=True).start()
    return over


def call_in_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Have the loop call `what`, if it still runs."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return
