from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.values import AgentName
from agent_relay.sources.replay import FrameCutter, Timing, keep_best

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TOKENS = (b"text", b"\x1b[?2026l", b"\x1b[2K\x1b[1A", b"\x1b[2K", b"\x1b[1A", b"\x1b", b"[?2026", b"x" * 9000)


def cut(data: bytes, sizes: list[int], offsets: list[int]) -> list[bytes]:
    cutter = FrameCutter(offsets)
    pieces: list[bytes] = []
    at = 0
    for size in sizes:
        pieces += cutter.feed(data[at : at + size])
        at += size
    pieces += cutter.feed(data[at:])
    return pieces + list(cutter.flush())


@given(
    st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join),
    st.lists(st.integers(min_value=1, max_value=40), max_size=60),
    st.lists(st.integers(min_value=0, max_value=300), max_size=5),
)
def test_a_stream_is_cut_the_same_however_it_arrives(
    data: bytes, sizes: list[int], offsets: list[int]
) -> None:
    """Looks depend on content or known offsets, never on reads."""
    pieces = cut(data, sizes, offsets)
    assert b"".join(pieces) == data
    assert pieces == cut(data, [], offsets)
    assert all(pieces)


def test_frames_end_where_their_painter_says() -> None:
    """After a synchronised update, and before the erasures that begin the next frame."""
    data = b"one\x1b[?2026ltwo\x1b[2K\x1b[1A\x1b[2K\x1b[1Athree and more text"
    assert cut(data, [], []) == [
        b"one\x1b[?2026l",
        b"two",
        b"\x1b[2K\x1b[1A\x1b[2K\x1b[1Athree and more text",
    ]


def test_a_stream_without_frames_is_looked_at_now_and_then() -> None:
    """Plain output still scrolls notices by."""
    assert [len(piece) for piece in cut(b"x" * 40_000, [], [])] == [16_384, 16_384, 7_232]


def test_known_pauses_are_the_only_cuts() -> None:
    """Times beside a recording say where a live leg would have been looked at."""
    assert cut(b"abc\x1b[?2026ldef, and so on", [], [2, 5, 99]) == [b"ab", b"c\x1b[", b"?2026ldef, and so on"]


def test_the_time_of_a_byte_is_known_or_spread() -> None:
    """Without marks the bytes are taken to have come evenly."""
    marked = Timing(marks=((0, 1.0), (10, 2.0)), length_s=9)
    assert [marked.find_time(offset, 20) for offset in (0, 5, 10, 11)] == [0.0, 1.0, 1.0, 2.0]
    assert Timing(length_s=10).find_time(5, 20) == 2.5
    assert Timing(length_s=10).find_time(0, 0) == 0.0


def signal(
    kind: Kind = Kind.LIMIT, *, reset: datetime | None = None, offset: int = 0, model: str = ""
) -> Signal:
    return Signal(
        AgentName("a"),
        kind,
        Scope.ACCOUNT,
        Evidence(Source.SCREEN, "x"),
        decides=False,
        resets_at=reset,
        at_offset=offset,
        model=model,
    )


def test_the_last_word_about_a_limit_is_kept_where_it_was_first_seen() -> None:
    """One limit, one line, with the best reset."""
    best = keep_best([signal(offset=1), signal(Kind.SILENT_LIMIT, reset=NOON, offset=2)])
    assert best == (signal(Kind.SILENT_LIMIT, reset=NOON, offset=1),)


def test_other_limits_are_lines_of_their_own() -> None:
    """Another model, another kind, another day."""
    found = [signal(reset=NOON), signal(model="m"), signal(Kind.RETRY), signal(reset=NOON.replace(hour=20))]
    assert keep_best(found) == tuple(found)
