"""What the user's allow-list names stays, counted apart; everything else still goes."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import Facts, Message
from agent_relay.redact.known_values import build_allow
from agent_relay.redact.packet import redact_facts, redact_packet
from agent_relay.redact.text import redact_text
from tests.redact import planted
from tests.redact.test_redact_packet import KEY, build

AWS = "AKIAQ4ZB2C7DX9EK5LMN"
OTHER = "AKIAQ4ZB2C7DX9EK5LMO"
TOKENS = [one for one in planted.plant_tokens(11) if one.context in ("prose", "json", "shell", "wrapped")]


def test_a_literal_spares_what_stands_inside_of_it() -> None:
    """A test suite's key may be quoted to the successor; its neighbour of the same kind may not."""
    redacted = redact_text(f"{AWS} and {OTHER}", allow=build_allow((AWS,), ()))
    assert redacted.text == f"{AWS} and [redacted: aws-key]"
    assert (redacted.counts, redacted.spared) == ({"aws-key": 1}, {"aws-key": 1})
    url = "postgres://app:Kj8sd72ks@localhost/test"
    kept = redact_text(f"use {url}", allow=build_allow((url,), ()))
    assert (kept.text, kept.counts, kept.spared) == (f"use {url}", {}, {"connection-string": 1})
    elsewhere = redact_text("postgres://app:Kj8sd72ks@db.internal/prod", allow=build_allow((url, ""), ()))
    assert elsewhere.counts == {"connection-string": 1}


def test_a_pattern_spares_values_it_matches_whole() -> None:
    """A pattern that fits a part must not spare the rest of a longer secret."""
    allow = build_allow((), ("AKIAQ4.*N",))
    redacted = redact_text(f"{AWS} {OTHER}", allow=allow)
    assert (redacted.counts, redacted.spared) == ({"aws-key": 1}, {"aws-key": 1})
    assert redact_text(AWS, allow=build_allow((), ("AKIAQ4",))).spared == {}


def test_what_is_part_of_something_larger_goes_with_it() -> None:
    """The list spares a value, not the private key or the header it happens to stand in."""
    text = f'password = "{AWS}x9!fjK2lp0"'
    redacted = redact_text(text, allow=build_allow((AWS,), ()))
    assert AWS not in redacted.text
    assert redacted.spared == {}


def test_a_packet_counts_what_was_spared_apart() -> None:
    """Its reader sees what was taken out and what the user let stand, known values and keys of fields too."""
    allow = build_allow(("swordfish99", "x9!fjK2lp0"), (KEY,))
    packet = build(
        task=f"use {KEY} and {AWS}",
        next_task="pass swordfish99 on",
        settings={"password": "x9!fjK2lp0", "api_key": KEY},
    )
    known = frozenset({"swordfish99"})
    redacted = redact_packet(packet, known=known, allow=allow)
    assert redacted.task == f"use {KEY} and [redacted: aws-key]"
    assert redacted.next_task == "pass swordfish99 on"
    assert {one.kind: one.count for one in redacted.redactions} == {"aws-key": 1}
    assert {one.kind: one.count for one in redacted.spared} == {
        "anthropic-key": 2,
        "known-secret": 1,
        "password": 1,
    }
    assert redact_packet(redacted, known=known, allow=allow) == redacted
    assert {one.kind: one.count for one in redact_packet(redacted, known=known).redactions} == {
        "anthropic-key": 2, "aws-key": 1, "known-secret": 1, "password": 1,
    }  # fmt: skip


def test_facts_keep_what_is_allowed() -> None:
    """Otherwise the packet built of them could not."""
    facts = Facts("alpha", conversation=(Message("user", f"use {AWS}", 1),))
    assert redact_facts(facts, allow=build_allow((AWS,), ())) == facts


@settings(max_examples=200)
@given(st.sampled_from(TOKENS), st.sampled_from(TOKENS))
def test_allowing_one_secret_never_spares_another(allowed: planted.Planted, secret: planted.Planted) -> None:
    """Whatever the user lets stand, recall on everything else stays complete."""
    if allowed.secret in secret.secret or secret.secret in allowed.secret:
        return
    allow = build_allow((allowed.secret,), ())
    assert not planted.leaks(secret, redact_text(f"{allowed.text}\n\n{secret.text}", allow=allow).text)


@pytest.mark.size("test")
@pytest.mark.parametrize("one", [one for one in TOKENS if one.context == "prose"], ids=lambda one: one.kind)
def test_a_secret_split_before_any_of_its_letters_goes_whole(one: planted.Planted) -> None:
    """A line may begin with any of them, a colon included; half of a token without a beginning is none."""
    for indent, cut in product(("", "    ", "+", "> "), range(4, len(one.secret) - 3)):
        text = f"the key is {one.secret[:cut]}\n{indent}{one.secret[cut:]}\nand then more"
        assert not planted.leaks(one, redact_text(text).text), text


@pytest.mark.parametrize("mark", ['"', "'", "`", '\\"'])
@settings(max_examples=40)
@given(st.sampled_from([one for one in TOKENS if one.context == "prose"]), st.integers(4, 60), st.data())
def test_a_secret_split_over_a_line_end_or_quotes_goes_whole(
    mark: str, one: planted.Planted, cut: int, data: st.DataObject
) -> None:
    """Terminals, mails and linters break lines anywhere; a half that is left is a leak."""
    cut = min(cut, len(one.secret) - 4)
    head, tail = one.secret[:cut], one.secret[cut:]
    indent = " " * data.draw(st.integers(0, 8))
    for text in (
        f"the key is {head}\n{indent}{tail}\nand then more",
        f"key = {mark}{head}{mark}\n{indent}{mark}{tail}{mark}\n",
        f"key = {mark}{one.secret}{mark}\n",
        f"$ tool --with {head}\\\n{indent}{tail} --verbose\n",
    ):
        assert not planted.leaks(one, redact_text(text).text), text
