"""Threads of one's own: work that many sessions wait with must not take the threads all of them share."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from agent_relay.domain.errors import RelayError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class OwnThread:
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


class HomeThreads:
    """A thread for each home that work of one kind reads in: a home that hangs keeps nobody from another.

    One stays for every home there was work in; they are few, as users have one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: dict[str, OwnThread] = {}

    def find(self, environ: Mapping[str, str]) -> OwnThread:
        """The thread for work in the home that `environ` names."""
        home = environ.get("HOME", "")
        if home not in self._threads:
            self._threads[home] = OwnThread(self._name)
        return self._threads[home]
