"""Work on texts of others that may take long: in a process with a limit, or here where none can be begun."""

import contextlib
import logging
from collections.abc import Callable
from typing import TypeVar

from agent_relay.system.limited_process import KilledError, Limit, LimitedProcess, NotBegunError, prepare
from agent_relay.system.shortages import find_passing

_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")
# One server serves all such work: whoever needs it first must start it with what the others need.
_MODULES = ("agent_relay.app.packet_server",)


def prepare_server() -> None:
    """Have the server import all that the work needs. Where it cannot, the work only takes longer."""
    with contextlib.suppress(OSError):
        prepare(_MODULES)


def run_limited(process: LimitedProcess, limit: Limit, work: Callable[[], _Made]) -> _Made:
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
