"""How budgets stand, from marks: what counts for which, and what is said where a price is not known."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from agent_relay.domain.limits import Budget, Mark
from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage._dedupe import Native
from agent_relay.usage.budget_usage import count_spending, find_day, tell_uncounted
from agent_relay.usage.native_usage import Damage
from agent_relay.usage.session_work import LegWork, SessionWork, to_ms
from agent_relay.usage.totals import Rate

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
DAY = find_day(NOW, UTC)
CENT = Decimal("0.01")


def _rates(model: str, _at: int) -> tuple[Rate, ...]:
    return (Rate(0, CENT, CENT, CENT, CENT, CENT),) if model == "m" else ()


def _native(agent: str, session: str, *used: tuple[int, str, int]) -> Native:
    """Answers of so many tokens of a model, so many hours ago."""
    native = Native(agent, session)
    native.used = [
        AnswerUsage(f"{session}{number}", to_ms(NOW - timedelta(hours=hours)), session, model, tokens)
        for number, (hours, model, tokens) in enumerate(used)
    ]
    return native


WORK = SessionWork("S", "/r", [LegWork("a", "ann", to_ms(NOW) - 7_200_000, to_ms(NOW), ["n1"])], [], [])
NATIVES = [
    _native("ann", "n1", (30, "m", 1000), (3, "m", 100), (1, "m", 20)),
    _native("bob", "n2", (2, "m", 300), (1, "x", 7)),
]


def _count(budget: Budget, natives: list[Native] | None = None) -> tuple[Mark, str]:
    (found,) = count_spending([budget], WORK, NATIVES if natives is None else natives, _rates, DAY)
    assert (found.budget, found.agent, found.then) == (budget.name, budget.agent, budget.then)
    return found.mark, found.text


def test_what_counts_for_a_budget() -> None:
    """A session's: what its legs used, 20 tokens. A day's: all since midnight, 120 of ann and 307 of bob."""
    rows: list[tuple[Budget, Mark, str]] = [
        (Budget("session", tokens=1000), Mark.OPEN, "20 tokens of your budget of 1,000 tokens a session"),
        (
            Budget("session", tokens=20),
            Mark.SPENT,
            "your budget of 20 tokens a session is used up (20 tokens)",
        ),
        (Budget("session", "ann", 25), Mark.WARN, "20 tokens of your budget of 25 tokens a session for ann"),
        (Budget("session", "bob", 1), Mark.OPEN, "0 tokens of your budget of 1 tokens a session for bob"),
        (
            Budget("day", "ann", 120),
            Mark.SPENT,
            "your budget of 120 tokens a day for ann is used up (120 tokens)",
        ),
        (Budget("day", tokens=427), Mark.SPENT, "your budget of 427 tokens a day is used up (427 tokens)"),
        (Budget("day", "ann", 0, Decimal("1.5")), Mark.WARN, "$1.20 of your budget of $1.50 a day for ann"),
        (
            Budget("session", "", 0, Decimal("0.2")),
            Mark.SPENT,
            "your budget of $0.20 a session is used up ($0.2000)",
        ),
        (Budget("day", "ann", 0, Decimal(10), 12), Mark.WARN, "$1.20 of your budget of $10.00 a day for ann"),
    ]
    assert [
        (budget, mark, text)
        for budget, mark, text in rows
        if _count(budget) != (mark, text if mark is Mark.SPENT else f"{text} is used")
    ] == []


def test_a_model_without_a_price_never_counts_as_nothing() -> None:
    """It is said, beside what is known; and a budget that knows no more than that is not open."""
    lost = "no price is known for 7 tokens of x"
    assert _count(Budget("day", "bob", dollars=Decimal(100))) == (
        Mark.UNPRICED,
        f"{lost}, so your budget of $100.00 a day for bob cannot be kept for them",
    )
    assert _count(Budget("day", "bob", dollars=Decimal("3.5"))) == (
        Mark.WARN,
        f"at least $3.00 of your budget of $3.50 a day for bob is used; {lost}",
    )
    assert _count(Budget("day", "bob", dollars=Decimal(3))) == (
        Mark.SPENT,
        f"your budget of $3.00 a day for bob is used up (at least $3.00); {lost}",
    )
    only = [_native("bob", "n2", (1, "x" * 99, 7), (1, "", 1), (1, "y", 1), (1, "z", 1))]
    many = f"no price is known for 10 tokens of unknown, {'x' * 40}, y and 1 more"
    assert _count(Budget("day", "bob", dollars=Decimal(3)), only) == (
        Mark.UNPRICED,
        f"{many}, so your budget of $3.00 a day for bob cannot be kept for them",
    )
    assert _count(Budget("day", "bob", tokens=100), only)[0] is Mark.OPEN


def test_a_days_budget_says_which_day_and_a_session_nobody_tells_of_used_nothing() -> None:
    """The day is the user's, not the one of Greenwich."""
    zone = timezone(timedelta(hours=9))
    day = find_day(NOW, zone)
    assert (day.name, day.begin.isoformat(), day.end.isoformat()) == (
        "2026-11-22", "2026-11-22T00:00:00+09:00", "2026-11-23T00:00:00+09:00",
    )  # fmt: skip
    one, two = count_spending(
        [Budget("day", tokens=1000), Budget("session", tokens=5)], None, NATIVES, _rates, day
    )
    assert (one.period, one.until, one.text[:10]) == ("2026-11-22", "2026-11-23T00:00:00+09:00", "427 tokens")
    assert (two.period, two.until, two.mark) == ("", "", Mark.OPEN)


def test_what_could_not_be_read_keeps_a_budget_from_counting_as_open() -> None:
    """It is at least what was counted, and of another agent it does not matter."""
    rows: list[tuple[Budget, Mark, str]] = [
        (
            Budget("session", tokens=1000),
            Mark.UNCOUNTED,
            "not all that counts for your budget of 1,000 tokens a session can be counted: b!",
        ),
        (
            Budget("session", tokens=25),
            Mark.WARN,
            "at least 20 tokens of your budget of 25 tokens a session is used; b!",
        ),
        (
            Budget("session", "ann", 1000),
            Mark.OPEN,
            "20 tokens of your budget of 1,000 tokens a session for ann is used",
        ),
        (
            Budget("day", "bob", 0, Decimal(9)),
            Mark.UNPRICED,
            (
                "no price is known for 7 tokens of x, "
                "so your budget of $9.00 a day for bob cannot be kept for them; b!"
            ),
        ),
    ]
    counted = count_spending([row[0] for row in rows], WORK, NATIVES, _rates, DAY, gaps={"bob": "b!"})
    assert [(row[0], found.mark, found.text) for row, found in zip(rows, counted, strict=True)] == rows


BEGUN = to_ms(NOW) - 7_200_000
"""When the session's leg began; the day began at midnight."""


def test_lines_that_cannot_be_read_are_told_where_they_may_count() -> None:
    """Not in a file last written before that, and not another agent's."""
    rows = [
        (Budget("session", tokens=1000), [Damage("ann", 1, BEGUN)], "1 line of ann's records cannot be read"),
        (Budget("session", tokens=1000), [Damage("ann", 1, BEGUN - 1), Damage("bob", 5, BEGUN)], ""),
        (Budget("session", "bob", 1000), [Damage("ann", 1, BEGUN)], ""),
        (Budget("day", tokens=1000), [Damage("ann", 1, to_ms(DAY.begin) - 1)], ""),
        (
            Budget("day", tokens=1000),
            [Damage("ann", 1, BEGUN), Damage("bob", 1200, BEGUN), Damage("ann", 2, to_ms(DAY.begin))],
            "3 lines of ann's records and 1,200 lines of bob's records cannot be read",
        ),
        (Budget("day", "ann", 1000), [Damage("bob", 5, BEGUN)], ""),
    ]
    for budget, damages, gap in rows:
        (found,) = count_spending([budget], WORK, NATIVES, _rates, DAY, damages=damages)
        end = f" can be counted: {gap}" if gap else " is used"
        assert (found.mark, found.text[-len(end) :]) == (Mark.UNCOUNTED if gap else Mark.OPEN, end)


def test_a_session_that_went_on_from_its_agents_own_has_all_its_history_looked_at() -> None:
    """What an adopted leg's records hold from before counts, and so does what cannot be read of it."""
    legs = [LegWork("b", "ann", BEGUN, BEGUN, ["n1"]), LegWork("a", "ann", 0, BEGUN, ["n1"])]
    work = SessionWork("S", "/r", legs, [], [])
    for known, mark in ((work, Mark.UNCOUNTED), (None, Mark.OPEN)):
        (found,) = count_spending(
            [Budget("session", tokens=10_000)], known, NATIVES, _rates, DAY, damages=[Damage("ann", 1, 5)]
        )
        assert found.mark is mark


def test_what_could_not_be_read_at_all_is_told_before_lines_that_could_not() -> None:
    """The worse one: a sentence has room for one reason."""
    (found,) = count_spending(
        [Budget("day", tokens=1000)], WORK, NATIVES, _rates, DAY,
        gaps={"bob": "b!"}, damages=[Damage("ann", 1, BEGUN)],
    )  # fmt: skip
    assert found.text.endswith(": b!")


def test_budgets_that_cannot_be_counted_at_all_say_so_for_their_day() -> None:
    """Tomorrow's is another one."""
    session, day = tell_uncounted([Budget("session", tokens=5), Budget("day", "ann", 7)], "it is gone", DAY)
    assert (session.mark, session.text, session.period) == (
        Mark.UNCOUNTED,
        "your budget of 5 tokens a session is not watched: it is gone",
        "",
    )
    assert (day.mark, day.agent, day.period, day.until) == (
        Mark.UNCOUNTED,
        "ann",
        "2026-11-21",
        "2026-11-22T00:00:00+00:00",
    )
