"""Clocks, tokens, windows and plans as people read them."""

from datetime import UTC, datetime

from agent_relay.domain.protocol.watch_output import RestingAgent, TokensUsed, WindowUsed, build_context
from agent_relay.faces.watch.lines import (
    draw_gauge,
    get_mark,
    render_clock,
    render_context,
    render_rest,
    render_short,
    render_tokens,
    render_turn,
    render_window,
)
from tests.faces.watch.lives import BEGINNING, look_at

NOW = datetime(2026, 11, 20, 18, 2, 10, tzinfo=UTC)


def test_a_clock_says_how_long_ago() -> None:
    """A clock that was set back, or a damaged line, shows no clock rather than a wrong one."""
    clocks = {
        "2026-11-20T18:02:03+00:00": "0:07",
        "2026-11-20T17:49:40+00:00": "12:30",
        "2026-11-20T14:57:10+00:00": "3:05:00",
        **dict.fromkeys(("2026-11-20T19:00:00+00:00", "2026-11-20T18:00:00", "yesterday", ""), ""),
    }
    assert {since: render_clock(since, NOW) for since in clocks} == clocks


def test_the_turn_under_way_is_shown_before_the_last_one() -> None:
    """Nobody asks how long the last one took while the next one hangs."""
    busy, first = look_at(*BEGINNING), look_at(*BEGINNING[:4])
    assert render_turn(busy.now, NOW) == "turn 1, 1:30"
    assert (
        render_turn(busy.now.model_copy(update={"turn_since": "", "turn_s": 65.4}), NOW) == "last turn 1:05"
    )
    assert render_turn(first.now, NOW) == ""


def test_tokens_are_told_by_kind_with_what_they_cost() -> None:
    """An unknown price is said to be unknown, and so is that of a part."""
    for counts, cost, text in (
        (
            (12, 1_200_000, 3, 19),
            "1.234",
            "1,200,034 tokens: 12 in, 1,200,000 cached, 3 written, 19 out · $1.23",
        ),
        ((5, 0, 0, 5), ">0.5", "10 tokens: 5 in, 5 out · >$0.50"),
        ((0, 0, 0, 0), "", "0 tokens: none · cost unknown"),
    ):
        given, cached, written, out = counts
        tokens = TokensUsed(
            input=given, cached=cached, cache_write=written, output=out, reasoning=0, total=sum(counts),
            cost_usd=cost.removeprefix(">"), cost_is_whole=not cost.startswith(">"),
        )  # fmt: skip
        assert render_tokens(tokens) == text


def test_a_count_fits_where_there_is_no_room() -> None:
    """Never more than five characters, never rounded up into the next thousand."""
    short = {0: "0", 950: "950", 12_499: "12k", 999_999: "999k", 1_234_567: "1.2M", 12_345_678: "12M"}
    assert {count: render_short(count) for count in short} == short


def test_gauges_are_filled_as_far_as_they_say() -> None:
    """More than full is full."""
    assert draw_gauge(50, 4, is_plain=True) == "##.."
    assert draw_gauge(0, 4, is_plain=False) == "░░░░"
    assert draw_gauge(250, 4, is_plain=False) == "████"


def test_context_and_windows_say_what_is_known() -> None:
    """A room nobody knows, a reset nobody can read: told without them."""
    assert render_context(build_context(61, 100), width=4, is_plain=True) == "context ##.. 61 % of 100 tokens"
    assert render_context(build_context(6100, 0), width=4, is_plain=True) == "context 6,100 tokens"
    window = WindowUsed(name="five-hour", used_percent=50.5, resets_at="2026-11-20T21:00:00+00:00")
    assert render_window(window, NOW, UTC, width=4, is_plain=True) == "five-hour ##.. 50.5 %, resets 21:00"
    unread = window.model_copy(update={"resets_at": "soon"})
    assert render_window(unread, NOW, UTC, width=4, is_plain=True) == "five-hour ##.. 50.5 %"


def test_a_rest_says_until_when() -> None:
    """The question behind every limit; an agent that only says "later" has named no hour."""
    at = "2026-11-20T21:00:00+00:00"
    told = {
        (at, False): "ada rests until 21:00 (usage limit)",
        (at, True): "ada rests until about 21:00 (assumed) (usage limit)",
        ("", False): "ada rests until you say otherwise (usage limit)",
        ("soon", False): "ada rests until soon (usage limit)",
    }
    for (until, assumed), text in told.items():
        rest = RestingAgent(agent="ada", model="", scope="account", until=until, assumed=assumed)
        assert render_rest(rest, NOW, UTC) == text


def test_steps_of_a_plan_have_signs_in_any_encoding() -> None:
    """A terminal that is not UTF-8 shows question marks else."""
    assert [get_mark(status, is_plain=False) for status in ("completed", "pending")] == ["✔", "○"]
    assert [get_mark(status, is_plain=True) for status in ("in_progress", "cancelled")] == [">", "/"]
