"""Cut a block of bytes into lines and look at their ends only, so that tools' output is not decoded."""

from collections.abc import Iterator
from typing import Protocol

from agent_relay.transcripts.lenient_json import LINE_BYTES

Span = tuple[int, int]


class ByteBlock(Protocol):
    """Bytes that can be searched in place: `bytes`, or the beginning of a larger block of memory."""

    def find(self, literal: bytes, start: int = ..., end: int = ..., /) -> int:
        """Return the first offset of `literal`, -1 if there is none."""

    def rfind(self, literal: bytes, start: int = ..., end: int = ..., /) -> int:
        """Return the last offset of `literal`, -1 if there is none."""

    def __getitem__(self, part: slice, /) -> bytes:
        """Return a copy of a part."""

    def __len__(self) -> int:
        """Return the number of bytes."""


def iterate_spans(data: ByteBlock) -> Iterator[Span]:
    """Yield start and end (without the line feed) of every line that is not too long to be a record."""
    find, start, size = data.find, 0, len(data)
    while (end := find(b"\n", start, size)) >= 0:
        if start < end <= start + LINE_BYTES:
            yield start, end
        start = end + 1
    if start < size <= start + LINE_BYTES:
        yield start, size


def has_near_ends(data: ByteBlock, span: Span, literal: bytes, *, head: int, tail: int) -> bool:
    """Check whether the first `head` or the last `tail` bytes of the line contain `literal`."""
    start, end = span
    # Most often it stands near the end: what is looked for from there is found at once.
    if end - start <= head + tail:
        return data.rfind(literal, start, end) >= 0
    return data.rfind(literal, end - tail, end) >= 0 or data.find(literal, start, start + head) >= 0
