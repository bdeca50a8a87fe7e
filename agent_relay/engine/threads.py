"""Work in threads and tasks: dedicated threads, work a cancelled caller waits for, errors as values.

Work that many sessions wait for must not occupy the threads all of them share: one hung disk would exhaust
asyncio's pool. A thread cannot be cancelled, so a write has to end before anything follows it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from agent_relay.domain.errors import RelayError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class DedicatedThread:
    """One thread for one kind of work, done in order. Use it from the event loop only.

    It neither waits for other work nor delays it; a caller that waits for its turn occupies no thread.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._is_closed = False

    async def run(
        self, work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
    ) -> _Found:
        """Run `work` in the thread and return its result.

        A caller cancelled before its turn has done nothing; work that has begun runs on. Raises RelayError
        after `close`, and what `work` raises.
        """
        if self._is_closed:
            raise RelayError("what this was for is not at work any more", hint="Try again.")
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **words))

    def close(self) -> None:
        """Let the thread end after the work it was given; harmless when repeated."""
        self._is_closed = True
        self._pool.shutdown(wait=False)


class ThreadPerHome:
    """One thread for each home that one kind of work reads in: a home that hangs does not block another.

    The threads are kept for every home there was work in; they are few, as users have one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: dict[str, DedicatedThread] = {}

    def find(self, environ: Mapping[str, str]) -> DedicatedThread:
        """Return the thread for work in the home that `environ` names."""
        home = environ.get("HOME", "")
        if home not in self._threads:
            self._threads[home] = DedicatedThread(self._name)
        return self._threads[home]


_AGAIN_S = 0.2


async def finish(work: Callable[_Given, _Found], *args: _Given.args, **words: _Given.kwargs) -> _Found:
    """Run `work` in a thread and return its result; a cancelled caller waits for its end.

    For work that writes: left running, it would write in between what its successor writes.
    """
    return await finish_or_end(_do_nothing, work, *args, **words)


def _do_nothing() -> None:
    return


async def finish_or_end(
    end: Callable[[], None], work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
) -> _Found:
    """Run `work` as `finish` does; for a cancelled caller, call `end` until `work` has ended."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **words))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            # What it is to end may only be about to begin.
            end()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({working}, timeout=_AGAIN_S)
        if not working.cancelled():
            working.exception()  # nobody is left to hear it
        raise


@dataclass(frozen=True, slots=True)
class Failed:
    """Work that failed, and why."""

    error: Exception


async def attempt(work: Awaitable[_Found]) -> _Found | Failed:
    """Return what `work` returns, or how it failed; a cancelled caller is cancelled."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the root of the engine's tasks: each goes on, and tells the error
        return Failed(error)


def spawn(
    work: Coroutine[None, None, None], report: Callable[[BaseException], None], *, name: str
) -> asyncio.Task[None]:
    """Begin `work` in the background; `report` gets the error if it fails."""
    return asyncio.create_task(_run(work, report), name=name)


async def _run(work: Awaitable[None], report: Callable[[BaseException], None]) -> None:
    result = await attempt(work)
    if isinstance(result, Failed):
        report(result.error)
