"""What relay handed over is not read back as somebody's words."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import render_document
from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.domain.values import replace
from agent_relay.packet.build import build_packet
from tests.session.first_leg import OCCASION, SECOND

TASK = "Share a bill among friends: money is integer cents, and the payer takes what is left over."
OPENING = "Continue the work."
AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def build_before() -> ResumePacket:
    """The packet of the leg before: a task, and a rule chosen among options."""
    offered = "1) largest remainder\n2) the payer takes the leftover cents\n\nWhich one?"
    facts = Facts(
        agent="alpha",
        conversation=(
            Message("user", TASK, 1),
            Message("assistant", offered, 1),
            Message("user", "the second, and never use float", 2),
            Message("assistant", "split.py is written.", 2),
        ),
    )
    return build_packet(facts, OCCASION)


def build_next(*said: str, commands: tuple[CommandRun, ...] = ()) -> ResumePacket:
    """The packet of a leg that relay alone prompted and that said this, a second apart."""
    prompt = Message("user", f"<handoff-context>\n## Task\n{TASK}\n</handoff-context>\n{OPENING}", 1, AT)
    answers = [
        Message("assistant", text, 1, AT + timedelta(seconds=2 * number))
        for number, text in enumerate(said, start=1)
    ]
    facts = Facts(agent="beta", conversation=(prompt, *answers), commands=commands)
    return build_packet(facts, replace(SECOND, relay_texts=(OPENING,)), previous=build_before())


def list_words(packet: ResumePacket) -> str:
    """Every word of what the second agent said in the packet's document."""
    told = [one.model_dump_json() for one in packet.exchanges if one.source and one.source.agent == "beta"]
    return "\n".join([*told, *(one.text for one in packet.recent_turns), packet.next_task or ""])


@pytest.mark.parametrize(
    "announced",
    [
        "I take over the bill splitter.",
        "Picking up the bill splitter where alpha stopped: split.py is written, money is integer cents.",
        "OK, I've read the handoff context. The payer takes the leftover cents.",
        "Ich übernehme den Rechnungsteiler.",
        "Retomo el reparto de la cuenta.",
        "Je prends le relais sur le partage de l'addition.",
        "Assumo o rateio da conta.",
        "我接手账单拆分。",
        "割り勘の続きを引き継ぎます。",
    ],
)
def test_what_a_successor_takes_over_is_not_told_as_its_own_words(announced: str) -> None:
    """Relay asked for it: repeated, it would turn into a decision that nobody made."""
    alone = build_next(announced)
    assert list_words(alone) == list_words(build_next())
    packet = build_next(f"{announced}\n\nI named the helper share_evenly because split shadows a method.")
    assert "share_evenly because split shadows a method" in list_words(packet)
    assert announced not in list_words(packet)


def test_what_a_successor_adds_stays() -> None:
    """A first answer may hold the finding that the next one needs."""
    rows = [
        "The payer takes 3 cents where two friends left.",
        "The cause is money.py: it rounds the payer's share.",
        "I decided to give the leftover cents to the youngest instead.",
        "Should the payer take the leftover cents of a refund too?",
    ]
    assert [
        new for new in rows if new not in list_words(build_next(f"I take over the bill splitter. {new}"))
    ] == []


def test_a_report_that_repeats_the_task_stays() -> None:
    """An agent that worked in silence says at its end, in the task's words, that the task is done."""
    report = "Money is integer cents now, and the payer takes what is left over."
    ran = CommandRun("make", "", 0, 1, AT + timedelta(seconds=1))
    assert report in list_words(build_next(report, commands=(ran,)))
    assert report not in list_words(build_next(report))


def test_a_later_message_stays_whatever_it_says() -> None:
    """Only the first answer is what relay asked for."""
    later = "I take over the naming too."
    assert later in list_words(build_next("I take over the bill splitter.", later))


def test_the_latest_exchange_is_the_leg_that_just_ended() -> None:
    """The last words of an agent two legs ago are not the latest; they are in the ledger."""
    packet = build_next("I take over the bill splitter.", "The trial run is clean.")
    assert [(one.text, one.source.agent if one.source else "") for one in packet.recent_turns] == [
        ("The trial run is clean.", "beta")
    ]
    silent = build_next("I take over the bill splitter.")
    assert silent.recent_turns == build_before().recent_turns


@pytest.mark.parametrize(
    "command",
    [
        "cat .agent-relay/sessions/01M8/resume/0001-codex.md",
        'agent-relay recall "leftover cents"',
        "agent-relay packet show",
    ],
)
def test_what_relay_prints_is_no_finding_of_who_looks_it_up(command: str) -> None:
    """Packets name earlier packets and `recall`; a number printed there was measured by somebody else."""
    ran = CommandRun(command, "measured: 1000 bills in 412 ms\n2 failed, 1 passed", 0, 1)
    packet = build_next("I take over the bill splitter.", "Now the test.", commands=(ran,))
    assert "412 ms" not in render_document(packet).__repr__()
