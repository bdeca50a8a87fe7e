"""Read the new part of a growing file in blocks of whole lines, as records of usage.

Memory is bounded. A guard, the first and last bytes read before, shows whether the file is still the same.
"""

import os
from collections.abc import Iterator

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.sources.transcript_files import cannot_read
from agent_relay.system.disk.regular_files import open_regular
from agent_relay.transcripts.lenient_json import LINE_BYTES
from agent_relay.transcripts.usage.answer_columns import pack_answers
from agent_relay.transcripts.usage.readers import UsageReader
from agent_relay.transcripts.usage.records import ReaderState, UsageRecord

BLOCK_BYTES = 256 << 10
"""What fits a core's cache: larger blocks take longer to read."""
_MOST_BYTES = 16 << 30
"""No agent writes so much: a file that claims to be larger would be read for hours."""
_GUARD_BYTES = 256


class Part(msgspec.Struct):
    """The records up to `offset`: its `marks`, the `memory` to continue with, and the file's `guard` there.

    `loose` are the records of a last line without its end: it may be whole, and is read again next time.
    """

    offset: int
    guard: bytes
    memory: ReaderState
    marks: list[UsageRecord]
    loose: list[UsageRecord]


def read_part(reader: UsageReader, path: str, offset: int, guard: bytes, memory: ReaderState) -> Part | None:
    """Read the part of `path` from `offset` on, to which `memory` (changed by this) and `guard` belong.

    Returns `None`, with nothing read, if the file is not the one they were made of. Raises RelayError if it
    cannot be read.
    """
    read, marks, loose = reader.read, list[UsageRecord](), list[UsageRecord]()
    if read is None:
        return Part(offset, guard, memory, marks, loose)
    try:
        handle = open_regular(path)
        try:
            size = os.fstat(handle).st_size
            if size - offset > _MOST_BYTES:
                raise RelayError(f"{path} is larger than {_MOST_BYTES >> 30} GiB")
            if offset and _make_guard(handle, offset) != guard:
                return None
            for block, offset_after in _iterate_blocks(handle, offset, size):
                if block.endswith(b"\n"):
                    offset = offset_after
                    marks.extend(read(block, memory))
                else:
                    loose.extend(read(block, msgspec.structs.replace(memory)))
            return Part(offset, _make_guard(handle, offset), memory, pack_answers(marks), loose)
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_read(path, error) from error


def _make_guard(handle: int, offset: int) -> bytes:
    """Return the first and last bytes before `offset`: another file at this path differs in one of them."""
    size = min(offset, _GUARD_BYTES)
    return os.pread(handle, size, 0) + os.pread(handle, size, offset - size)


def _iterate_blocks(handle: int, offset: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines and the offset after each; then the last line if it has no end.

    Of a line too long to be a record only as much is kept as shows that it is.
    """
    rest = b""
    while offset < end and (piece := os.pread(handle, min(BLOCK_BYTES, end - offset), offset)):
        offset += len(piece)
        lines, feed, after = piece.rpartition(b"\n")
        if feed:
            yield rest + lines + feed, offset - len(after)
            rest = after
        elif len(rest) <= LINE_BYTES:
            rest += piece
    if rest:
        yield rest, offset
