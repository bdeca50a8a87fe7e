"""`notify` in the user's configuration means one thing, or is refused with a sentence."""

import pytest

from agent_relay.domain.documents.config import UserConfig, find_webhook_addresses
from agent_relay.domain.documents.handwritten import MistakeError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("auto", ("auto",)),
        ("off", ("off",)),
        (["bell", "desktop"], ("bell", "desktop")),
        ("webhook:https://hooks.example/relay", ("webhook:https://hooks.example/relay",)),
        (["auto", "webhook:http://127.0.0.1:8080/x"], ("auto", "webhook:http://127.0.0.1:8080/x")),
    ],
)
def test_one_word_or_a_list_of_them_can_be_meant(written: object, meant: tuple[str, ...]) -> None:
    """Most people want one, and nobody should have to write brackets for it."""
    assert UserConfig.parse({"notify": written}).notify == meant


def test_without_a_word_terminals_and_the_desktop_are_used() -> None:
    """Nothing has to be configured."""
    assert UserConfig().notify == ("auto",)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            "loud",
            """unknown value 'loud'; use "auto", "off", "bell", "osc", "desktop" or "webhook:https://…\"""",
        ),
        (["off", "bell"], 'use "off" alone, or list at least one method'),
        ([], 'use "off" alone, or list at least one method'),
        (["bell", "bell"], "a value is listed twice"),
        (
            "webhook:http://hooks.example/",
            "is neither https nor http to this machine, or has a password in it",
        ),
        ("webhook:https://me:secret@hooks.example/", "is neither https nor http to this machine"),
        ("webhook:", "is neither https nor http to this machine"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(written: object, sentence: str) -> None:
    """A wish that is silently dropped is found out when nobody came."""
    with pytest.raises(MistakeError) as caught:
        UserConfig.parse({"notify": written})
    assert caught.value.key == "notify"
    assert sentence in caught.value.message


def test_the_addresses_are_those_of_the_webhooks() -> None:
    """Several receivers are told, each by its own address."""
    wishes = ("bell", "webhook:https://a.example/", "webhook:https://b.example/")
    assert find_webhook_addresses(wishes) == ("https://a.example/", "https://b.example/")
