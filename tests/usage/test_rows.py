"""Sums by session, leg, agent, model and day; answers priced together are of one owner, row and quarter."""

from decimal import Decimal

import pytest

from agent_relay.domain.state import State
from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    TurnFailed,
    list_columns,
)
from agent_relay.usage._dedupe import Native
from agent_relay.usage._session_work_fold import find_lineage
from agent_relay.usage.aggregation import NativeTurn, Question, cut_turns, sum_rows
from agent_relay.usage.session_work import HandoffSpan, LegWork, RelayRequest, SessionWork, StateSpan
from agent_relay.usage.table_format import Grouping
from agent_relay.usage.totals import MetricsRow, Rate

HOUR = 3_600_000
DAY = 24 * HOUR
ONE = Decimal(1)


def _rates(model: str, _at: int) -> tuple[Rate, ...]:
    return (Rate(0, ONE, ONE, ONE, ONE, ONE),) if model != "x" else ()


def _ask(by: Grouping, *, since: int = 0, agent: str = "", is_ours_only: bool = False) -> Question:
    return Question(by, _rates, lambda at: f"day {at // DAY}", since, agent, is_ours_only)


def _work() -> SessionWork:
    """A limit at 1:50, a failover of 6 s, an hour of rest over midnight on the second leg."""
    legs = [
        LegWork("a", "one", HOUR, 2 * HOUR, ["n1"], [2 * HOUR - 600_000]),
        LegWork("b", "two", 2 * HOUR, 25 * HOUR, ["n2"], []),
    ]
    spans = [
        StateSpan(State.BUSY, "a", HOUR, 2 * HOUR - 600_000),
        StateSpan(State.LIMITED, "a", 2 * HOUR - 600_000, 2 * HOUR),
        StateSpan(State.BUSY, "b", 2 * HOUR, 3 * HOUR),
        StateSpan(State.RESTING, "b", 23 * HOUR + HOUR // 2, 24 * HOUR + HOUR // 2),
        StateSpan(State.ENDED, "b", 25 * HOUR, 26 * HOUR),
    ]
    passings = [
        HandoffSpan("a", "b", 2 * HOUR, 6000, is_failover=True),
        HandoffSpan("b", "a", 3 * HOUR, 9, False),
    ]
    return SessionWork("S", "/w", legs, spans, passings)


def _natives() -> list[Native]:
    """Agent one: a prompt and 10 tokens before the leg, 20 in it; two: 40 in its leg; three: a user's own."""
    one = Native("one", "n1", "/w")
    one.prompts = [PromptSent("p1", HOUR // 2, "n1"), PromptSent("p2", HOUR, "n1")]
    one.used = [
        AnswerUsage("u1", HOUR // 2 + 60_000, "n1", "m", input=10),
        AnswerUsage("u2", HOUR + 60_000, "n1", "m", input=20),
    ]
    two = Native("two", "n2", "/w")
    two.used = [AnswerUsage("u3", 25 * HOUR, "n2", "x", output=40)]
    two.prompts = [PromptSent("p3", 3 * HOUR, "n2")]
    two.changes = [LinesChanged("c", 3 * HOUR + 5000, "n2", 3, 1)]
    three = Native("three", "n3", "/v")
    three.used = [AnswerUsage("u4", 0, "n3", "m", cached=80)]
    return [one, two, three]


def _rows(by: Grouping, **more: object) -> tuple[list[MetricsRow], MetricsRow]:
    return sum_rows([_work()], _natives(), _ask(by, **more))  # type: ignore[arg-type]


def test_rows_by_session_keep_relays_work_from_the_users_own() -> None:
    """What the user did in a native session before relay took it over is not the session's cost.

    20 + 40 tokens are relay's, 10 and 80 the user's own: 150 in all.
    """
    rows, total = _rows("session")
    assert {row.key: row.bill.tokens for row in rows} == {"three:n3": 80, "one:n1": 10, "S": 60}
    assert total.bill.tokens == 150
    ours = rows[-1]
    assert (ours.turns, ours.failed, ours.handoffs, ours.limits, ours.failovers_ms) == (2, 1, 2, 1, [6000])
    assert ours.wall_ms == HOUR + HOUR + HOUR
    assert ours.active_ms == HOUR - 600_000 + HOUR
    assert ours.waiting_ms == 600_000 + HOUR
    assert (ours.added, ours.removed, ours.agents) == (3, 1, ["one", "two"])
    assert (ours.bill.cost, ours.bill.unpriced) == (Decimal(20), {"x": 40})
    own = next(row for row in rows if row.key == "one:n1")
    assert (own.turns, own.failed, own.wall_ms, own.active_ms) == (1, 0, 60_000, 60_000)


def test_rows_by_leg_and_agent_add_up_to_the_total() -> None:
    """Whoever compares two tables must find the same work in both: 10 + 20 + 40 + 80 tokens."""
    legs, _ = _rows("leg")
    assert {row.key: (row.bill.tokens, row.handoffs, row.limits) for row in legs} == {
        "three:n3": (80, 0, 0), "one:n1": (10, 0, 0), "a": (20, 1, 1), "b": (40, 1, 0),
    }  # fmt: skip
    agents, total = _rows("agent")
    assert {row.key: row.bill.tokens for row in agents} == {"three": 80, "one": 30, "two": 40}
    assert total.bill.tokens == 150


def test_rows_by_model_hold_answers_and_turns_only() -> None:
    """Waiting and handoffs are no model's doing; they are in the total."""
    rows, total = _rows("model")
    assert {row.key: (row.bill.tokens, row.turns, row.wall_ms) for row in rows} == {
        "m": (110, 2, None), "x": (40, 1, None),
    }  # fmt: skip
    assert total.handoffs == 2


def test_answers_of_a_model_nobody_names_have_a_row_of_their_own() -> None:
    """What the total has and no row has looks lost: 10 of m and 7 of nobody knows what are 17."""
    native = Native("one", "n1", "/w")
    native.used = [
        AnswerUsage("u1", HOUR, "n1", "m", input=10),
        AnswerUsage("u2", HOUR + 1, "n1", "", input=7),
    ]
    rows, total = sum_rows([], [native], _ask("model"))
    assert {row.key: (row.bill.tokens, row.bill.answers) for row in rows} == {"m": (10, 1), "unknown": (7, 1)}
    assert total.bill.tokens == 17


def test_answers_of_one_quarter_of_an_hour_are_each_their_models_and_their_legs() -> None:
    """They are priced together, by model, owner and size: no row has another one's tokens or moments.

    10 of the user's own before the leg, then 20 of m and 40 of x in it, 80 undated, one minute after another.
    """
    native = Native("one", "n1", "/w")
    native.used = [
        AnswerUsage("u0", 0, "n1", "m", input=80),
        AnswerUsage("u1", HOUR - 60_000, "n1", "m", input=10),
        AnswerUsage("u2", HOUR, "n1", "m", input=20),
        AnswerUsage("u3", HOUR + 60_000, "n1", "x", input=40),
        AnswerUsage("u4", HOUR + 120_000, "n1", "m", output=5),
    ]
    rows, total = sum_rows([_work()], [native], _ask("session"))
    own = next(row for row in rows if row.key == "one:n1")
    ours = next(row for row in rows if row.key == "S")
    assert (own.bill.tokens, own.bill.answers, own.last) == (90, 2, HOUR - 60_000)
    assert (ours.bill.tokens, ours.bill.cost, ours.bill.unpriced) == (65, Decimal(25), {"x": 40})
    assert (total.bill.tokens, total.bill.cost) == (155, Decimal(115))
    models, _ = sum_rows([], [native], _ask("model"))
    assert {row.key: (row.bill.tokens, row.last) for row in models} == {
        "m": (115, HOUR + 120_000), "x": (40, HOUR + 60_000),
    }  # fmt: skip
    late, _ = sum_rows([], [native], _ask("day", since=HOUR + 60_000))
    assert [(row.key, row.bill.tokens, row.first, row.wall_ms) for row in late] == [
        ("day 0", 45, HOUR + 60_000, 60_000)
    ]


def test_answers_of_one_model_one_after_another_are_one_sum() -> None:
    """Nearly all are: what is summed at once is what each would add."""
    native = Native("one", "n1", "/w")
    native.used = [AnswerUsage(f"u{at}", HOUR + at, "n1", "m", input=10, output=at) for at in (1, 2, 4)]
    (row,), _ = sum_rows([], [native], _ask("session"))
    assert (row.bill.input, row.bill.output, row.bill.answers, row.bill.cost) == (30, 7, 3, Decimal(37))
    assert (row.first, row.last, row.wall_ms) == (HOUR + 1, HOUR + 4, 3)


def test_rows_by_day_cut_time_at_midnight() -> None:
    """An hour of rest from 23:30 is half an hour of each day; undated usage has no day."""
    rows, _ = _rows("day")
    assert {row.key: (row.bill.tokens, row.waiting_ms) for row in rows} == {
        "unknown": (80, None), "day 0": (30, 600_000 + HOUR // 2), "day 1": (40, HOUR // 2),
    }  # fmt: skip


def test_what_nothing_dates_moves_no_row_to_1970() -> None:
    """One prompt without a date would put a session of today before all others, and make it 56 years long."""
    undated, dated = Native("one", "n1", "/w"), Native("two", "n2", "/w")
    undated.used = [
        AnswerUsage("u0", 0, "n1", "m", input=1),
        AnswerUsage("u1", 2 * HOUR, "n1", "m", input=10),
    ]
    undated.prompts = [PromptSent("p1", 0, "n1")]
    undated.changes = [LinesChanged("c1", 0, "n1", 3, 1)]
    dated.used = [AnswerUsage("u2", HOUR, "n2", "m", input=5)]
    dated.prompts = [PromptSent("p2", HOUR, "n2")]
    dated.changes = [LinesChanged("c2", HOUR + 7, "n2", 1, 0)]
    rows, total = sum_rows([], [dated, undated], _ask("session"))
    assert [(row.key, row.first, row.last, row.active_ms) for row in rows] == [
        ("two:n2", HOUR, HOUR + 7, 7),
        ("one:n1", 2 * HOUR, 2 * HOUR, 0),
    ]
    assert (total.first, total.last, total.bill.tokens, total.turns) == (HOUR, 2 * HOUR, 16, 2)


def test_what_nothing_dates_in_an_adopted_history_leaves_its_sessions_order() -> None:
    """All an adopted leg's transcript holds is the session's, the part without dates included."""
    work = SessionWork("T", "/w", [LegWork("c", "one", 0, 3 * HOUR, ["n1"])], [], [])
    native = Native("one", "n1", "/w")
    native.used = [AnswerUsage("u1", 2 * HOUR, "n1", "m", input=10)]
    native.changes = [LinesChanged("c1", 0, "n1", 3, 1)]
    other = Native("two", "n2", "/w")
    other.used = [AnswerUsage("u2", HOUR, "n2", "m", input=5)]
    rows, total = sum_rows([work], [native, other], _ask("session"))
    assert [(row.key, row.first) for row in rows] == [("two:n2", HOUR), ("T", 2 * HOUR)]
    assert (total.first, rows[1].added) == (HOUR, 3)


def test_a_row_of_which_nothing_is_dated_has_no_moments() -> None:
    """It comes first, and says nothing of when."""
    rows, _ = _rows("session")
    assert next((row.key, row.first, row.last) for row in rows) == ("three:n3", 0, 0)


def test_since_and_agent_leave_out_the_rest() -> None:
    """Only what came later, only whose it was; spans that reach over the moment count from there."""
    rows, total = _rows("session", since=HOUR + HOUR // 2)
    assert [(row.key, row.bill.tokens, row.turns) for row in rows] == [("S", 40, 1)]
    assert total.active_ms == HOUR // 2 - 600_000 + HOUR
    rows, total = _rows("session", agent="one")
    assert {row.key: row.bill.tokens for row in rows} == {"one:n1": 10, "S": 20}
    assert (total.handoffs, total.limits) == (1, 1)
    _, total = _rows("session", is_ours_only=True)
    assert total.bill.tokens == 60


def test_a_leg_without_a_transcript_is_not_free() -> None:
    """Its file is gone or was never found: what it used is not known, and the row says so."""
    rows, total = sum_rows([_work()], _natives()[:1], _ask("leg"))
    assert {row.key: row.untold for row in rows} == {"one:n1": 0, "a": 0, "b": 1}
    assert total.untold == 1
    _, total = sum_rows([_work()], _natives()[:1], _ask("leg", agent="one"))
    assert total.untold == 0


def test_a_turn_is_of_the_first_model_that_is_named() -> None:
    """An answer may name none; the one after it does."""
    native = Native("one", "n1")
    native.prompts = [PromptSent("p", 1000, "n1")]
    native.used = [AnswerUsage("u1", 1100, "n1"), AnswerUsage("u2", 1200, "n1", "m")]
    assert cut_turns(native, list_columns(native.used), []) == [NativeTurn(1000, 200, False, "m")]


def test_time_of_ones_own_is_from_the_first_to_the_last_mark() -> None:
    """Whatever lies between; prompts come before the answers and changes after them."""
    native = Native("one", "n1")
    native.used = [AnswerUsage("u1", 2000, "n1", "m"), AnswerUsage("u2", 5000, "n1", "m")]
    native.prompts = [PromptSent("p1", 1000, "n1"), PromptSent("p2", 3000, "n1")]
    native.changes = [LinesChanged("c1", 9000, "n1", 1, 1)]
    (row,), _ = sum_rows([], [native], _ask("day"))
    assert (row.wall_ms, row.first, row.last) == (8000, 1000, 9000)


def test_lines_changed_before_the_moment_asked_from_do_not_count() -> None:
    """A file edited last week is no work of today's, whoever goes on with it."""
    native = Native("one", "n1")
    native.changes = [LinesChanged("c1", HOUR, "n1", 3, 1), LinesChanged("c2", 3 * HOUR, "n1", 5, 2)]
    (row,), total = sum_rows([], [native], _ask("session", since=2 * HOUR))
    assert (row.added, row.removed, row.first) == (5, 2, 3 * HOUR)
    assert (total.added, total.removed) == (5, 2)


def test_turns_end_with_the_next_prompt_and_fail_by_errors_and_limits() -> None:
    """Work before the first prompt is nobody's turn."""
    native = Native("one", "n1")
    native.prompts = [PromptSent(f"p{at}", at, "n1") for at in (1000, 2000, 3000, 4000)]
    native.used = [AnswerUsage("u", at, "n1", "m") for at in (500, 1300, 1200, 3900)]
    native.changes = [LinesChanged("c", 100, "n1", 1, 1), LinesChanged("d", 2100, "n1", 1, 1)]
    native.failures = [TurnFailed("f", 3950, "n1"), TurnFailed("g", 50, "n1")]
    assert cut_turns(native, list_columns(native.used), [2500, 1]) == [
        NativeTurn(1000, 300, False, "m"),
        NativeTurn(2000, 100, True, ""),
        NativeTurn(3000, 950, True, "m"),
        NativeTurn(4000, 0, False, ""),
    ]


def test_a_chain_is_all_that_went_on_in_one_another() -> None:
    """Ours by a native session both worked on, the agents' own by forks, in both directions."""
    work = SessionWork("S", "/w", [LegWork("a", "one", 0, 1, ["n2"])], [], [])
    parent, fork = Native("one", "n1"), Native("one", "n2", parent="n1")
    later, other = Native("one", "n3", parent="n2"), Native("two", "n9")
    natives, chain = [later, fork, parent, other], ([work], [later, fork, parent])
    assert find_lineage([work], natives, [work], []) == chain
    assert find_lineage([work], natives, [], [parent]) == chain
    assert find_lineage([work], natives, [], [other]) == ([], [other])


def test_of_one_agent_only_what_was_handed_to_it_counts() -> None:
    """The failover was to the other one, and the limit this one's."""
    rows, total = _rows("leg", agent="one")
    assert [(row.key, row.handoffs, row.failovers_ms) for row in rows] == [("one:n1", 0, []), ("a", 1, [])]
    assert (total.handoffs, total.failovers_ms, total.agents) == (1, [], ["one"])
    _, total = _rows("leg", agent="two")
    assert (total.handoffs, total.failovers_ms, total.limits) == (1, [6000], 0)


@pytest.mark.parametrize("by", ["session", "leg", "agent", "day", "model"])
def test_what_relay_asked_for_is_in_the_rows_and_told_apart(by: Grouping) -> None:
    """It costs the user's tokens as all else does, and they can see what relay itself cost."""
    work = _work()
    leg = work.legs[0]
    work.requests.append(RelayRequest(leg.begin, leg.leg, leg.agent, "m", (10, 20, 1, 5, 2)))
    _, before = sum_rows([_work()], _natives(), _ask(by))
    rows, total = sum_rows([work], _natives(), _ask(by))
    assert total.relay_tokens == 36
    assert total.bill.tokens - before.bill.tokens == 36
    assert [row.relay_tokens for row in rows if row.relay_tokens] == [36]


def test_a_turn_that_goes_on_after_midnight_is_work_of_both_days() -> None:
    """Ten minutes of the first day and twenty of the second; nobody worked longer than there was time."""
    night = Native("one", "n", "/w")
    night.prompts = [PromptSent("p", DAY - 600_000, "n"), PromptSent("q", 2 * DAY - HOUR, "n")]
    night.used = [
        AnswerUsage("u1", DAY - 300_000, "n", "m", input=1),
        AnswerUsage("u2", DAY + 1_200_000, "n", "m", input=1),
        AnswerUsage("u3", 12 * DAY, "n", "m", input=1),
    ]
    rows, total = sum_rows([], [night], _ask("day"))
    assert [(row.key, row.turns, row.active_ms, row.wall_ms) for row in rows] == [
        ("day 0", 1, 600_000, 600_000),
        # The second one's turn would have been longer than a week: nobody can say how long it was.
        ("day 1", 1, 1_200_000 + 10 * DAY + HOUR, DAY - HOUR),
        ("day 12", 0, None, 0),
    ]
    assert total.active_ms == 1_800_000 + 10 * DAY + HOUR
    rows, _ = sum_rows([], [night], _ask("session"))
    assert [row.active_ms for row in rows] == [total.active_ms]


def test_what_lies_between_two_legs_is_in_neithers_sum() -> None:
    """A user goes on by hand between two legs, in one quarter of an hour with them or in one of its own.

    10 and 40 of the legs; 20 of the user's own.
    """
    for minute in (60_000, 20 * 60_000):
        legs = [
            LegWork("a", "one", HOUR, HOUR + minute, ["n1"]),
            LegWork("b", "one", HOUR + 4 * minute, HOUR + 5 * minute, ["n1"]),
        ]
        native = Native("one", "n1", "/w")
        native.used = [
            AnswerUsage("u1", HOUR, "n1", "m", input=10),
            AnswerUsage("u2", HOUR + 3 * minute, "n1", "m", input=20),
            AnswerUsage("u3", HOUR + 4 * minute, "n1", "m", input=40),
        ]
        work = SessionWork("S", "/w", legs, [], [])
        rows, _ = sum_rows([work], [native], _ask("session"))
        assert {row.key: (row.bill.tokens, row.bill.answers) for row in rows} == {
            "S": (50, 2),
            "one:n1": (20, 1),
        }
        (ours,), _ = sum_rows([work], [native], _ask("session", is_ours_only=True))
        assert (ours.bill.tokens, ours.bill.answers) == (50, 2)


def test_what_nothing_dates_is_of_no_day_not_of_the_first_there_was() -> None:
    """A machine whose clock starts in 1970 writes such times, too."""
    native = Native("one", "n1", "/w")
    native.used = [AnswerUsage("u1", 0, "n1", "m", input=10), AnswerUsage("u2", 300_000, "n1", "m", input=20)]
    rows, _ = sum_rows([], [native], _ask("day"))
    assert {row.key: row.bill.tokens for row in rows} == {"unknown": 10, "day 0": 20}
