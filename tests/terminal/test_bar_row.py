"""The bar's row: the longest text that fits, one row of it, and no more."""

import pytest

from agent_relay.terminal._bar_frame import BarFrame, render_scroll
from agent_relay.terminal.bar_row import fit, render_bar, render_lone_bar
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library

TEXTS = ["relay  ada → bob · why", "ada → bob", "bob"]


@pytest.mark.parametrize(
    ("cols", "expected"),
    [
        (80, TEXTS[0]),
        (22, TEXTS[0]),
        (21, TEXTS[1]),
        (9, TEXTS[1]),
        (8, "bob"),
        (3, "bob"),
        (2, "bo"),
        (1, "b"),
    ],
)
def test_the_longest_text_that_fits_is_shown(cols: int, expected: str) -> None:
    """The last one is cut where even that is too long."""
    assert fit(TEXTS, cols) == expected


def test_wide_signs_count_as_the_terminal_counts_them() -> None:
    """A text one column too wide would lose its end."""
    assert fit(["中文", "x"], 4) == "中文"
    assert fit(["中文", "x"], 3) == "x"
    assert fit(["中文"], 3) == "中"
    assert fit([], 3) == ""


def test_control_characters_are_blanks() -> None:
    """A reason quotes an agent, whose text must not move the cursor."""
    assert fit(["a\x1b[2J\r\nb\x9b\u202e"], 80) == "a [2J  b  "


@pytest.mark.parametrize("cols", [1, 3, 20, 22, 80])
def test_the_row_is_painted_in_place(cols: int) -> None:
    """Nothing scrolls, nothing above it changes, and what stood there is gone."""
    emulator = Emulator(find_library() or "", cols, 4)
    emulator.feed(b"\x1b[?7l\x1b[Hx\x1b[4;1H" + b"#" * cols + b"\x1b[2;2H")
    emulator.feed(render_bar(TEXTS, 4, cols))
    assert emulator.text() == ["x", "", "", fit(TEXTS, cols)]
    emulator.feed(b"\x1b[2;2H" + render_lone_bar(["y"], 4, cols))
    assert emulator.text() == ["x", "", "", "y"]
    assert emulator.cursor() == (1, min(1, cols - 1))


def test_only_what_changed_is_painted() -> None:
    """Forty pictures in a second are looked at; a terminal far away has them to take."""
    emulator = Emulator(find_library() or "", 80, 24)
    emulator.feed(b"one\r\ntwo\r\nthree")
    frame = BarFrame()

    def paint() -> bytes:
        return frame.paint(emulator, TEXTS, rows=24, cols=80, holds_keys=True, is_drawn=True)

    assert b"two" in paint()
    assert paint() == b""
    emulator.feed(b"\x1b[2;1HTWO")
    changed = paint()
    assert b"TWO" in changed
    assert b"three" not in changed
    assert b"relay" not in changed
    frame.forget()
    assert b"three" in paint()


def test_the_last_picture_of_an_agent_that_left_its_screen_stays() -> None:
    """Some agents leave an empty screen behind; a blank says nothing while one waits."""
    emulator = Emulator(find_library() or "", 80, 24)
    emulator.feed(b"\x1b[?1049h\x1b[3;3Hworking")
    frame, shown = BarFrame(), Emulator(find_library() or "", 80, 24)
    for said in (b"", b"\x1b[?1049l", b"bye"):
        emulator.feed(said)
        shown.feed(frame.paint(emulator, TEXTS, rows=24, cols=80, holds_keys=True, is_drawn=True))
        assert shown.text()[23] == TEXTS[0]
        assert shown.text()[2] == ("" if said == b"bye" else "  working")
    assert shown.text()[0] == "bye"


def test_what_stands_above_the_bar_moves_into_the_scrollback() -> None:
    """Without the bar, and in terminals too small for anything to move."""
    for rows in (1, 2, 3, 24):
        emulator = Emulator(find_library() or "", 80, max(rows, 2))
        emulator.feed(b"one" + b"\x1b[%d;1Hbar" % rows)
        emulator.feed(render_scroll(rows))
        if rows > 2:
            assert emulator.text()[0] == ""
            assert emulator.take_scrolled()[0] == "one"
            assert emulator.text()[-1] == "bar"
