"""Work in threads and tasks, and waiting for it: dedicated threads, errors as values, changes awaited.

Work that many sessions wait for must not occupy the threads all of them share: one hung disk would exhaust
asyncio's pool. A thread cannot be cancelled, so a write has to end before anything follows it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

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


async def wait_or_cancel(run: asyncio.Task[_Found]) -> None:
    """Wait for the end of `run`, whatever it is; a cancelled caller cancels it, and waits for that."""
    try:
        await asyncio.wait({run})
    except asyncio.CancelledError:
        run.cancel()
        await asyncio.wait({run})
        raise


class Failed(msgspec.Struct, frozen=True):
    """Work that failed, and why."""

    error: Exception


async def attempt(work: Awaitable[_Found]) -> _Found | Failed:
    """Return what `work` returns, or how it failed; a cancelled caller is cancelled."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the root of the engine's tasks: each goes on, and tells the error
        return Failed(error)


class BackgroundTasks:
    """Tasks that nobody waits for, until they end or are cancelled. Use it from the event loop only.

    `report`, if given, is called with the error of each task that fails.
    """

    def __init__(self, report: Callable[[BaseException], None] | None = None) -> None:
        self._report = report
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        """Return whether any goes on."""
        return bool(self._tasks)

    def begin(self, work: Coroutine[None, None, None], *, name: str | None = None) -> asyncio.Task[None]:
        """Begin `work` and return its task."""
        task = asyncio.create_task(work if self._report is None else _run(work, self._report), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel them, and wait for their ends."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def spawn(
    work: Coroutine[None, None, None], report: Callable[[BaseException], None], *, name: str
) -> asyncio.Task[None]:
    """Begin `work` in the background; `report` gets the error if it fails."""
    return asyncio.create_task(_run(work, report), name=name)


async def _run(work: Awaitable[None], report: Callable[[BaseException], None]) -> None:
    result = await attempt(work)
    if isinstance(result, Failed):
        report(result.error)


_LOOK_S = 0.25
"""Seconds between checks of a condition while no change is counted: not everything that matters is."""
_LOST_S = 60.0
"""Seconds of silence after which a turn's follower counts as gone: it asks three times as often."""


class ChangeNotifier:
    """Wakes waiters at every change. Use it from the event loop only.

    `number` is that of the newest change, 0 before the first. `above` counts them, too.
    """

    def __init__(self, above: "ChangeNotifier | None" = None) -> None:
        self.number = 0
        self._above = above
        self._next: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """Count a change, and wake everybody who waits for one."""
        if self._above is not None:
            self._above.notify()
        self.number = self.number + 1 if self._above is None else self._above.number
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def listen(self) -> "asyncio.Future[None]":
        """Return a future that is done at the next change; get it before looking, to miss none."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    async def wait_while(self, is_so: Callable[[], bool], limit_s: float) -> bool:
        """Wait while `is_so` is true, at most `limit_s` seconds; return whether it became false."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit_s
        while True:
            change = self.listen()
            if not is_so():
                return True
            if clock() >= deadline:
                return False
            await wait_for(change, min(deadline - clock(), _LOOK_S))


async def wait_for(change: "asyncio.Future[None]", limit_s: float) -> None:
    """Wait for the change, at most `limit_s` seconds; others may go on waiting for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await asyncio.shield(change)


class TurnFollowers(msgspec.Struct):
    """Followers of a headless turn, and when each last read from it (monotonic seconds).

    `is_done` once all have read it.
    """

    followers: dict[int, float] = msgspec.field(default_factory=dict)
    is_done: bool = False

    def begin(self) -> None:
        """Reset for another turn, of which nobody has read anything."""
        self.followers.clear()
        self.is_done = False

    def note(self, follower: int, at_s: float) -> None:
        """Note that `follower` reads on."""
        self.followers[follower] = at_s

    def leave(self, follower: int, at_s: float) -> None:
        """Note that `follower` has read it to its end; one that was silent for a while does not count."""
        self.followers.pop(follower, None)
        self.is_done = all(at_s - last_s > _LOST_S for last_s in self.followers.values())
