"""Runs work on foreign texts in a process with a limit, and starts such programs ahead of a handoff.

Where no process can be begun, the work is done here. Started ahead are the server that builds packets and
the program that will hold the next leg.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TypeVar

from agent_relay.system.failures import find_passing
from agent_relay.system.limited_process import KilledError, LimitedProcess, NotBegunError, WorkLimit, prepare
from agent_relay.terminal.holder_start import prepare_spare

_log = logging.getLogger(__name__)


_Made = TypeVar("_Made")
# One server serves all such work: whoever needs it first must start it with what the others need.
_MODULES = ("agent_relay.engine.publishing.work_server_imports",)


def prepare_server() -> None:
    """Have the server import all that the work needs. Where it cannot, the work only takes longer."""
    with contextlib.suppress(OSError):
        prepare(_MODULES)


def run_limited(process: LimitedProcess, limit: WorkLimit, work: Callable[[], _Made]) -> _Made:
    """Return what `work`, which can be pickled, makes in a process that is ended at its limit. For a thread.

    Where our installation has gone none can be begun; all it needs is in this one's memory, which does it
    without a limit then. One that was killed is begun once more: the next one is killed as well only where
    the work itself takes too much memory. Raise RelayError.
    """
    prepare_server()
    try:
        try:
            return process.run(limit, work)
        except KilledError as error:
            _log.warning("work-begun-again why=%s", error.sentence)
            return process.run(limit, work)
    except NotBegunError as error:
        if find_passing(error):
            raise
        _log.warning("no-limited-process why=%s", error.sentence)
        return work()


AFTER_S = 1.0
"""The first moments of a leg belong to its agent: a program that starts takes a processor for a while."""


class ProgramPrestart:
    """Starts what builds packets and what will hold the next leg. Use it from the event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start in a moment what does not run yet."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(_prepare(), name="prepare the next handoff")

    def close(self) -> None:
        """Start nothing any more."""
        if self._task is not None:
            self._task.cancel()


async def _prepare() -> None:
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(prepare_spare)
    await asyncio.to_thread(prepare_server)
