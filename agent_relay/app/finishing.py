"""Work in a thread that has an end before anything follows it: a thread cannot be cancelled."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


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
    """The same; `end` is called for a cancelled caller, so that `work` comes to its end early."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **words))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        end()
        while not working.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # nobody is left to hear it
        raise
