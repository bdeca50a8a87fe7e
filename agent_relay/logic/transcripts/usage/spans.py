"""Cuts a block of bytes into lines and looks at their ends only, so that tools' output is not decoded."""

from collections.abc import Iterator
from typing import Protocol

from agent_relay.logic.transcripts.limits import LINE_BYTES

Span = tuple[int, int]


class Block(Protocol):
    """Bytes of a file that can be searched where they are: `bytes`, or a mapping of the file itself."""

    def find(self, literal: bytes, start: int = ..., end: int = ..., /) -> int:
        """Where `literal` stands first; -1 for nowhere."""

    def rfind(self, literal: bytes, start: int = ..., end: int = ..., /) -> int:
        """Where `literal` stands last; -1 for nowhere."""

    def __getitem__(self, part: slice, /) -> bytes:
        """A copy of a part."""

    def __len__(self) -> int:
        """How many there are."""


def iterate_spans(data: Block) -> Iterator[Span]:
    """Start and end (without the line feed) of every line that is not too long to be a record."""
    find, start = data.find, 0
    while (end := find(b"\n", start)) >= 0:
        if start < end <= start + LINE_BYTES:
            yield start, end
        start = end + 1
    if start < len(data) <= start + LINE_BYTES:
        yield start, len(data)


def has_near_ends(data: Block, span: Span, literal: bytes, *, head: int, tail: int) -> bool:
    """Whether `literal` stands in the first `head` or the last `tail` bytes of the line."""
    start, end = span
    # Most often it stands near the end: what is looked for from there is found at once.
    if end - start <= head + tail:
        return data.rfind(literal, start, end) >= 0
    return data.rfind(literal, end - tail, end) >= 0 or data.find(literal, start, start + head) >= 0
