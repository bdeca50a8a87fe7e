"""A recording played with the records that were written beside it: what is heard when, and told where."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agent_relay.domain.limits import Record, Signal, Source
from agent_relay.sources.replay import Timing, play
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.detecting import START, build, render, row

OUTPUT = b"hello\r\n! limit reached\r\nthe end, at last\r\n"
SEEN = OUTPUT.index(b"the end")


def replay(
    chunks: Sequence[bytes],
    records: Sequence[Record] = (),
    *,
    timing: Timing,
    cols: int = 40,
) -> tuple[Signal, ...]:
    """The signals of a recording of these chunks."""
    return play(
        iter(chunks),
        total=sum(len(chunk) for chunk in chunks),
        timing=timing,
        emulator=Emulator(find_library(), cols, 8),
        detector=build(),
        records=records,
        started_at=START,
    )


def told(signals: tuple[Signal, ...]) -> list[tuple[str, int | None]]:
    """Each signal in short, and the byte it is stamped with."""
    return [(line, signal.at_offset) for line, signal in zip(render(signals), signals, strict=True)]


def test_a_notice_is_told_at_the_byte_its_screen_was_reached() -> None:
    """The offset leads to the place in the recording."""
    found = replay([OUTPUT], timing=Timing(settled=(SEEN, len(OUTPUT)), length_s=4))
    assert told(found) == [("limit account - screen no", SEEN)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_size_of_the_reads_changes_nothing(size: int) -> None:
    """The kernel cuts a live agent's output where it likes."""
    chunks = [OUTPUT[at : at + size] for at in range(0, len(OUTPUT), size)]
    found = replay(chunks, timing=Timing(settled=(7, SEEN), length_s=4))
    assert told(found) == [("limit account - screen no", SEEN)]


def test_a_record_is_heard_before_the_screen_of_its_moment_is_looked_at() -> None:
    """Live, the record is on disk before the agent paints what it says; the screen then adds nothing."""
    timing = Timing(settled=(7, SEEN), marks=((0, 1.0), (7, 5.0)), length_s=9)
    found = replay([OUTPUT], [row(3, "error", "limit reached")], timing=timing)
    assert told(found) == [("limit account - transcript acts", SEEN)]
    late = replay([OUTPUT], [row(6, "error", "limit reached")], timing=timing)
    assert told(late) == [
        ("limit account - screen no", SEEN),
        ("limit account - transcript acts", len(OUTPUT)),
    ]


def test_a_record_without_a_time_comes_right_after_its_predecessor() -> None:
    """Logs and events carry none: their place in the file is all that is known."""
    nameless = Record(Source.EVENT, {"type": "", "text": "retry in 9 minutes"})
    before, after = row(1, "user", "fix it"), row(8, "error", "limit reached")
    timing = Timing(settled=(7,), marks=((0, 2.0), (7, 9.0)), length_s=9)
    found = replay([b"hello\r\nand so on"], [before, nameless, after], timing=timing)
    assert told(found) == [
        ("silent-limit model 10:09:01 event acts", 7),
        ("limit account - transcript acts", 16),
    ]
    found = replay([b"hello\r\nand so on"], [before, after, nameless], timing=timing)
    assert told(found) == [
        ("limit account - transcript acts", 16),
        ("silent-limit model 10:09:08 event acts", 16),
    ]


def test_a_notice_that_stands_to_the_end_of_the_recording_acts_there() -> None:
    """A live leg would have waited for it; a recording is over, and time goes on."""
    records = [row(1, "agent", "done")]
    marks = ((0, 1.0), (2, 2.0))
    brief = replay([b"\r\n! nearly there"], records, timing=Timing((2,), marks, length_s=3))
    assert told(brief) == [("near-limit warning - screen no", 16)]
    found = replay([b"\r\n! nearly there"], records, timing=Timing((2,), marks, length_s=60))
    assert told(found) == [("near-limit warning - screen no", 16), ("near-limit warning - screen acts", 16)]


def test_the_terminal_changes_its_size_where_the_recording_says() -> None:
    """Rows painted for another width are another screen."""
    wide = b"! limit reached until 11:01"
    timing = Timing(sizes=((len(wide), 12, 8),), length_s=2)
    assert told(replay([wide + b"\r\nmore"], timing=timing)) == [("limit account 11:01:00 screen no", 27)]
    narrow = Timing(sizes=((2, 12, 8),), length_s=2)
    assert told(replay([b"\r\n" + wide], timing=narrow)) == []


def test_an_empty_recording_says_what_its_records_say() -> None:
    """A leg that died before it painted anything may have left a record."""
    assert replay([], timing=Timing()) == ()
    found = replay([b""], [row(1, "error", "limit reached")], timing=Timing(length_s=1))
    assert told(found) == [("limit account - transcript acts", 0)]
    assert found[0].evidence.text == "limit reached"


def test_records_from_before_the_recording_are_history() -> None:
    """A resumed conversation repeats the limits of days ago."""
    old = Record(
        Source.TRANSCRIPT, {"type": "error", "text": "limit reached"}, datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert replay([OUTPUT[:7]], [old], timing=Timing(length_s=1)) == ()
