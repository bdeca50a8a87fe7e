"""Run blocking work on threads beside the loop that draws the prompt."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

_Found = TypeVar("_Found")


def run_in_background(work: Callable[[], _Found]) -> "asyncio.Future[_Found]":
    """Run `work` on a thread that a leaving process does not wait for; return the future of its result."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[_Found] = loop.create_future()
    done: Future[_Found] = Future()
    done.add_done_callback(lambda _: call_in_loop(loop, partial(_hand_over, done, over)))
    threading.Thread(target=settle, args=(done, work), name="turn", daemon=True).start()
    return over


def settle(done: "Future[_Found]", work: Callable[[], _Found]) -> None:
    """Do the work and give its outcome, a result or an exception, to whoever waits for `done`."""
    try:
        found = work()
    except Exception as error:  # noqa: BLE001 - a task's root: raised again by whoever waits for it
        done.set_exception(error)
    else:
        done.set_result(found)


def _hand_over(done: "Future[_Found]", over: "asyncio.Future[_Found]") -> None:
    if over.cancelled():
        return
    error = done.exception()
    if error is None:
        over.set_result(done.result())
    else:
        over.set_exception(error)


def call_in_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Have the loop call `what`, if it still runs."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return
