"""Reads one part of a file that grows: the marks of what is new in it, and how far that is."""

import msgspec

from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.logic.transcripts.usage.packed import pack_answers
from agent_relay.logic.transcripts.usage.registry import UsageReader
from agent_relay.system.usage_blocks import Room, read_blocks


class Part(msgspec.Struct, array_like=True):
    """What stands up to `offset`: its `marks`, the `memory` to go on with, and the file's `guard` there.

    `loose` are the marks of a last line without its end: it may be whole, and is read again tomorrow.
    `encoded` are the marks as the index keeps them, where another process has told of them so.
    """

    offset: int
    guard: bytes
    memory: Memory
    marks: list[Mark]
    loose: list[Mark]
    encoded: bytes = b""


class _Told(msgspec.Struct, array_like=True):
    """A part as another process tells of it."""

    offset: int
    guard: bytes
    memory: Memory
    marks: msgspec.Raw
    loose: list[Mark]


_marks = msgspec.msgpack.Decoder(list[Mark])
_told = msgspec.msgpack.Decoder(_Told | None)


def decode_part(data: bytes) -> Part | None:
    """The part, or the absence of one, that was encoded as MessagePack."""
    told = _told.decode(data)
    if told is None:
        return None
    marks = _marks.decode(told.marks)
    return Part(told.offset, told.guard, told.memory, marks, told.loose, bytes(told.marks))


def read_part(
    reader: UsageReader, path: str, offset: int, guard: bytes, memory: Memory, *, room: Room
) -> Part | None:
    """The part of `path` from `offset` on, where `memory` (changed by this) and `guard` belong to.

    `None` where the file is another than that. Raises RelayError where it cannot be read.
    """
    read, marks, loose = reader.read, list[Mark](), list[Mark]()
    if read is None:
        return Part(offset, guard, memory, marks, loose)
    result = read_blocks(path, offset, guard, lambda block: marks.extend(read(block, memory)), room)
    if result is None:
        return None
    offset, guard, rest = result
    if rest:
        loose.extend(read(rest, msgspec.structs.replace(memory)))
    return Part(offset, guard, memory, pack_answers(marks), loose)
