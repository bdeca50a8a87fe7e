"""Who rests until when: the rules that keep a session from going back to an agent that cannot answer."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.ledger import Rest
from agent_relay.logic.ledger import add_rest, drop_rests, find_rest

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
    assert found.until == NOW + timedelta(hours=1)
    assert find_rest((rest(None),), "ann", NOW + timedelta(minutes=61)) is None


def test_a_new_reading_replaces_the_old_one_of_the_same_window() -> None:
    """A frozen old reading must not outlive what the agent says now."""
    rests = add_rest((rest(3), rest(-1, agent="bob")), rest(1), NOW)
    assert rests == (rest(1),)
