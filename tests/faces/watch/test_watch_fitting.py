"""What `watch` says of a budget is whole on the smallest usual terminal: half a number is a wrong one."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from agent_relay.domain.events.work import BudgetNoted
from agent_relay.domain.protocol.watch_output import LiveSession, TokensUsed, WindowUsed, build_context
from agent_relay.faces.watch._layout import Frame, cut, draw, wrap
from agent_relay.faces.watch.view import Figures, SessionView, View
from tests.faces.watch.lives import BEGINNING, look_at

NOW = datetime(2026, 11, 20, 18, 2, 10, tzinfo=UTC)
TOKENS = TokensUsed(
    input=12_345_678,
    cached=987_654_321,
    cache_write=23_456_789,
    output=1_234_567,
    reasoning=0,
    total=1_024_691_355,
    cost_usd="1234.56",
    cost_is_whole=False,
)
NOTED = BudgetNoted(
    "L1",
    "your budget of $1,250.00 a day for ada",
    "warn",
    "at least $1,034.56 of your budget of $1,250.00 a day for ada is used; no price is known for 1,234,567 "
    "tokens of scripted; 12 lines of ada's records cannot be read",
    agent="ada",
    then="handoff",
    period="2026-11-20",
    until="2026-11-21T00:00:00+00:00",
)
GOLDEN = """\
 agent-relay watch   1 session                                            18:02
── S ───────────────────────────────────────────────────────────────────────────
ada · opus busy turn 1, 1:30
fix the parser
At least $1,034.56 of your budget of $1,250.00 a day for ada is used; no price
is known for 1,234,567 tokens of scripted; 12 lines of ada's records cannot be
read. When it is used up, another agent takes over
1,024,691,355 tokens: 12,345,678 in, 987,654,321 cached, 23,456,789 written,
1,234,567 out · >$1,234.56
context █████████▊░░░░░░ 61 % of 200,000 tokens
five-hour █████▌░░░░░░░░░░ 34 %, resets 21:00
── what happened ───────────────────────────────────────────────────────────────
18:00  session begins in /r
18:00  ada starts
18:00  ada waits for a prompt
18:00  ada works
── screen ──────────────────────────────────────────────────────────────────────
> paint the shed
I paint.




 ↑↓ session   q quit
"""


def build(name: str) -> SessionView:
    """A session that has nearly used up a budget."""
    window = WindowUsed(name="five-hour", used_percent=34, resets_at="2026-11-20T21:00:00+00:00")
    live = LiveSession(
        "S",
        9,
        "L1",
        rows=("> paint the shed", "I paint."),
        model="opus",
        context=build_context(122_000, 200_000),
        windows=(window,),
    )
    return look_at(*BEGINNING, NOTED, live=live, figures=Figures(TOKENS, (), ""), session=name)


def draw_lines(rows: int, cols: int, *names: str) -> list[str]:
    """The drawing's lines, each within the terminal."""
    view = View(tuple(build(name) for name in names), is_daemon_here=True)
    lines = [line.plain for line in draw(view, Frame(rows, cols, "", NOW, UTC))]
    assert max(map(cell_len, lines)) <= cols
    return lines


def test_a_budget_is_whole_on_the_smallest_usual_terminal() -> None:
    """80 by 24, as a person sees it."""
    assert [line.rstrip() for line in draw_lines(24, 80, "S")] == GOLDEN.splitlines()


def test_in_the_table_of_several_sessions_no_number_is_cut() -> None:
    """There each has one line: what has no room is left out, and told below of the session chosen."""
    lines = draw_lines(24, 80, "S", "T")
    assert lines[1].endswith(" 1024M  61%  At least $1,034.56 of yo…")
    assert lines[2] == lines[1].replace("▶", " ")
    assert draw_lines(24, 66, "S", "T")[1].endswith(" 1024M  61%  At least …")


def test_beside_the_screen_a_budget_is_whole_too() -> None:
    """The half of a wide terminal is hardly wider than a small one."""
    lines = [line.partition("│")[0].rstrip() for line in draw_lines(24, 140, "S")]
    assert lines[4:8] == [
        "At least $1,034.56 of your budget of $1,250.00 a day for ada is",
        "used; no price is known for 1,234,567 tokens of scripted; 12 lines",
        "of ada's records cannot be read. When it is used up, another agent",
        "takes over",
    ]


def test_a_number_is_shown_whole_or_not_at_all() -> None:
    """`$5.0` for `$5.00` is believed."""
    shown = {
        ("used $5.00 now", 14): "used $5.00 now",
        ("used $5.00 now", 12): "used $5.00 …",
        ("used $5.00 now", 11): "used …",
        ("used $5.00 now", 9): "used …",
        ("1,234 tokens", 4): "…",
        ("a" * 30, 10): "aaaaaaaaa…",
        ("in " + "d1" * 15, 9): "in d1d1d…",
        ("日本 12", 4): "日 …",
        ("ab", 1): "…",
        ("ab", 0): "",
    }
    lines = {given: Text(given[0]) for given in shown}
    for (_text, width), line in lines.items():
        cut(line, width)
    assert {given: line.plain for given, line in lines.items()} == shown


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=80))
def test_wrapping_keeps_every_word(text: str) -> None:
    """In order, and on lines that fit where the words do."""
    lines = [line.plain for line in wrap(Text(text), 12)]
    assert " ".join(lines).split() == text.split()
    assert all(cell_len(line) <= 12 or " " not in line for line in lines)


def test_a_word_that_fits_without_what_it_is_indented_by_is_not_indented() -> None:
    """The last of its letters would be beyond the edge."""
    assert [line.plain for line in wrap(Text("  one two"), 7)] == ["  one", "two"]
    assert [line.plain for line in wrap(Text("  seventy one"), 7)] == ["seventy", "one"]
    assert [line.plain for line in wrap(Text("  \u2e80\u2e80\u2e80 one"), 7)] == ["\u2e80\u2e80\u2e80", "one"]


def test_what_takes_more_lines_than_there_are_says_so() -> None:
    """A reason of a thousand words must not push the figures off the terminal."""
    assert [line.plain for line in wrap(Text("one two three four"), 7, most=2)] == ["one two", "three …"]
