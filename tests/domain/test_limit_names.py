import pytest

from agent_relay.domain.text.names import name_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You've hit your session limit · resets 9pm", "its session limit"),
        ("You've hit your weekly limit.", "its weekly limit"),
        ("your Opus 4.1 limit, switch to another", "its Opus 4.1 limit"),
        ("your org's monthly usage limit", "its usage limit"),
        ("your daily limits", "its usage limit"),
        ("your \x1b[31mred limit", "its usage limit"),
        ("your a b c d limit", "its usage limit"),
        ("", "its usage limit"),
    ],
)
def test_a_limit_is_called_what_its_agent_calls_it(text: str, expected: str) -> None:
    """A week's limit is no session's: a person plans the evening by it."""
    assert name_limit("account", text=text) == expected


def test_a_limit_without_words_of_its_own_is_called_by_what_it_covers() -> None:
    """What agents say may name nothing."""
    assert name_limit("model", "Opus") == "the limit of Opus"
    assert name_limit("model") == "the limit of its model"
    assert name_limit("") == "a limit"
    assert name_limit("billing", text="Credit balance is too low") == "its credit limit"
