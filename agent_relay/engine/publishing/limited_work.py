"""Runs work on foreign texts in a process with a limit, and starts such programs ahead of a handoff.

If no process can be started, the work is done here. Started ahead are the server that builds packets and the
next leg's holder.
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
    """Have the server import all that the work needs. If it cannot, the work only takes longer."""
    with contextlib.suppress(OSError):
        prepare(_MODULES)


def run_limited(process: LimitedProcess, limit: WorkLimit, work: Callable[[], _Made]) -> _Made:
    """Return what `work` makes in a process that is ended at its limit. Call it in a thread.

    `work` must be picklable. If our installation is gone, no process can be started: this one has all that is
    needed in memory, and does the work without a limit. A process that was killed is started once more: the
    second is killed as well only if the work itself takes too much memory. Raises a RelayError of
    the work as it is, RelayError if it exceeds its limit or is killed twice, RuntimeError for its other
    errors; without a process, what the work raises.
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
"""The first moments of a leg are left to its agent: a program that starts takes a processor for a while."""


class ProgramPrestart:
    """Starts the server that builds packets and the next leg's holder. Use it from the event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Schedule the start of what does not run yet."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(_prepare(), name="prepare the next handoff")

    def close(self) -> None:
        """Cancel a start that has not happened yet."""
        if self._task is not None:
            self._task.cancel()


async def _prepare() -> None:
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(prepare_spare)
    await asyncio.to_thread(prepare_server)
