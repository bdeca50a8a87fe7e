"""Who rests until when: the rules that keep a session from going back to an agent that cannot answer."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.limits import Rest
from agent_relay.session.rests import add_rest, drop_rests, end_rests, find_rest

NOW = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)


def rest(hours: float | None, *, scope: str = "account", agent: str = "ann", model: str = "") -> Rest:
    until = None if hours is None else NOW + timedelta(hours=hours)
    return Rest(agent, model, scope, until, "seen", NOW)


def test_an_agent_rests_until_its_last_reset() -> None:
    """A session limit inside a weekly one ends nothing."""
    rests = (rest(3), rest(50, scope="model"), rest(9, agent="bob"))
    assert find_rest(rests, "ann", NOW) == rest(50, scope="model")
    assert find_rest(rests, "ann", NOW + timedelta(hours=51)) is None
    assert find_rest(rests, "cas", NOW) is None


def test_a_billing_limit_without_a_reset_lasts_until_the_user_says_otherwise() -> None:
    """Money does not come back by waiting."""
    rests = (rest(None, scope="billing"), rest(3))
    late = NOW + timedelta(days=90)
    assert find_rest(rests, "ann", late) == rest(None, scope="billing")
    assert find_rest(drop_rests(rests, "ann"), "ann", NOW) is None


def test_a_limit_without_a_reset_is_believed_for_an_hour() -> None:
    """A vague "try again later" must neither be forgotten at once nor kept for ever."""
    found = find_rest((rest(None),), "ann", NOW + timedelta(minutes=59))
    assert found is not None
    assert (found.until, found.assumed) == (NOW + timedelta(hours=1), True)
    told = find_rest((rest(3),), "ann", NOW)
    assert told is not None
    assert not told.assumed
    assert find_rest((rest(None),), "ann", NOW + timedelta(minutes=61)) is None


def test_a_new_reading_replaces_the_old_one_of_the_same_window() -> None:
    """A frozen old reading must not outlive what the agent says now."""
    rests = add_rest((rest(3), rest(-1, agent="bob")), rest(1), NOW)
    assert rests == (rest(1),)


def test_a_rest_dated_by_a_clock_that_was_far_ahead_is_over() -> None:
    """An agent would rest for the ten years the clock was wrong by; money is another matter."""
    ahead = NOW + timedelta(days=3650)
    told = Rest("ann", "", "account", ahead + timedelta(hours=3), "seen", ahead)
    assert find_rest((told,), "ann", NOW) is None
    assert find_rest((told,), "ann", ahead) == told
    unpaid = Rest("ann", "", "billing", None, "seen", ahead)
    assert find_rest((unpaid,), "ann", NOW) == unpaid
    assert add_rest((told, unpaid), rest(3, agent="bob"), NOW) == (unpaid, rest(3, agent="bob"))


def test_a_rest_told_before_the_clock_was_set_back_by_hours_lasts() -> None:
    """A reset of the evening is one of the evening by either time."""
    assert find_rest((rest(3),), "ann", NOW - timedelta(hours=3)) == rest(3)


def test_an_agent_that_answers_well_after_its_limit_does_not_rest() -> None:
    """Credits were bought or a window moved: it would be passed over until a reset nobody waits for."""
    rests = (rest(3), rest(None, scope="billing"), rest(9, agent="bob"))
    assert end_rests(rests, "ann", "", NOW + timedelta(minutes=5)) == (rest(9, agent="bob"),)
    assert end_rests(rests, "ann", "", NOW + timedelta(seconds=30)) == rests
    assert end_rests(rests, "ann", "", NOW - timedelta(minutes=5)) == rests


def test_an_answer_ends_only_what_it_disproves() -> None:
    """A fallback model answers while the other one rests, and a budget is the user's own word."""
    late = NOW + timedelta(minutes=5)
    large, some = rest(3, scope="model", model="large"), rest(3, scope="model")
    budget = rest(3, scope="budget")
    assert end_rests((large, some, budget), "ann", "small", late) == (large, some, budget)
    assert end_rests((large, some, budget), "ann", "", late) == (large, some, budget)
    assert end_rests((large, some, budget), "ann", "large", late) == (some, budget)
