"""How budgets stand in a session and in words, and what a damaged journal cannot change about that."""

from datetime import UTC, datetime

from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import BudgetApplied, BudgetNoted
from agent_relay.domain.limits import Mark
from agent_relay.domain.values import replace
from agent_relay.session.fold import fold_event, fold_events
from agent_relay.session.transitions import find_worst_budget
from agent_relay.session.views.messages import render_message, render_spending_line
from tests.session.story import MIDNIGHT, NOW, Story, spend

WARN, SPENT, UNPRICED = Mark.WARN, Mark.SPENT, Mark.UNPRICED
TOMORROW = datetime(2026, 11, 22, tzinfo=UTC)


def test_the_terminal_and_the_end_say_what_stands_and_what_follows() -> None:
    """Shown before they act."""
    story = Story().start().says("busy")
    story.counts(spend(WARN, "handoff", agent="ann", text="$4.10 of your budget of $5.00 a day is used"))
    assert render_message(story.now, UTC) == (
        "→ $4.10 of your budget of $5.00 a day is used. When it is used up, another agent takes over"
    )
    story.counts(spend(SPENT, "handoff", agent="ann", text="your budget of $5.00 a day is used up ($5.10)"))
    assert render_message(story.now, UTC) == (
        "→ Your budget of $5.00 a day is used up ($5.10). Another agent takes over at the end of this turn"
    )
    story.says("ready")
    story.quiet()
    assert render_message(story.now, UTC) == (
        "→ Your budget of $5.00 a day is used up ($5.10). Continuing with bob."
    )
    done = replace(spend(SPENT, "handoff", text="x"), is_done=True)
    assert render_spending_line(done) == "→ X. It was already acted on and will not be again"
    unpriced = spend(UNPRICED, "stop", text="no price is known")
    assert render_spending_line(unpriced) == "→ No price is known"


def test_the_worst_budget_of_the_agent_at_work_is_shown_while_its_day_lasts() -> None:
    """The newest of those that are equally bad."""
    story = Story().start().says("busy")
    assert find_worst_budget(story.now, NOW) is None
    story.counts(
        spend(SPENT, "warn", agent="bob"),
        spend(WARN, "warn"),
        spend(UNPRICED, "stop"),
        spend(WARN, "stop", day=False),
    )
    worst = find_worst_budget(story.now, NOW)
    assert worst is not None
    assert worst.budget == "all/session/stop"
    assert find_worst_budget(replace(story.now, budgets=story.now.budgets[1:2]), TOMORROW) is None


def test_lines_that_cannot_be_meant_change_nothing() -> None:
    """A journal may be damaged, or of a newer version."""
    story = Story().start().says("busy")
    story.counts(spend(WARN, "warn"))
    before = story.now.budgets
    for body in (
        BudgetNoted("L1", "b", "half", "text"),
        BudgetApplied("L1", "nobody's"),
        BudgetApplied("L1", "all/day/warn", "2001-01-01"),
    ):
        event = Event(len(story.events) + 1, NOW, 1, body)
        after = fold_event(story.now, event)
        assert after is not None
        assert after.budgets == before
    assert fold_events(story.events) == story.now
    assert before[0].until == MIDNIGHT
