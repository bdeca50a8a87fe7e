"""Puts a user's edit of a packet into its place: whole, seen by the successor, or refused."""

import os
from collections.abc import Callable

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import cannot_write, read_bounded, write_atomic
from agent_relay.system.store_reading import LIMIT_BYTES, locked


def replace_file(path: str, data: bytes, *, before: bytes, is_picked_up: Callable[[], bool]) -> None:
    """The packet's file at `path` holds `data`; it held `before` until now and its packet waits still.

    Pickup reads under the same lock after the journal says so, so what is written here is read. Raises
    RelayError, with nothing changed, where it was picked up or changed meanwhile or the disk refuses.
    """
    if len(data) > LIMIT_BYTES:
        raise RelayError(f"{path} would be larger than {LIMIT_BYTES} bytes", hint="Shorten it.")
    try:
        with locked(os.path.dirname(path)):
            if is_picked_up():
                raise RelayError(
                    f"{os.path.basename(path)} was picked up meanwhile, so the edit would reach nobody",
                    hint="Tell its successor instead.",
                )
            if read_bounded(path, limit_bytes=LIMIT_BYTES) != before:
                raise RelayError(
                    f"{os.path.basename(path)} was changed by somebody else meanwhile",
                    hint="Look at both: agent-relay packet diff",
                )
            write_atomic(path, data)
    except FileNotFoundError:
        raise RelayError(f"{path} is gone", hint="Somebody deleted it.") from None
    except OSError as problem:
        raise cannot_write(path, problem) from problem
