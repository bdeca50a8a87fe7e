"""Facts lose their secrets before a packet quotes parts of them."""

import random
from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.packet import Reason
from agent_relay.domain.documents.packet_json import render_document, render_json
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, TodoItem, ToolError
from agent_relay.domain.values import replace
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.redact.known_values import AllowList
from agent_relay.redact.packet import redact_facts, redact_packet
from tests.redact.planted import BASE64, TOKENS, Planted, leaks, make
from tests.support.sizes import sized

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"


def test_every_text_of_a_person_or_agent_is_cleaned() -> None:
    """What is quoted whole and what is quoted in part."""
    said = Message("user", f"use {KEY}", 1)
    facts = Facts(
        "alpha",
        conversation=(said,),
        commands=(CommandRun(f"run {KEY} {'a ' * 200}", f"{KEY} {'b ' * 200}", 1, 1),),
        plan=(TodoItem(KEY, "pending"),),
        errors=(ToolError("read", f"{KEY} {'c ' * 200}", 1),),
        unprocessed_prompt=said,
        limit_text=KEY,
        summary=KEY,
        background=(f"shell: {KEY}",),
    )
    clean = redact_facts(facts)
    assert KEY not in str(clean)
    assert str(clean).count("[redacted: anthropic-key]") == 9
    assert clean.unprocessed_prompt == Message("user", "use [redacted: anthropic-key]", 1)


def test_facts_without_secrets_stay_equal() -> None:
    """Nothing is touched without need."""
    facts = Facts("alpha", conversation=(Message("user", "make it work", 1),))
    assert redact_facts(facts, known=frozenset({"swordfish99"})) == facts


def test_lines_from_the_middle_of_a_key_go_wherever_the_whole_key_tells() -> None:
    """Alone they look like any base64; the same record shows what they are a part of."""
    chance = random.Random(196)  # noqa: S311 - reproducible, not secret
    *body, other = [make(chance, BASE64, 64) for _ in range(27)]
    whole = "\n".join(("-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"))
    middle = "\n".join(body[8:12])
    facts = Facts(
        "alpha",
        conversation=(Message("user", f"is this part of it?\n{middle}\nand {other}", 2),),
        commands=(
            CommandRun("cat key", whole, 0, 1),
            CommandRun("sed -n 9,12p key", middle, 0, 1),
            CommandRun("show", repr(f"1\n{middle}\n{body[13][7:]}"), 0, 1),
        ),
        errors=(ToolError("read", f"  > {body[20]}", 1),),
        unprocessed_prompt=Message("user", middle, 3),
    )
    clean = str(redact_facts(facts))
    assert [line for line in body if line[8:24] in clean] == []
    assert other in clean
    assert body[9] in str(redact_facts(replace(facts, commands=facts.commands[1:2])))
    for told in ({"summary": whole}, {"background": (whole,)}, {"last_lines": (repr(whole),)}):
        assert body[9] not in str(redact_facts(replace(facts, commands=facts.commands[1:2], **told)).commands)
    assert body[9] in str(redact_facts(facts, allow=AllowList((whole,))))


def test_edited_lines_are_cleaned_together() -> None:
    """A private key spans many lines, and none but the first and the last looks like one."""
    body = tuple("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + str(number) for number in range(30))
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    plain = FileChange("/p/a.py", "modified", 1, removed_lines=("a = 1",), added_lines=("a = 2",))
    changes = (
        FileChange("/p/id_rsa", "created", 1, added_lines=("# mine", begin, *body, end, "last")),
        FileChange("/p/id_rsa", "modified", 1, removed_lines=(begin, *body), added_lines=(f"k = {KEY}",)),
        plain,
    )
    clean = redact_facts(Facts("alpha", files=changes)).files
    assert "MIIE" not in str(clean)
    assert KEY not in str(clean)
    assert (clean[0].added_lines[0], clean[0].added_lines[-1]) == ("# mine", "last")
    assert clean[2] == plain


@pytest.mark.size("every")
@pytest.mark.parametrize("kind", sized(TOKENS, [*TOKENS][::6]))
def test_no_cut_leaves_half_a_secret(kind: str) -> None:
    """Packets quote the last 1,500 characters of a check and the two ends of a long prompt."""
    secret = TOKENS[kind](random.Random(7))  # noqa: S311 - reproducible, not secret
    for behind in (1500 - len(secret) // 2, 2000 - len(secret) // 2):
        text = f"{'first. ' * 700}{secret} {'.' * behind}"
        before = f"{'.' * behind} {secret} {'last. ' * 700}"
        facts = Facts(
            "alpha",
            conversation=(
                Message("user", before, 1),
                Message("assistant", text, 1),
                Message("user", text, 2),
            ),
            commands=(
                CommandRun("pytest -q", text, 1, 2),
                CommandRun(f"make {'.' * (296 - len(secret) // 2)} {secret}", text, 2, 2),
            ),
            errors=(ToolError("read", text, 2),),
            unprocessed_prompt=Message("user", text, 2),
        )
        occasion = PacketContext("P", "S", 1, MOMENT, "alpha", "beta", Reason.RATE_LIMIT)
        packet = redact_packet(build_packet(redact_facts(facts), occasion))
        assert not leaks(Planted(kind, "cut", secret, text), render_json(render_document(packet)))
