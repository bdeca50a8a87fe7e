"""Work in threads: threads dedicated to one kind of work, and work that is waited for when cancelled.

Work that many sessions wait for must not take the threads all of them share: one hung disk would exhaust
asyncio's pool. A thread cannot be cancelled, so what writes has to end before anything follows it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from agent_relay.domain.errors import RelayError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class DedicatedThread:
    """One thread for work of one kind, which is done one after another. Use it from the event loop only.

    It waits for nobody else's work, and nobody else's waits for it; who waits for a turn keeps no thread.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._is_closed = False

    async def run(
        self, work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
    ) -> _Found:
        """What `work` returned. Who is cancelled before its turn has done nothing; what has begun runs on.

        Raises RelayError after `close`, and what `work` raises.
        """
        if self._is_closed:
            raise RelayError("what this was for is not at work any more", hint="Try again.")
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **words))

    def close(self) -> None:
        """The thread ends with what it is at; harmless when repeated."""
        self._is_closed = True
        self._pool.shutdown(wait=False)


class ThreadPerHome:
    """A thread for each home that work of one kind reads in: a home that hangs keeps nobody from another.

    One stays for every home there was work in; they are few, as users have one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: dict[str, DedicatedThread] = {}

    def find(self, environ: Mapping[str, str]) -> DedicatedThread:
        """The thread for work in the home that `environ` names."""
        home = environ.get("HOME", "")
        if home not in self._threads:
            self._threads[home] = DedicatedThread(self._name)
        return self._threads[home]


_AGAIN_S = 0.2


async def finish(work: Callable[_Given, _Found], *args: _Given.args, **words: _Given.kwargs) -> _Found:
    """What `work` returned, done in a thread; a cancelled caller waits for its end.

    For what writes: left alone, the thread's writing would come in between what its successor writes.
    """
    return await finish_or_end(_do_nothing, work, *args, **words)


def _do_nothing() -> None:
    return


async def finish_or_end(
    end: Callable[[], None], work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
) -> _Found:
    """The same; `end` is called for a cancelled caller until `work` has come to its end."""
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
