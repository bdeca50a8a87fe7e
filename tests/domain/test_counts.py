import pytest

from agent_relay.domain.text.names import describe_window, name_rest
from agent_relay.domain.text.plain import render_count


@pytest.mark.parametrize(("number", "text"), [(0, "0 handoffs"), (1, "1 handoff"), (1200, "1,200 handoffs")])
def test_a_number_of_things_has_the_right_form(number: int, text: str) -> None:
    """`1 handoffs` reads like a program that does not look at what it says."""
    assert render_count(number, "handoff") == text


@pytest.mark.parametrize(
    ("minutes", "text"),
    [(300, "5-hour window"), (10_080, "weekly window"), (1440, "daily window"), (43_200, "30-day window")],
)
def test_a_usage_window_is_named_by_how_long_it_is(minutes: int, text: str) -> None:
    """Its adapter's name for it is a field of somebody's JSON."""
    assert describe_window("five_hour", minutes) == text
    assert describe_window("model_pool", 0) == "model pool window"


def test_why_an_agent_rests_is_no_code() -> None:
    """`billing` says less than what has to be topped up."""
    assert [name_rest("billing"), name_rest("model", "opus"), name_rest("")] == [
        "credit limit",
        "limit of opus",
        "limit",
    ]
