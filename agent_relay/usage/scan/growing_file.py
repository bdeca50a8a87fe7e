"""Read the new part of a growing file in blocks of whole lines, as records of usage.

Memory is bounded: all blocks are read into one buffer. A guard, the first and last bytes read before, shows
whether the file is still the same.
"""

import mmap
import os
from collections.abc import Callable

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.sources.transcript_files import cannot_read
from agent_relay.system.disk.regular_files import open_regular
from agent_relay.transcripts.lenient_json import LINE_BYTES
from agent_relay.transcripts.usage.answer_columns import pack_answers
from agent_relay.transcripts.usage.line_spans import ByteBlock
from agent_relay.transcripts.usage.readers import UsageReader
from agent_relay.transcripts.usage.records import ReaderState, UsageRecord

BUFFER_BYTES = 256 << 10
"""What fits a core's cache: lines are found in it several times as fast as in fresh blocks of 4 MB."""
_PIECE_BYTES = 1 << 20
_MOST_BYTES = 16 << 30
"""No agent writes so much: a file that claims to be larger would be read for hours."""
_GUARD_BYTES = 256


class ReadBuffer(mmap.mmap):
    """The buffer that one block after the other is read into; its length is that of the last, `filled`."""

    filled = 0

    def __len__(self) -> int:
        return self.filled


def make_read_buffer() -> ReadBuffer:
    """Make a buffer for one process or thread."""
    return ReadBuffer(-1, BUFFER_BYTES)


def read_blocks(
    path: str, offset: int, guard: bytes, read: Callable[[ByteBlock], None], room: ReadBuffer
) -> tuple[int, bytes, bytes] | None:
    """Pass every block of whole lines from `offset` on to `read`, which must not keep it.

    Returns the offset after the last whole line, the guard of what was read up to there, and the bytes of an
    unfinished last line (empty if it is too long to be a record). Returns `None`, with nothing read, if the
    file is no longer the one `guard` was made of. Raises RelayError if it cannot be read.
    """
    try:
        handle = open_regular(path)
        try:
            state = os.fstat(handle)
            if state.st_size - offset > _MOST_BYTES:
                raise RelayError(f"{path} is larger than {_MOST_BYTES >> 30} GiB")
            if offset and _make_guard(handle, offset) != guard:
                return None
            offset, rest = _read_lines(handle, offset, state.st_size, read, room)
            return offset, _make_guard(handle, offset), rest
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_read(path, error) from error


def _make_guard(handle: int, offset: int) -> bytes:
    """Return the first and last bytes before `offset`: another file at this path differs in one of them."""
    size = min(offset, _GUARD_BYTES)
    return os.pread(handle, size, 0) + os.pread(handle, size, offset - size)


def _read_lines(
    handle: int, offset: int, end: int, read: Callable[[ByteBlock], None], room: ReadBuffer
) -> tuple[int, bytes]:
    with memoryview(room) as view:
        while offset < end:
            size = os.preadv(handle, [view[: end - offset]], offset)
            room.filled = room.rfind(b"\n", 0, size) + 1
            if room.filled:
                # What is behind the last line feed is read once more: to move it costs as much.
                read(room)
                offset += room.filled
                continue
            line, size, is_whole = _read_long(handle, offset, end)
            if not is_whole:
                return offset, line
            read(line)
            offset += size
    return offset, b""


def _read_long(handle: int, offset: int, end: int) -> tuple[bytes, int, bool]:
    """Return the line at `offset`, its size, and whether it has its end; no bytes of one too long."""
    pieces, size, cut = list[bytes](), 0, 0
    while offset + size < end and not cut:
        piece = os.pread(handle, min(_PIECE_BYTES, end - offset - size), offset + size)
        if not piece:
            break
        cut = piece.find(b"\n") + 1
        pieces.append(piece[:cut] if cut else piece)
        size += len(pieces[-1])
        if size > LINE_BYTES + 1:
            pieces.clear()
    return b"".join(pieces) if size <= LINE_BYTES + 1 else b"", size, bool(cut)


class Part(msgspec.Struct, array_like=True):
    """The records up to `offset`: its `marks`, the `memory` to continue with, and the file's `guard` there.

    `loose` are the records of a last line without its end: it may be whole, and is read again next time.
    `encoded` are the marks as the index keeps them, if another process has sent them so.
    """

    offset: int
    guard: bytes
    memory: ReaderState
    marks: list[UsageRecord]
    loose: list[UsageRecord]
    encoded: bytes = b""


class _Told(msgspec.Struct, array_like=True):
    """A part as another process sends it."""

    offset: int
    guard: bytes
    memory: ReaderState
    marks: msgspec.Raw
    loose: list[UsageRecord]


_marks = msgspec.msgpack.Decoder(list[UsageRecord])
_told = msgspec.msgpack.Decoder(_Told | None)


def decode_part(data: bytes) -> Part | None:
    """Decode a part, or `None`, from MessagePack."""
    told = _told.decode(data)
    if told is None:
        return None
    marks = _marks.decode(told.marks)
    return Part(told.offset, told.guard, told.memory, marks, told.loose, bytes(told.marks))


def read_part(
    reader: UsageReader, path: str, offset: int, guard: bytes, memory: ReaderState, *, room: ReadBuffer
) -> Part | None:
    """Read the part of `path` from `offset` on, to which `memory` (changed by this) and `guard` belong.

    Returns `None` if the file is not the one they were made of. Raises RelayError if it cannot be read.
    """
    read, marks, loose = reader.read, list[UsageRecord](), list[UsageRecord]()
    if read is None:
        return Part(offset, guard, memory, marks, loose)
    result = read_blocks(path, offset, guard, lambda block: marks.extend(read(block, memory)), room)
    if result is None:
        return None
    offset, guard, rest = result
    if rest:
        loose.extend(read(rest, msgspec.structs.replace(memory)))
    return Part(offset, guard, memory, pack_answers(marks), loose)
