"""Threads of one's own: work that many sessions wait with must not take the threads all of them share."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class OwnThread:
    """One thread for work of one kind, which is done one after another. Use it from the event loop only.

    It waits for nobody else's work, and nobody else's waits for it; who waits for a turn keeps no thread.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(
        self, work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
    ) -> _Found:
        """What `work` returned. Who is cancelled before its turn has done nothing; what has begun runs on."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **words))

    def close(self) -> None:
        """The thread ends with what it is at; harmless when repeated."""
        self._pool.shutdown(wait=False)
