"""Work in a thread that has an end before anything follows it: a thread cannot be cancelled."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
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
