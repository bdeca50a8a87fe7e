"""Asks the daemon what agents last said of their usage windows, beside the prompt and only when asked for."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError
from agent_relay.faces.shell.aside import tell_loop
from agent_relay.logic.usage_windows import WindowRead, parse_windows

Windows = Mapping[str, Sequence[WindowRead]]

_WORKING_S = 15.0
"""How often it is asked while an agent works: no session changes its state then."""
_BUNDLE_S = 0.5
"""How long more notices are waited for after one."""
_AGAIN_S = 5.0


def watch_usage(
    connect: Callable[[], Connection], *, is_working: Callable[[], bool], tell: Callable[[Windows], None]
) -> None:
    """Until this process ends, `tell` is called by the loop whenever there is something new.

    A thread of its own waits for the daemon's notices, so that an idle shell asks nothing.
    """
    loop = asyncio.get_running_loop()

    def tell_on(windows: Windows) -> None:
        tell_loop(loop, partial(tell, windows))

    work = partial(_watch, connect, is_working, tell_on)
    threading.Thread(target=work, name="usage", daemon=True).start()


def _watch(
    connect: Callable[[], Connection], is_working: Callable[[], bool], tell: Callable[[Windows], None]
) -> None:
    pause = threading.Event()
    while True:
        try:
            with connect() as connection:
                connection.subscribe()
                listen(connection, is_working, tell)
        except (RelayError, OSError):
            # There is no daemon now: what is known stays true until its reset.
            pause.wait(_AGAIN_S)


def listen(connection: Connection, is_working: Callable[[], bool], tell: Callable[[Windows], None]) -> None:
    """Never returns. Raises RelayError when the daemon leaves."""
    known: Windows = {}
    while True:
        found = parse_windows(connection.request("session.list").get("windows"))
        if found != known:
            known = found
            tell(known)
        for _ in connection.notices(limit_s=_WORKING_S if is_working() else None):
            break
        for _ in connection.notices(limit_s=_BUNDLE_S):
            continue
