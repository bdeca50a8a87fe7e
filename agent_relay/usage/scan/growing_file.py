"""Read the new part of a growing file in blocks of whole lines, as records of usage.

Memory is bounded: blocks are read into one buffer after the other. A guard, the first and last bytes read
before, tells whether the file is still the same.
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
"""What a core keeps at hand: lines are found in it several times as fast as in fresh blocks of 4 MB."""
_PIECE_BYTES = 1 << 20
_MOST_BYTES = 16 << 30
"""No agent writes so much: what claims to be larger would be read for hours."""
_GUARD_BYTES = 256


class ReadBuffer(mmap.mmap):
    """Memory that one block after the other is read into; the `filled` bytes of the last are its length."""

    filled = 0

    def __len__(self) -> int:
        return self.filled


def make_read_buffer() -> ReadBuffer:
    """One for a process or a thread to read its files with."""
    return ReadBuffer(-1, BUFFER_BYTES)


def read_blocks(
    path: str, offset: int, guard: bytes, read: Callable[[ByteBlock], None], room: ReadBuffer
) -> tuple[int, bytes, bytes] | None:
    """Hands every block of whole lines from `offset` on to `read`, which keeps none of them.

    Returns the offset behind the last whole line, the guard of what was read up to there, and the bytes of
    an unfinished last line (empty where it is too long to be a record). `None`, with nothing read, where the
    file is no longer the one `guard` was made of. Raises RelayError where it cannot be read.
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
    """The first and last bytes before `offset`: another file in its place begins or goes on differently."""
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
    """The line at `offset`, how many bytes it has, and whether it has its end; no bytes of one too long."""
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
    """What stands up to `offset`: its `marks`, the `memory` to go on with, and the file's `guard` there.

    `loose` are the marks of a last line without its end: it may be whole, and is read again tomorrow.
    `encoded` are the marks as the index keeps them, where another process has told of them so.
    """

    offset: int
    guard: bytes
    memory: ReaderState
    marks: list[UsageRecord]
    loose: list[UsageRecord]
    encoded: bytes = b""


class _Told(msgspec.Struct, array_like=True):
    """A part as another process tells of it."""

    offset: int
    guard: bytes
    memory: ReaderState
    marks: msgspec.Raw
    loose: list[UsageRecord]


_marks = msgspec.msgpack.Decoder(list[UsageRecord])
_told = msgspec.msgpack.Decoder(_Told | None)


def decode_part(data: bytes) -> Part | None:
    """The part, or the absence of one, that was encoded as MessagePack."""
    told = _told.decode(data)
    if told is None:
        return None
    marks = _marks.decode(told.marks)
    return Part(told.offset, told.guard, told.memory, marks, told.loose, bytes(told.marks))


def read_part(
    reader: UsageReader, path: str, offset: int, guard: bytes, memory: ReaderState, *, room: ReadBuffer
) -> Part | None:
    """The part of `path` from `offset` on, where `memory` (changed by this) and `guard` belong to.

    `None` where the file is another than that. Raises RelayError where it cannot be read.
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
