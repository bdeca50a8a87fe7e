"""Keep what checkpoints hold of a session's conversations, in one file that never grows beyond its bound."""

import os
from collections.abc import Sequence

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import CheckpointFacts, RecordCursor
from agent_relay.domain.names import CHECKPOINTS
from agent_relay.packet.checkpoint_facts import LEVELS, thin_checkpoint
from agent_relay.system.disk.files import cannot_write, check_found, read_bounded, write_all, write_atomic

MOST_BYTES = 4 << 20
"""Most bytes of a session's file: before a line exceeds it, old checkpoints are thinned to half of it."""
MOST_LINE_BYTES = 1 << 20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class CheckpointHead(msgspec.Struct, frozen=True):
    """The part of a line that identifies its conversation, with the position up to which that was read."""

    leg: str
    agent: str
    native_id: str
    cursor: RecordCursor
    turns: int


_heads = msgspec.json.Decoder(CheckpointHead)
_kept = msgspec.json.Decoder(CheckpointFacts)


def render_checkpoint(kept: CheckpointFacts) -> bytes:
    """Render the line of one checkpoint. Raise RelayError if it would be too long."""
    line = msgspec.json.encode(kept) + b"\n"
    for level in range(LEVELS):
        if len(line) <= MOST_LINE_BYTES:
            return line
        line = msgspec.json.encode(thin_checkpoint(kept, level)) + b"\n"
    if len(line) > MOST_LINE_BYTES:
        raise RelayError(f"a checkpoint would be larger than {MOST_LINE_BYTES} bytes")
    return line


def find_newest(folder: str, *, leg: str, agent: str, native_id: str) -> CheckpointHead | None:
    """Return the newest checkpoint of a conversation, without its facts; `None` if there is none."""
    for line in reversed(_read_lines(folder)):
        try:
            head = _heads.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue
        if _is_of(head, leg, agent, native_id):
            return head
    return None


def read_checkpoints(folder: str, *, leg: str, agent: str, native_id: str) -> list[CheckpointFacts]:
    """Read what is kept of a conversation, oldest first; lines that are damaged are left out."""
    return [one for one in _decode(_read_lines(folder)) if _is_of(one, leg, agent, native_id)]


def _is_of(kept: CheckpointFacts | CheckpointHead, leg: str, agent: str, native_id: str) -> bool:
    if kept.agent != agent:
        return False
    # An agent's conversation may get its name only after its first turn.
    return (bool(native_id) and kept.native_id == native_id) or (kept.leg == leg and not kept.native_id)


def _read_lines(folder: str) -> list[bytes]:
    try:
        data = read_bounded(f"{folder}/{CHECKPOINTS}", limit_bytes=2 * MOST_BYTES)
    except (RelayError, FileNotFoundError):
        # What is lost here costs the knowledge of a lost record, and nothing else.
        return []
    return data[: data.rfind(b"\n") + 1].splitlines()


def _decode(lines: Sequence[bytes]) -> list[CheckpointFacts]:
    found = []
    for line in lines:
        try:
            found.append(_kept.decode(line))
        except (msgspec.DecodeError, RecursionError):
            continue
    return found


def find_room(folder: str, line: bytes) -> bytes | None:
    """Return the whole new contents if the line does not fit any more, with old checkpoints thinned.

    `None` if it fits, and is simply to be added.
    """
    try:
        size = os.stat(f"{folder}/{CHECKPOINTS}").st_size
    except OSError:
        return None
    if size + len(line) <= MOST_BYTES:
        return None
    return b"".join(_thin(_decode(_read_lines(folder)), MOST_BYTES // 2 - len(line))) + line


def _thin(kept: list[CheckpointFacts], most: int) -> list[bytes]:
    """Render checkpoints, the oldest thinned more than the newer ones, so that they fit into `most` bytes."""
    lines = [msgspec.json.encode(one) + b"\n" for one in kept]
    size = sum(map(len, lines))
    for level in range(LEVELS + 1):
        for index, one in enumerate(kept):
            if size <= most:
                return lines
            thin = msgspec.json.encode(thin_checkpoint(one, level)) + b"\n" if level < LEVELS else b""
            size -= len(lines[index]) - len(thin)
            lines[index] = thin
    return lines


def add_checkpoint(folder: str, line: bytes) -> None:
    """Add a line durably; what a crash left half written before is cut off first.

    Raises RelayError if the disk refuses; then the file is as it was.
    """
    path = f"{folder}/{CHECKPOINTS}"
    try:
        handle = os.open(path, _FLAGS, 0o600)
        try:
            found = os.fstat(handle)
            check_found(found, path)
            end = _find_end(handle, found.st_size)
            try:
                if end != found.st_size:
                    os.ftruncate(handle, end)
                os.lseek(handle, end, os.SEEK_SET)
                write_all(handle, line)
                os.fdatasync(handle)
            except OSError:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_write(path, error) from error


def _find_end(handle: int, size: int) -> int:
    """Return where the last whole line ends."""
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return size
    begin = max(0, size - MOST_LINE_BYTES)
    return begin + os.pread(handle, size - begin, begin).rfind(b"\n") + 1


def replace_checkpoints(folder: str, contents: bytes) -> None:
    """Replace the file, whole. Raise RelayError if the disk refuses; then it is as it was."""
    write_atomic(f"{folder}/{CHECKPOINTS}", contents)
