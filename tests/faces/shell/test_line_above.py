from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agent_relay.detect.window_usage import WindowUsage
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._status_line import StatusTime, render_status

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
CLOCK = StatusTime(NOW, UTC)
WINDOWS = (
    WindowUsage("seven_day", 10_080, 13.0, NOW + timedelta(days=4)),
    WindowUsage("five_hour", 300, 42.4, NOW + timedelta(hours=2, minutes=40)),
)
FULL = Conversation(
    "/made-up",
    agent="demo",
    at_work="understudy",
    model="large",
    cost=0.128,
    context=(5000, 20000),
    windows={"understudy": WINDOWS},
)
RESTS = [{"agent": "demo", "until": (NOW + timedelta(hours=1)).isoformat()}]
HELD = "2 not sent (the turn was stopped): Enter sends on, Up edits"


def test_the_line_tells_what_is_known_and_nothing_else() -> None:
    """An invented number is worse than none."""
    empty = Conversation("/made-up", agent="demo")
    assert render_status(empty, [], state="", width=80) == "demo"
    full = replace(FULL, windows={})
    assert render_status(full, [{"agent": "demo", "until": ""}], state="working", width=100) == (
        "understudy · large · context 25 % · $0.13 · demo rests · working"
    )


def test_that_nobody_can_tell_who_rests_is_said() -> None:
    """Nothing there would say that nobody does."""
    empty = Conversation("/made-up", agent="demo")
    lines = [render_status(empty, None, state="working", width=width) for width in (80, 33)]
    assert lines == ["demo · resting agents unknown · working", "demo · rests unknown · working"]


def test_the_line_of_a_known_agent() -> None:
    """Drawn as it is at 80 and 120 columns: what is left out is what can be spared."""
    known = "understudy · large · context 25 % · 5 h 42 %"
    windows = "(resets 21:00) · week 13 % (resets Nov 24, 18:20)"
    rows = {
        (120, "working"): f"{known} {windows} · $0.13 · working",
        (80, "working"): f"{known} · week 13 % · $0.13 · working",
        (120, HELD): f"{known} · week 13 % · {HELD}",
        (80, HELD): f"understudy · {HELD}",
    }
    drawn = {row: render_status(FULL, [], state=row[1], width=row[0], clock=CLOCK) for row in rows}
    assert drawn == rows


def test_a_narrow_line_keeps_who_works_and_what_happens() -> None:
    """A key that is not told of cannot be pressed; a price can wait for /metrics."""
    known = "understudy · large · context 25 % · 5 h 42 % (resets 21:00) · week 13 % · $0.13"
    lines = {
        120: f"{known} · demo rests until 19:20 · working",
        80: "understudy · context 25 % · 5 h 42 % · week 13 % · demo rests · working",
        60: "understudy · context 25 % · 5 h 42 % · demo rests · working",
        50: "understudy · 5 h 42 % · demo rests · working",
        40: "understudy · demo rests · working",
        30: "understudy · working",
        20: "understudy · workin",
        12: "understudy",
        1: "",
        0: "",
    }
    drawn = {width: render_status(FULL, RESTS, state="working", width=width, clock=CLOCK) for width in lines}
    assert drawn == lines


def test_only_the_windows_of_whoever_works_are_told_until_they_begin_anew() -> None:
    """Another agent's account says nothing about this one's; nothing is known after a reset."""
    other = replace(FULL, at_work="", windows={"understudy": WINDOWS})
    assert "5 h" not in render_status(other, [], state="", width=120, clock=CLOCK)
    later = StatusTime(NOW + timedelta(hours=3), UTC)
    assert render_status(FULL, [], state="", width=80, clock=later) == (
        "understudy · large · context 25 % · week 13 % (resets Nov 24, 18:20) · $0.13"
    )


def test_the_line_stays_one_line() -> None:
    """A model's name comes from a file; a narrow terminal is no reason to wrap."""
    hostile = Conversation("/made-up", agent="demo", model="\x1b[2J\nlarge")
    assert render_status(hostile, [], state="", width=80) == r"demo · \x1b[2J\nlarge"
    assert render_status(hostile, [], state="", width=10) == "demo"
    wide = Conversation("/made-up", agent="demo", near="上限" * 15)
    assert render_status(wide, [], state="上限" * 10, width=30) == "demo · 上限上限上限上限上限上"


def test_costs_add_up_and_the_agent_that_took_over_has_the_next_message() -> None:
    """After a failover the conversation goes on where the work is."""
    talk = Conversation("/made-up", agent="demo")
    for event in (
        {"type": "turn", "session": "S", "folder": "/made-up/.agent-relay/sessions/S", "agent": "demo"},
        {"type": "leg", "agent": "demo", "model": "large"},
        {"type": "usage", "tokens": {}, "cost": 0.1},
        {"type": "usage", "tokens": {}},
        {"type": "leg", "agent": "understudy", "model": ""},
        {"type": "usage", "tokens": {}, "cost": 0.2},
    ):
        talk.apply(event)
    assert (talk.session, talk.agent, talk.at_work, talk.model) == ("S", "understudy", "understudy", "")
    assert f"{talk.cost:.2f}" == "0.30"
    talk.apply({"type": "end", "outcome": "done"})
    assert (talk.at_work, talk.root) == ("", "/made-up")
