"""What a user's edit means: put into its place whole or refused, and read into the document."""

import os
from collections.abc import Callable

from agent_relay.domain.errors import RelayError
from agent_relay.domain.packet import ResumePacket
from agent_relay.logic.edits import absorb_edit
from agent_relay.system.files import cannot_write, read_bounded, write_atomic
from agent_relay.system.store_reading import (
    LIMIT_BYTES,
    check_target,
    find_edited,
    locked,
    read_body,
    read_original,
    read_packet,
)


def read_as_left(folder: str, sequence: int, target: str) -> ResumePacket:
    """Packet `sequence` with the user's edits of its document and of its text.

    Raises UntrustedDataError where it is missing or cannot be trusted.
    """
    packet = read_packet(os.path.join(folder, "resume", f"{sequence:04}-{check_target(target)}.json"))
    original = read_original(folder, sequence, target)
    if original is None or find_edited(folder, sequence, target) not in {"text", "both"}:
        return packet
    return absorb_edit(packet, original.text, read_body(folder, sequence, target))


def is_emptied(folder: str, sequence: int, target: str) -> bool:
    """Whether nothing is left of the packet's text, which its user edited. Raises UntrustedDataError."""
    if find_edited(folder, sequence, target) not in {"text", "both"}:
        return False
    return not read_body(folder, sequence, target).strip()


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
