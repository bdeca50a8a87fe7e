"""Work that goes on over a midnight, where rows are days."""

from agent_relay.transcripts.usage_records import AnswerUsage, PromptSent
from agent_relay.usage._dedupe import Native
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.table_format import Grouping

HOUR = 3_600_000
DAY = 24 * HOUR


def _ask(by: Grouping) -> Question:
    return Question(by, lambda _model, _at: (), lambda at: f"day {at // DAY}")


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
