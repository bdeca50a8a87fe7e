"""The tail of what the child wrote, by byte offset."""

import random

from agent_relay.terminal.holder._output import TAIL_BYTES, Tail


def test_the_tail_is_what_was_written_at_any_offset() -> None:
    """Blocks are how it is kept, not what is read: no byte is lost, doubled or moved at their borders."""
    dice = random.Random(5)  # noqa: S311 - sizes of reads, not secrets
    tail, written = Tail(), b""
    while len(written) < 2 * TAIL_BYTES:
        data = dice.randbytes(dice.choice((1, 7, 4095, 70_000)))
        tail.append(data)
        written += data
    assert tail.total == len(written)
    assert TAIL_BYTES <= tail.total - tail.start <= TAIL_BYTES + 2 * 140_000
    assert tail.read(0, len(written)) == (tail.start, written[tail.start :])
    for _ in range(200):
        offset, limit = dice.randrange(len(written) + 9), dice.randrange(200_000)
        begin = min(max(offset, tail.start), tail.total)
        assert tail.read(offset, limit) == (begin, written[begin : begin + limit])


def test_single_bytes_do_not_cost_more_memory_than_they_are() -> None:
    """A program that writes byte by byte must not make the holder grow."""
    tail = Tail()
    for _ in range(TAIL_BYTES + 200_000):
        tail.append(b"x")
    assert tail.total - tail.start <= TAIL_BYTES + 140_000
