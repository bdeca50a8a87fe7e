"""What a terminal says by itself is taken out of its input; what a person does on it never is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.keystrokes import KeyScanner, is_focus
from agent_relay.terminal.query_answers import count_cursor, is_answer
from agent_relay.terminal.typed_line import TypedLine

ANSWERS = (
    b"\x1b[?62;22c",
    b"\x1b[>1;10;0c",
    b"\x1bP!|7E565445\x1b\\",
    b"\x1b[24;80R",
    b"\x1b[?1;1R",
    b"\x1b[?1;5;1R",
    b"\x1b[0n",
    b"\x1b[?997;1n",
    b"\x1b]10;rgb:d8d8/d8d8/d8d8\x1b\\",
    b"\x1b]11;rgb:0000/0000/0000\x07",
    b"\x1b]12;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]4;1;rgb:aaaa/0000/0000\x1b\\",
    b"\x1b]52;c;" + b"QUJD" * 20 + b"\x07",
    b"\x1b[?0u",
    b"\x1b[?31u",
    b"\x1b[?2026;2$y",
    b"\x1b[4;2$y",
    b"\x1b[8;24;80t",
    b"\x1b[4;384;640t",
    b"\x1b[48;24;80;384;640t",
    b"\x1b[?1;0;256S",
    b"\x1b[>4;2m",
    b"\x1bP>|xterm(390)\x1b\\",
    b"\x1bP1+r524742=38\x1b\\",
    b"\x1bP0+r\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
    b"\x1b[2;1;1;128;128;1;0x",
)
KEYS = (
    b"a",
    "ü".encode(),
    b"\r",
    b"\x1b[A",
    b"\x1bOR",
    b"\x1bOP",
    b"\x1b[R",
    b"\x1b[1;2R",
    b"\x1b[1;5R",
    b"\x1b[1;8R",
    b"\x1b[1;133R",
    b"\x1b[1;5:3R",
    b"\x1b[>1;2R",
    b"\x1b[1;5S",
    b"\x1b[13;2~",
    b"\x1b[97;5u",
    b"\x1b[13;1:3u",
    b"\x1b[57441;2u",
    b"\x1b[27;5;105~",
    b"\x1b[3$",
    b"\x1b[7^",
    b"\x1b]",
    b"\x1bP",
    b"\x1b_",
    b"\x1b]b",
    b"\x1b<",
    b"\x1b[<35;10;20M",
    b"\x1b[<0;1;1m",
    b"\x1b[M !!",
    b"\x1b[I",
    b"\x1b[200~\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[201~",
)


def scanner() -> KeyScanner:
    return KeyScanner(0x1D, TypedLine())


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_taken_out_wherever_it_is_cut(answer: bytes) -> None:
    """A second terminal's answer would be read as another one, or as typed text."""
    data = b"ab" + answer + b"cd"
    for cut in range(len(data) + 1):
        keys, passed, answers = scanner(), b"", b""
        for part in (data[:cut], data[cut:]):
            more, rest = keys.feed(part, sift=True)
            assert rest is None
            passed += more
            answers += keys.answers
        assert (passed + keys.release(), answers) == (b"abcd", answer), cut


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_never_taken_for_an_answer(key: bytes) -> None:
    """A person at the second terminal types with every key there is, and pastes what they like."""
    for cut in range(len(key) + 1):
        keys, passed = scanner(), b""
        for part in (key[:cut], key[cut:]):
            more, _ = keys.feed(part, sift=True)
            passed += more
            assert keys.answers == b""
        assert passed + keys.release() == key, cut
    assert keys.feed(b"x", sift=True) == (b"x", None)


def test_a_cursor_in_the_first_row_is_an_answer_while_one_is_due() -> None:
    """It looks as Ctrl-F3 does; only the question tells them apart."""
    keys = scanner()
    keys.cursor_due = count_cursor(b"\x1b[1;5R\x1b[0n")
    assert keys.feed(b"\x1b[1;5R\x1b[1;5R", sift=True) == (b"\x1b[1;5R", None)
    assert (keys.answers, keys.cursor_due) == (b"\x1b[1;5R", 0)


@pytest.mark.parametrize(
    ("data", "so"),
    [
        (b"\x1b[?62;22c", True),
        (b"\x1b[9;9R", True),
        (b"\x1b[1;5R", False),
        (b"\x1b[0na", False),
        (b"a", False),
    ],
)
def test_one_whole_answer_is_known_as_such(data: bytes, so: bool) -> None:  # noqa: FBT001 - a table's column
    """At the relay prompt it is no key, and what may be a key is one."""
    assert is_answer(data) is so


def test_an_answer_that_never_ends_does_not_swallow_keys_for_long() -> None:
    """A torn answer ends at the next control key, or when nothing more comes."""
    keys = scanner()
    assert keys.feed(b"\x1b]11;rgb:00", sift=True) == (b"", None)
    assert keys.answering
    assert keys.feed(b"00\rtyped", sift=True) == (b"\rtyped", None)
    keys.feed(b"\x1b]11;rgb:00", sift=True)
    assert keys.release() == b""
    assert keys.feed(b"typed", sift=True) == (b"typed", None)
    keys.feed(b"\x1b]11;rgb:00", sift=True)
    assert keys.feed(b"active", sift=False) == (b"active", None)
    assert keys.feed(b"typed", sift=True) == (b"typed", None)


def test_the_relay_key_behind_an_answer_is_found() -> None:
    """The person at the other terminal may want to leave."""
    keys = scanner()
    assert keys.feed(b"\x1b[?62;22c\x1d/detach", sift=True) == (b"", b"/detach")
    assert keys.answers == b"\x1b[?62;22c"


def test_answers_are_no_half_typed_line() -> None:
    """The daemon would wait for an Enter nobody owes."""
    keys = scanner()
    keys.feed(b"\x1b]52;c;" + b"QUJD" * 4000, sift=True)
    keys.feed(b"QUJD\x07ab", sift=True)
    assert keys.line.count == 2


@given(st.lists(st.sampled_from(ANSWERS + KEYS), max_size=12), st.lists(st.integers(0, 400), max_size=12))
def test_answers_and_keys_are_parted_however_they_are_mixed_and_cut(
    said: list[bytes], cuts: list[int]
) -> None:
    """Reads end anywhere, and several things come in one."""
    data, passed, answers = b"".join(said), b"", b""
    keys = scanner()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        passed += keys.feed(data[start:end], sift=True)[0]
        answers += keys.answers
    passed += keys.release()
    whole = scanner()
    expected = whole.feed(data, sift=True)[0]
    expected_answers = whole.answers
    assert (passed, answers) == (expected + whole.release(), expected_answers)


@given(st.binary(max_size=300), st.integers(1, 9))
def test_nothing_is_lost_between_keys_and_answers(data: bytes, size: int) -> None:
    """Whatever comes is either."""
    keys, passed, answers = KeyScanner(0, TypedLine()), b"", b""
    for start in range(0, len(data), size):
        passed += keys.feed(data[start : start + size], sift=True)[0]
        answers += keys.answers
    assert len(passed + keys.release()) + len(answers) == len(data)


@pytest.mark.size("every")
def test_large_input_is_sifted_quickly() -> None:
    """A paste of megabytes at the second terminal must not stall the loop."""
    keys = scanner()
    for piece in (b"some text\n" * 6000, b"\x1b[" * 30000, b"\x1b]1" * 20000, b"\x1bP1;" * 15000):
        for _ in range(20):
            keys.feed(piece, sift=True)
    assert keys.line.count > 0


@pytest.mark.parametrize(("data", "so"), [(b"\x1b[I", True), (b"\x1b[O\x1b[I", True), (b"\x1b[Ia", False)])
def test_the_focus_is_not_typing(data: bytes, so: bool) -> None:  # noqa: FBT001 - a table's column
    """A window that comes to the front is not typed on yet."""
    assert is_focus(data) is so
