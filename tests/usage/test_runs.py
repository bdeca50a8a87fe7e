"""Answers that are priced together are of one owner, one row and one quarter of an hour."""

from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage._dedupe import Native
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.session_work import LegWork, SessionWork
from agent_relay.usage.table_format import Grouping

HOUR = 3_600_000


def _ask(by: Grouping, *, is_ours_only: bool = False) -> Question:
    return Question(
        by, lambda _model, _at: (), lambda at: f"day {at // (24 * HOUR)}", is_ours_only=is_ours_only
    )


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
