"""Reads one part of a file that grows: the marks of what is new in it, and how far that is."""

import msgspec

from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.logic.transcripts.usage.registry import UsageReader
from agent_relay.system.usage_files import read_blocks


class Part(msgspec.Struct, array_like=True):
    """What stands up to `offset`: its `marks`, the `memory` to go on with, and the file's `guard` there.

    `loose` are the marks of a last line without its end: it may be whole, and is read again tomorrow.
    """

    offset: int
    guard: bytes
    memory: Memory
    marks: list[Mark]
    loose: list[Mark]


def read_part(reader: UsageReader, path: str, offset: int, guard: bytes, memory: Memory) -> Part | None:
    """The part of `path` from `offset` on, where `memory` (changed by this) and `guard` belong to.

    `None` where the file is another than that. Raises RelayError where it cannot be read.
    """
    read, marks, loose = reader.read, list[Mark](), list[Mark]()
    if read is None:
        return Part(offset, guard, memory, marks, loose)
    result = read_blocks(path, offset, guard, lambda block: marks.extend(read(block, memory)))
    if result is None:
        return None
    offset, guard, rest = result
    if rest:
        loose.extend(read(rest, msgspec.structs.replace(memory)))
    return Part(offset, guard, memory, marks, loose)
