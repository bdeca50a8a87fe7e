"""What `watch` draws fits any terminal, whatever the texts are."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_relay.domain.events.session import Body, LegEnded, SessionEnded, SignalSeen
from agent_relay.domain.protocol.watch_output import (
    LiveSession,
    RestingAgent,
    TokensUsed,
    WatchPlanStep,
    WindowUsed,
    build_context,
)
from agent_relay.faces.watch._layout import Frame, choose_next, draw
from agent_relay.faces.watch.view import Figures, SessionView, View
from tests.faces.watch.lives import BEGINNING, look_at

NOW = datetime(2026, 11, 20, 18, 2, 10, tzinfo=UTC)
TOKENS = TokensUsed(
    input=1, cached=2, cache_write=3, output=4, reasoning=0, total=1_234_567, cost_usd="", cost_is_whole=False
)
HOSTILE = "\x1b[2J\x07日本\u202etxt\n\r[bold]\U0001f600"


def build(name: str = "S", *bodies: Body, text: str = "x") -> SessionView:
    """A session of which everything is known."""
    live = LiveSession(
        "S",
        9,
        "L1",
        title=text,
        rows=(text,) * 60,
        trouble=text,
        model=text,
        context=build_context(61, 100),
        windows=(WindowUsed(name=text, used_percent=120, resets_at="2026-11-20T21:00:00+00:00"),) * 6,
    )
    steps = tuple(
        WatchPlanStep(text=text, status="completed" if index < 8 else "in_progress") for index in range(12)
    )
    words = {"session": name, **dict.fromkeys(("task", "title", "about", "agent"), text)}
    return look_at(*BEGINNING, *bodies, live=live, figures=Figures(TOKENS, steps, text), **words)


def draw_plain(view: View, rows: int, cols: int, *, chosen: str = "", is_plain: bool = False) -> list[str]:
    """The lines, without their styles, held to the terminal's size."""
    lines = draw(view, Frame(rows, cols, chosen, NOW, UTC, is_plain=is_plain))
    assert len(lines) == rows
    assert max(cell_len(line.plain) for line in lines) <= cols
    assert all(line.plain.isprintable() for line in lines)
    return [line.plain for line in lines]


@given(rows=st.integers(1, 70), cols=st.integers(1, 240), text=st.text(max_size=60), count=st.integers(0, 9))
def test_it_fits_any_terminal_whatever_the_texts_are(rows: int, cols: int, text: str, count: int) -> None:
    """A terminal of one row, a wide one, a task that is a control sequence: nothing spills or breaks."""
    sessions = tuple(build(f"S{number}", text=text) for number in range(count))
    rests = (RestingAgent(agent=text, model="", scope=text, until=""),) * 5
    draw_plain(View(sessions, rests, problems=(text,) * 5), rows, cols, chosen="S3")


def test_that_nobody_can_tell_who_rests_stands_above_the_sessions() -> None:
    """No line about it would say that nobody does."""
    lines = draw_plain(View(is_daemon_here=True, rests_unknown="cannot read\x07 it"), 6, 60)
    assert lines[1] == r"who rests is unknown: cannot read\x07 it"


def test_a_control_sequence_is_shown_and_not_obeyed() -> None:
    """A screen somebody else paints on cannot be trusted."""
    lines = draw_plain(View((build(text=HOSTILE),)), 40, 100)
    assert any(r"\x1b[2J\x07日本\u202etxt" in line and "[bold]" in line for line in lines)


def test_everything_of_a_session_is_on_the_smallest_usual_terminal() -> None:
    """80 by 24: who, since when, tokens, context, windows, plan, what happened, and the screen."""
    text = "\n".join(draw_plain(View((build(),), is_daemon_here=True), 24, 80))
    for part in (
        "busy turn 1, 1:30",
        "1,234,567 tokens",
        "context █████████▊░░░░░░ 61 % of 100 tokens",
        "120 %, resets 21:00",
        "── plan 8/12 ",
        "── what happened ",
        "18:00  ada works",
        "── screen ",
    ):
        assert part in text


def test_counts_and_states_are_told() -> None:
    """How it ended, and how often it was stopped."""
    seen = SignalSeen("L1", "ada", "limit", "account", "hook", "session limit", decides=True)
    ended = build("S", seen, LegEnded("L1", "exited", 0), SessionEnded("over"))
    text = "\n".join(draw_plain(View((ended,), is_daemon_here=True), 24, 80))
    assert "ended last turn 0:10 · 1 limit" in text
    plain = "\n".join(draw_plain(View((build(),)), 30, 80, is_plain=True))
    assert "##########......" in plain
    assert "No daemon is running" in plain


@pytest.mark.parametrize(
    ("chosen", "step", "found"), [("A", 1, "B"), ("A", -1, "C"), ("C", 1, "A"), ("?", 1, "B")]
)
def test_keys_go_round_in_a_circle(chosen: str, step: int, found: str) -> None:
    """From the last one to the first one."""
    view = View(tuple(build(name) for name in "ABC"))
    assert choose_next(view, chosen, step) == found
    assert choose_next(View(), chosen, step) == ""
