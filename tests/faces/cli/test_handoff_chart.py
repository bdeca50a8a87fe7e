"""A session's timeline on terminals of any width, of hostile and odd journals, too."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.protocol.timeline import TimelineTold, TimelineUsage
from agent_relay.domain.protocol.watch_output import WindowUsed
from agent_relay.domain.text.plain import count_columns
from agent_relay.faces.cli.session.handoffs.drawing import draw_timeline
from agent_relay.session.views.timeline import build_timeline

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
RESET = START + timedelta(hours=3)
Line = tuple[float, Body]
USAGE = {
    "L1": TimelineUsage(tokens=123_456, tokens_are_whole=True, cost_usd="1.1", cost_is_whole=True),
    "L2": TimelineUsage(tokens=5_000, tokens_are_whole=True),
}


def _begin(agent: str = "ada", *, task: str = "fix it") -> list[Line]:
    return [
        (0, words.SessionCreated("S", "/r", "/r", (agent, "bob"), task)),
        (0, words.LegStarting("L1", agent, 1)),
        (1, words.LegStarted("L1", 10, 11, 12)),
        (2, words.LegReady("L1")),
        (10, words.LegBusy("L1")),
        (70, words.LegReady("L1")),
        (100, words.LegBusy("L1")),
    ]


def _hand_over(at: float, before: tuple[str, str], after: tuple[str, str], reason: str) -> list[Line]:
    """A handoff from one leg and its agent to another leg and its agent, which takes a turn."""
    (from_leg, from_agent), (leg, agent), handoff = before, after, f"H{after[0]}"
    return [
        (at, work.HandoffBegun(handoff, from_leg, from_agent, agent, reason)),
        (at + 1, words.LegEnded(from_leg, "stopped")),
        (at + 1, work.PredecessorStopped(handoff, from_leg)),
        (at + 2, work.PacketPublished(handoff, "P", 1, agent, "resume/1.json", "resume/1.md", "f")),
        (at + 2, words.LegStarting(leg, agent, 2, handoff=handoff)),
        (at + 3, words.LegStarted(leg, 20, 21, 22)),
        (at + 4, words.LegReady(leg)),
        (at + 5, work.PacketDelivered(handoff, leg)),
        (at + 6, words.LegBusy(leg)),
        (at + 7, work.HandoffConfirmed(handoff, leg)),
        (at + 39, words.LegReady(leg)),
    ]


def _limit(agent: str = "ada") -> Line:
    until = RESET.isoformat()
    text = "your session limit"
    return 160, words.SignalSeen("L1", agent, "limit", "account", "screen", text, decides=True, until=until)


def _build(lines: Sequence[Line], *windows: WindowUsed) -> TimelineTold:
    journal = [
        Event(number, START + timedelta(seconds=seconds), 1, body)
        for number, (seconds, body) in enumerate(lines, 1)
    ]
    found = build_timeline(journal, USAGE, {"ada": windows})
    assert found is not None
    return found


def _draw(found: TimelineTold, seconds: float, width: int, *, is_plain: bool = False) -> list[str]:
    return draw_timeline(found, START + timedelta(seconds=seconds), UTC, width=width, is_plain=is_plain)


RETURNED = [
    *_begin(),
    _limit(),
    *_hand_over(161, ("L1", "ada"), ("L2", "bob"), "rate_limit"),
    *_hand_over(11_000, ("L2", "bob"), ("L3", "ada"), "return"),
]


def test_a_session_is_drawn_as_people_would_draw_it() -> None:
    """Legs side by side, what was handed over why, who rested; three quiet hours take two columns."""
    window = WindowUsed(name="five_hour", minutes=300, used_percent=34.0, resets_at="2026-11-20T23:00:00Z")
    assert _draw(_build(RETURNED, window), 11_100, 80) == [
        "timeline  18:00 to now, 3 h 05, 4 turns, 2 handoffs, at least 128,456 tokens, >$1.10",
        "          18:00                                          21:03             21:05",
        "ada       1─█████████████───────██████████████░░░░░░░░░≈≈3████████──────────────",
        "bob                                           2████████≈≈",
        "handoffs                                      ▲ rate limit",
        "                                                         ▲ return",
        "█ turn  ─ between turns  ░ rests  ≈ time left out  ▲ handoff  1 first leg",
        (
            "ada: 3 turns in 2 legs, at least 123,456 tokens, >$1.10; rested 18:02-21:00 (usage limit); "
            "5 h 34 % used, resets 23:00"
        ),
        "bob: 1 turn in 1 leg, 5,000 tokens, cost unknown",
    ]


def test_a_terminal_without_block_characters_gets_ascii() -> None:
    """Its encoding could not write a block, and a failed print shows nothing at all."""
    lines = _draw(_build(RETURNED), 11_100, 80, is_plain=True)
    assert all(line.isascii() for line in lines)
    assert lines[2] == "ada       1-#############-------##############:::::::::~~3########--------------"
    assert lines[6] == "# turn  - between turns  : rests  ~ time left out  ^ handoff  1 first leg"


@pytest.mark.parametrize("width", [1, 10, 34, 36, 40, 66, 90, 400])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    """A row that wraps is no drawing; without room for one there is none."""
    lines = _draw(_build(RETURNED), 11_100, width)
    rows = [line for line in lines if line.startswith(("  ", "ada  ", "bob  ", "handoffs"))]
    assert bool(rows) == (width > 33)
    assert all(count_columns(row) <= width for row in rows)
    assert [line for line in lines if line.startswith("ada: 3 turns in 2 legs")]


def test_names_of_a_hostile_journal_move_nothing() -> None:
    """A name may hold what turns text around, wide signs, or a screen's worth of letters."""
    for name in ("\x1b[2J\u202eada", "統計情報取得中統計情報取得中", "a" * 500, "<b>ada</b>", ""):
        lines = _draw(_build([*_begin(name), _limit(name)]), 300, 60)
        assert all(line.isprintable() for line in lines)
        assert max(count_columns(line) for line in lines[1:3]) <= 60


def test_a_reason_of_a_newer_version_or_in_wide_signs_is_marked_without_words() -> None:
    """Two columns a sign would push all that follows to the right."""
    lines = _draw(_build([*_begin(), *_hand_over(161, ("L1", "ada"), ("L2", "bob"), "統計")]), 300, 60)
    assert [line.split() for line in lines if line.startswith("handoffs")] == [["handoffs", "▲"]]


def test_many_handoffs_share_three_rows() -> None:
    """A thousand of them in an hour cannot all have a column."""
    lines, before, agents = _begin()[:4], ("L1", "ada"), ("bob", "ada")
    for number in range(300):
        after = f"M{number}", agents[number % 2]
        lines += _hand_over(10 + 40 * number, before, after, "manual")
        before = after
    drawn = _draw(_build(lines), 12_100, 80)
    begin = next(at for at, line in enumerate(drawn) if line.startswith("handoffs"))
    assert len([line for line in drawn[begin:] if "▲" in line and "handoff" not in line[10:]]) == 3
    assert "300 handoffs" in drawn[0]


def test_ten_thousand_turns_and_none_at_all_are_drawn() -> None:
    """Both are sessions."""
    turns = [
        (200.0 + 2 * turn + part, body("L1"))
        for turn in range(10_000)
        for part, body in ((0, words.LegBusy), (1, words.LegReady))
    ]
    many = _draw(_build([*_begin(), (110, words.LegReady("L1")), *turns]), 20_300, 80)
    assert "10,002 turns" in many[0]
    assert len(many) < 8
    none = _draw(_build(_begin()[:2]), 0, 80)
    assert none[0] == "timeline  18:00 to now, 0.0 s, 0 turns, 123,456 tokens, $1.10"


def test_a_clock_set_back_is_said_and_drawn_within_the_rows() -> None:
    """Spans overlap then; nothing is drawn where nothing is."""
    lines = [(at - (3600 if at > 60 else 0), body) for at, body in RETURNED]
    drawn = _draw(_build(lines), 11_100, 80)
    assert drawn[-1].startswith("The clock was set back")
    assert all(count_columns(line) <= 80 for line in drawn[1:4])


def test_a_session_over_days_names_them() -> None:
    """`09:00` alone is this morning's."""
    later = 3 * 86_400
    lines = [*_begin(), (110, words.LegReady("L1")), (later, words.LegBusy("L1")), (later + 60, _limit()[1])]
    drawn = _draw(_build(lines), later + 90, 80)
    assert "Nov 23, 18:00" in drawn[1]
    assert drawn[0].startswith("timeline  Nov 20, 18:00 to now, 3 d 00 h")


def test_a_session_that_rests_has_a_row_of_its_own() -> None:
    """Nobody works, and the drawing says that this is no pause of a person's."""
    rested = (200, words.SessionRested("no agent is available", RESET.isoformat()))
    (row,) = [line for line in _draw(_build([*_begin(), _limit(), rested]), 260, 60) if "at rest" in line]
    assert row.rstrip().endswith("░░░░")
    assert "rests since 18:02 until 21:00 (usage limit)" in "\n".join(
        _draw(_build([*_begin(), _limit(), rested]), 260, 60)
    )


def test_rests_are_told_as_far_as_they_are_known() -> None:
    """A reset nobody named is unknown, one that has passed is over, and old ones are only counted."""
    unknown = words.SignalSeen("L1", "ada", "limit", "model", "screen", "x", decides=True, model="m1")
    told = "\n".join(_draw(_build([*_begin(), (160, unknown)]), 200, 80))
    assert (
        "ada: 2 turns in 1 leg, 123,456 tokens, $1.10; rests since 18:02 with an unknown reset (limit of m1)"
        in told
    )
    assert "rested 18:02-21:00 (usage limit)" in "\n".join(_draw(_build([*_begin(), _limit()]), 20_000, 80))
    lines = _begin()
    for number in range(5):
        at = 200.0 + 100 * number
        lines += [(at, _limit()[1]), (at + 10, words.SessionRested("limit")), (at + 20, words.SessionWoke())]
        lines.append((at + 30, words.LegBusy("L1")))
    assert "; 2 earlier rests" in "\n".join(_draw(_build(lines), 900, 80))
