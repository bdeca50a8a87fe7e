"""What is typed while nobody may have it is kept whole, in order, and within a bound."""

import pytest

from agent_relay.terminal.keystrokes import HeldKeys, find_pause, is_escape, split_keys
from agent_relay.terminal.typed_line import MOST_BYTES

PASTE = b"\x1b[200~one\rtwo\x1b[201~"


@pytest.mark.parametrize("size", range(1, 30))
def test_keys_cut_anywhere_come_out_as_they_were_typed(size: int) -> None:
    """The scanner hands the mark of a paste's beginning over whole, and everything else as it comes."""
    typed = b"a\x1b[A" + PASTE + "ü\r".encode() + PASTE + b"z"
    keys, at = HeldKeys(), 0
    while at < len(typed):
        end = at + size
        for begin in (typed.find(b"\x1b[200~"), typed.rfind(b"\x1b[200~")):
            end = begin + 6 if begin < end < begin + 6 else end
        assert keys.add(typed[at:end])
        at = end
    assert keys.size == len(typed)
    assert keys.take() == typed
    assert keys.size == 0


def test_what_does_not_fit_is_refused_key_by_key() -> None:
    """Half an arrow is other keys, and half a character none."""
    for key in (b"\x1b[1;5A", "中".encode(), PASTE):
        keys = HeldKeys()
        assert keys.add(b"x" * (MOST_BYTES - 2))
        assert not keys.add(key)
        assert not keys.add(b"yz" + key)
        assert keys.take() == b"x" * (MOST_BYTES - 2) + b"yz"


def test_a_paste_that_does_not_fit_is_refused_to_its_end() -> None:
    """Its rest would be typed as keys, each of its lines sent."""
    keys = HeldKeys()
    assert not keys.add(b"a\x1b[200~" + b"x" * MOST_BYTES)
    assert not keys.add(b"\r" * 1000)
    assert not keys.add(b"\x1b[20")
    assert keys.is_within
    assert not keys.add(b"1~b")
    assert not keys.is_within
    assert keys.take() == b"ab"


def test_a_paste_under_way_is_taken_with_its_beginning() -> None:
    """Its rest reaches the agent by itself, and ends what was begun."""
    keys = HeldKeys()
    assert keys.add(b"a" + PASTE[:9])
    assert keys.is_within
    assert keys.take() == b"a" + PASTE[:9]
    assert not keys.is_within
    assert not keys.add(b"\x1b[200~" + b"x" * MOST_BYTES)
    assert keys.take() == b"\x1b[200~"


def test_what_nobody_typed_is_not_kept() -> None:
    """The terminal sent it before it was told to stop: a successor would read it as text."""
    keys = HeldKeys()
    assert keys.add(b"a\x1b[I\x1b[<35;10;2M\x1b[M !!\x1b[97;1:3u\x1b[1;1:3Ab\x1b[O\x1b[A" + PASTE)
    assert keys.take() == b"ab\x1b[A" + PASTE


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (b"\x1b", True),
        (b"\x1b[27u", True),
        (b"\x1b[27;1u", True),
        (b"\x1b[27;1:1u", True),
        (b"\x1b[27;129u", True),
        (b"\x1b[27;1:3u", False),
        (b"\x1b[27;5u", False),
        (b"\x1b[A", False),
        (b"\x1b\x1b", False),
        (b"", False),
        (b"a", False),
    ],
)
def test_escape_alone_is_told_from_all_other_keys(typed: bytes, *, expected: bool) -> None:
    """It does something of its own; with a modifier, or let go, it does not."""
    assert is_escape(typed) is expected


def test_what_was_held_is_cut_where_a_person_pressed_a_key() -> None:
    """Agents take what they read in one piece for a paste; a run of text and a whole paste are one each."""
    typed = "aü中".encode() + b"\r\x1b[A\x1b[1;5C\x1bOB\x1bx\x7f\x03" + PASTE + b"\rz\x1b"
    assert split_keys(typed) == [
        "aü中".encode(),
        *(b"\r", b"\x1b[A", b"\x1b[1;5C", b"\x1bOB", b"\x1bx", b"\x7f", b"\x03"),
        *(PASTE, b"\r", b"z", b"\x1b"),
    ]
    assert split_keys(b"a" + PASTE[:-1]) == [b"a", PASTE[:-1]]
    assert split_keys(b"") == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"fix it", b"\r", 0.2),
        (b"\r", b"then", 0.2),
        (b"\x03", b"then", 0.2),
        (b"\x03", b"\x03", 1.2),
        (b"abc", b"\x1b[D", 0.05),
        (PASTE, b"x", 0.05),
    ],
)
def test_what_an_agent_would_take_for_something_else_is_typed_apart(
    before: bytes, after: bytes, expected: float
) -> None:
    """Enter right behind text is a line of a paste to codex; two Ctrl-C within a second end most agents."""
    assert find_pause(before, after) == expected
