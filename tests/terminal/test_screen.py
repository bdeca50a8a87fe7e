"""Screens as values: colors and wraps of rows, joined lines, the agent's own state, JSON."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.screen import Row, Screen, parse_screen
from agent_relay.sources.replay import capture
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.emulation.output_scanner import AgentStateScanner

LIBRARY = find_library() or ""


def screen_of(data: bytes, cols: int = 20, rows: int = 3) -> Screen:
    emulator = Emulator(LIBRARY, cols, rows)
    emulator.feed(data)
    return capture(emulator)


@pytest.mark.parametrize(
    ("data", "color"),
    [
        (b"\x1b[31m\xe2\x96\xa0 \x1b[0mplain", ""),
        (b"\xe2\x96\xa0 \x1b[38;5;1mred", "palette:1"),
        (b"  \xe2\x8e\xbf  \x1b[38;2;255;95;135mpink", "rgb:ff5f87"),
        (b"\xe4\xb8\xad\x1b[32mx", ""),
        (b"\xe2\x94\x82 \xf0\x9f\x98\x80 \x1b[33mafter emoji", "palette:3"),
        (b"\xe2\x9a\xa0\xef\xb8\x8f  \x1b[33mwarned", "palette:3"),
        (b"\x1b[35m---", "palette:5"),
        (b"", ""),
    ],
)
def test_a_row_has_the_color_of_its_first_word(data: bytes, color: str) -> None:
    """Rules tell an agent's own rows from quoted text by color; boxes and bullets have their own."""
    assert screen_of(data).rows[0].color == color


def test_wrapped_rows_join_to_the_line_that_was_written() -> None:
    """Limit sentences are longer than a terminal is wide."""
    screen = screen_of(b"You have hit your    limit\r\nnext", cols=10, rows=5)
    assert [row.text for row in screen.rows] == ["You have h", "it your", " limit", "next", ""]
    assert screen.joined() == ["You have hit your    limit", "next", ""]


def test_wrapped_rows_of_wide_characters_join_without_gaps() -> None:
    """A wide character fills two cells; counting characters would invent blanks."""
    screen = screen_of("中文中文中文".encode(), cols=8, rows=3)
    assert screen.joined()[0] == "中文中文中文"


def test_a_screen_survives_json() -> None:
    """The holder sends it as JSON and keeps the last one on disk."""
    screen = Screen(
        rows=(Row("a", wrapped=True, color="palette:1"), Row("b")),
        cols=9,
        title="t",
        cursor=(1, 2),
        alternate=True,
        scrolled=("up",),
        agent_state="state=idle:app=x",
        agent_states=("state=working:app=x", "state=idle:app=x"),
    )
    told = {
        "rows": [["a", True, "palette:1"], ["b", False, ""]],
        "cols": 9,
        "title": "t",
        "cursor": [1, 2],
        "alternate": True,
        "scrolled": ["up"],
        "agent_state": "state=idle:app=x",
        "agent_states": ["state=working:app=x", "state=idle:app=x"],
    }
    assert parse_screen(json.loads(json.dumps(told))) == screen


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"rows": 1},
        {"rows": [["a"]], "cols": 1, "title": "", "cursor": [0, 0]},
        {"rows": [[5, False, ""]], "cols": 1, "title": "", "cursor": [0, 0]},
        {"rows": [["a", False, ""]], "cols": float("inf"), "title": "", "cursor": [0, 0]},
    ],
)
def test_what_is_no_screen_is_refused(value: object) -> None:
    """A torn exit.json must not become a strange exception."""
    with pytest.raises(UntrustedDataError):
        parse_screen(value)


STATES = (
    b"a\x1b]7501;state=working:app=x\x1b\\b\x1b]7501;state=error:app=x\x07c\x1b]7501;state=idle:app=x\x1b\\"
)


@given(st.lists(st.integers(0, len(STATES)), max_size=12))
def test_agent_states_are_caught_wherever_output_is_cut(cuts: list[int]) -> None:
    """A limit passes through `error` for a moment only: none may be missed."""
    scanner = AgentStateScanner()
    edges = [0, *sorted(cuts), len(STATES)]
    for start, end in itertools.pairwise(edges):
        scanner.feed(STATES[start:end])
    assert scanner.state == "state=idle:app=x"
    assert scanner.take_seen() == ("state=working:app=x", "state=error:app=x", "state=idle:app=x")
    assert scanner.take_seen() == ()


def test_what_only_looks_like_a_state_is_not_one() -> None:
    """Aborted and endless sequences must neither count nor be kept in memory."""
    scanner = AgentStateScanner()
    scanner.feed(b"\x1b]7501;state=idle\x1b[m")
    scanner.feed(b"\x1b]7501;" + b"x" * 5000)
    scanner.feed(b"y" * 5000 + b"\x07")
    assert scanner.state == ""
    scanner.feed(b"\x1b]7501;state=done:app=x\x07")
    assert scanner.state == "state=done:app=x"


def test_a_capture_carries_the_states_and_rows_since_the_last_one() -> None:
    """Nothing between two looks is lost, nothing is counted twice."""
    emulator, scanner = Emulator(LIBRARY, 20, 2), AgentStateScanner()
    for data in (b"1\r\n2\r\n3", b"\x1b]7501;state=idle:app=x\x07"):
        emulator.feed(data)
        scanner.feed(data)
    first, second = capture(emulator, scanner), capture(emulator, scanner)
    assert (first.scrolled, first.agent_states, first.agent_state) == (
        ("1",),
        ("state=idle:app=x",),
        "state=idle:app=x",
    )
    assert (second.scrolled, second.agent_states, second.agent_state) == ((), (), "state=idle:app=x")


def test_a_line_that_fills_the_last_row_and_goes_on_is_a_line() -> None:
    """What wraps beyond the screen's end is not lost with the row that is missing."""
    screen = Screen(rows=(Row("You have h", wrapped=True), Row("it your li", wrapped=True)), cols=10)
    assert screen.joined() == ["You have hit your li"]
    assert screen.text() == "You have h\nit your li"
