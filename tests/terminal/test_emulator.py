"""The emulated terminal: exact screens, exact repaints, answers to questions, whatever the cuts."""

import os
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.ghostty import EmulatorError
from agent_relay.terminal.emulation.library import find_library

LIBRARY = find_library() or ""

PIECES = (
    b"plain words ",
    b"\r\n",
    b"\x1b[31mred\x1b[0m",
    b"\x1b[38;2;255;95;135mpink",
    b"\xe4\xb8\xad\xe6\x96\x87",
    b"\xf0\x9f\x98\x80e\xcc\x81",
    b"\x1b[2;4r",
    b"\x1b[r",
    b"\x1b[3;5H",
    b"\x1b[2J",
    b"\x1b[K",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?2004h",
    b"\x1b[?2004l",
    b"\x1b[?1000h\x1b[?1006h",
    b"\x1b[?1000l",
    b"\x1b[?25l",
    b"\x1b[?25h",
    b"\x1b[>7u",
    b"\x1b[<u",
    b"\x1b(0lqk\x1b(B",
    b"\x1b[4 q",
    b"\x1b]2;a title\x07",
    b"\x1b]11;#102030\x1b\\",
    b"\x1b[?2026h",
    b"\x1b[?2026l",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1bM",
    b"\x1b7",
    b"abcdefghijklmnopqrstuvwxyz",
    b"\x1b[",
    b"\xe4\xb8",
    b"\x1b[?104",
    b"\x1b]0;half",
)


def state(emulator: Emulator) -> tuple[object, ...]:
    """Everything two terminals must agree on."""
    return emulator.text(), emulator.cursor(), emulator.modes(), emulator.title()


def test_the_screen_has_exactly_its_rows_right_trimmed() -> None:
    """Rules address rows by number; a missing blank row would shift them all."""
    emulator = Emulator(LIBRARY, 10, 4)
    emulator.feed(b"one  \r\n\r\nthree")
    assert emulator.text() == ["one", "", "three", ""]
    assert emulator.cursor() == (2, 5)


def test_a_missing_library_is_a_sentence_with_a_hint() -> None:
    """Without a wheel (musl) the user must read what is missing, not a ctypes traceback."""
    with pytest.raises(EmulatorError, match=r"cannot be loaded.*nowhere") as caught:
        Emulator("/nowhere/libghostty-vt.so", 10, 4)
    assert "pyghostty 0.1.3" in caught.value.hint


def test_a_library_that_is_something_else_is_refused() -> None:
    """Another library at that path must fail at load, not crash later."""
    with pytest.raises(EmulatorError):
        Emulator("libc.so.6", 10, 4)


class Mute(Emulator):
    """A terminal whose library has other layouts: it answers nothing."""

    def take_replies(self) -> bytes:
        super().take_replies()
        return b""


def test_a_library_that_answers_otherwise_is_refused() -> None:
    """Wrong layouts read wrong memory: better no emulator than one that shows what is not there."""
    with pytest.raises(EmulatorError, match="does not do what we know of it"):
        Mute(LIBRARY, 10, 4)


def test_a_call_that_fails_is_a_sentence() -> None:
    """A terminal without rows cannot be; the holder goes on without an emulator and says why."""
    with pytest.raises(EmulatorError, match=r"terminal_new gave -\d"):
        Emulator(LIBRARY, 10, 0)


@pytest.mark.parametrize("cols", [1, 2, 3])
def test_a_terminal_of_a_few_columns_is_one(cols: int) -> None:
    """Some start an agent in a window that grows only later: it must not lose its screen for that."""
    emulator = Emulator(LIBRARY, cols, 2)
    emulator.feed(b"ab")
    assert "".join(emulator.text()) == "ab"
    emulator.resize(10, 2)
    assert emulator.text() == ["ab", ""]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"\x1b[>q", b"\x1bP>|libghostty\x1b\\"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
        (b"\x1b]10;?\x1b\\", b"\x1b]10;rgb:d8d8/d8d8/d8d8\x1b\\"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
        (b"\x1b[14t", b"\x1b[4;64;80t"),
        (b"\x1b[18t", b"\x1b[8;4;10t"),
    ],
)
def test_a_question_to_the_terminal_is_answered_once(question: bytes, answer: bytes) -> None:
    """Agents ask at start; unanswered, one of them starts a second later."""
    emulator = Emulator(LIBRARY, 10, 4)
    emulator.feed(question[:2])
    emulator.feed(question[2:])
    assert emulator.take_replies() == answer
    assert emulator.take_replies() == b""


def test_images_are_refused_so_that_memory_stays_bounded() -> None:
    """An agent that believes in kitty graphics would store pictures in every holder."""
    emulator = Emulator(LIBRARY, 10, 4)
    emulator.feed(b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\")
    assert b"OK" not in emulator.take_replies()


def test_rows_that_scrolled_away_are_handed_out_once_and_in_order() -> None:
    """A limit line may scroll off between two looks."""
    emulator = Emulator(LIBRARY, 10, 3)
    emulator.feed(b"1\r\n2\r\n3\r\n4\r\n5")
    assert emulator.take_scrolled() == ("1", "2")
    assert emulator.take_scrolled() == ()
    emulator.feed(b"\r\n6")
    assert emulator.take_scrolled() == ("3",)


def test_rows_of_the_alternate_screen_are_never_handed_out() -> None:
    """Every terminal forgets them; those of the main screen wait until it is shown again."""
    emulator = Emulator(LIBRARY, 10, 3)
    emulator.feed(b"1\r\n2\r\n3\r\n4\x1b[?1049ha\r\nb\r\nc\r\nd")
    assert emulator.take_scrolled() == ()
    emulator.feed(b"\x1b[?1049l")
    assert emulator.take_scrolled() == ("1",)


def test_a_flood_hands_out_its_last_rows_only() -> None:
    """Memory is bounded whatever the agent prints."""
    emulator = Emulator(LIBRARY, 10, 3)
    emulator.feed(b"".join(b"%d\r\n" % number for number in range(20_000)))
    rows = emulator.take_scrolled()
    assert 0 < len(rows) <= 1000
    assert rows[-1] == "19997"
    assert [int(row) for row in rows] == list(range(20_000 - 2 - len(rows), 20_000 - 2))


def test_the_main_screen_beneath_an_alternate_one_is_repainted_too() -> None:
    """After re-attaching during an editor, leaving the editor must show what was there before."""
    emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    emulator.feed(b"below\r\n\x1b[33mmore\x1b[?10")
    emulator.feed(b"49h\x1b[2J\x1b[Habove")
    fresh.feed(emulator.repaint())
    assert fresh.text()[0] == "above"
    for each in (emulator, fresh):
        each.feed(b"\x1b[?1049l!")
    assert fresh.text() == ["below", "more!", "", ""]
    assert state(fresh) == state(emulator)


def test_the_main_screen_is_kept_as_it_was_when_it_was_covered_last() -> None:
    """An editor that ends and a pager that begins may come in one read, with lines between them."""
    emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    emulator.feed(b"one\x1b[?1049habove\x1b[?1049l two\x1b[?1049hpager\x1b[?1049h")
    fresh.feed(emulator.repaint())
    fresh.feed(b"\x1b[?1049l")
    assert fresh.text()[0] == "one two"


def test_a_repaint_in_the_middle_of_a_sequence_lets_it_end() -> None:
    """A lagging client is repainted between two reads; the rest of a cut sequence must not become text."""
    for cut in (b"\x1b[3", b"\x1b]0;tit", b"\xe4\xb8", b"\x1b[?1049", b"\x1bPq"):
        emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
        emulator.feed(b"text" + cut)
        fresh.feed(b"other\x1b]2;" + emulator.repaint())
        for each in (emulator, fresh):
            each.feed(b"1mx\x07y\x1b\\z")
        assert state(fresh) == state(emulator), cut


def test_an_over_long_sequence_is_not_repeated() -> None:
    """A megabyte in the middle of a copy would be sent again with every repaint."""
    emulator = Emulator(LIBRARY, 20, 4)
    emulator.feed(b"text\x1b]52;c;" + b"A" * (2 << 20))
    assert len(emulator.repaint()) < 10_000


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.lists(st.sampled_from(PIECES), max_size=10))
def test_a_repaint_brings_any_terminal_to_the_same_state(
    written: list[bytes], elsewhere: list[bytes]
) -> None:
    """Attaching and catching up rest on it: whatever the terminal was in, it ends as the emulator is."""
    # Here the library plays the person's terminal, and one flaw of its own would be taken for ours: a
    # character of several bytes inside a control sequence leaves a replacement sign behind, even through a
    # reset. Programs do not write that, and other terminals do not show it.
    assume(not re.search(rb"\x1b\[[\x00-\x1a\x1c-\x3f]*[\x80-\xff]", b"".join(elsewhere)))
    emulator, fresh = Emulator(LIBRARY, 20, 5), Emulator(LIBRARY, 20, 5)
    emulator.feed(b"".join(written))
    fresh.feed(b"".join(elsewhere))
    fresh.feed(emulator.repaint())
    # A program that never set a title leaves the terminal's own.
    assert state(fresh)[:3] == state(emulator)[:3]
    assert fresh.title() == emulator.title() or not emulator.title()
    emulator.close()
    fresh.close()


@settings(max_examples=100)
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.lists(st.integers(1, 40), max_size=30))
def test_where_output_is_cut_changes_nothing(written: list[bytes], sizes: list[int]) -> None:
    """Reads end anywhere."""
    data = b"".join(written)
    whole, cut = Emulator(LIBRARY, 20, 5), Emulator(LIBRARY, 20, 5)
    whole.feed(data)
    for size in sizes:
        cut.feed(data[:size])
        data = data[size:]
    cut.feed(data)
    whole.feed(b"\x1b\\")
    cut.feed(b"\x1b\\")
    assert state(cut) == state(whole)
    assert cut.take_replies() == whole.take_replies()
    assert cut.take_scrolled() == whole.take_scrolled()
    assert cut.repaint() == whole.repaint()


@settings(max_examples=100)
@given(st.binary(max_size=400))
def test_any_bytes_are_taken(data: bytes) -> None:
    """Agents print what they like."""
    emulator = Emulator(LIBRARY, 12, 3)
    emulator.feed(data)
    assert len(emulator.text()) == 3
    emulator.repaint()


def test_sizes_change_and_text_reflows() -> None:
    """A smaller terminal re-attaching must not lose text."""
    emulator = Emulator(LIBRARY, 20, 4)
    emulator.feed(b"abcdefghijkl")
    emulator.resize(8, 4)
    assert emulator.text() == ["abcdefgh", "ijkl", "", ""]
    assert emulator.look_at(0, 0)[1]
    assert not emulator.look_at(0, 1)[1]


def test_finding_the_library_does_not_import_its_package() -> None:
    """Importing it costs 130 ms."""
    assert os.path.basename(LIBRARY).startswith("libghostty-vt")
