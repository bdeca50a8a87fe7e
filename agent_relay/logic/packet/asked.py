"""The newest prompt relay's own journal knows, where the agent's record lacks it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.facts import Facts, Said
from agent_relay.domain.session import Handoff, Leg, Prompt, Session
from agent_relay.logic.detector.records import squeeze

AUTOMATIC = frozenset({"rate_limit", "context", "failure"})
"""Reasons of handoffs nobody asked for."""
JOURNAL = "relay's journal"
"""Where a prompt stands that the agent's own record lacks."""
# A hook is a program of its own: its record may be that much younger than the prompt's row.
_SLACK = timedelta(seconds=60)


def is_waiting(session: Session, leg: Leg, handoff: Handoff) -> bool:
    """Return whether nobody answered what the leg was asked last, as far as relay saw.

    It was answered where its turn was seen to end, by anything but what forces a handoff.
    """
    asked, limit = leg.asked, session.limit
    is_limited = asked is not None and limit is not None and limit.agent == leg.agent and limit.at >= asked.at
    return handoff.reason in AUTOMATIC or is_limited or (asked is not None and not asked.is_over)


def add_asked(facts: Facts, leg: Leg, *, waits: bool, clean: Callable[[str], str]) -> Facts:
    """Return the facts with the leg's newest prompt, where the record neither has nor answers it.

    `clean` redacts a text as the journal's are; `waits` is whether the prompt still waits for an answer.
    """
    asked = leg.asked
    if asked is None or not _is_of(asked, leg) or _has(facts, asked, clean):
        return facts
    text = asked.text
    if asked.left_out:
        text += f"\n[… {asked.left_out} characters left out …]"
    return add_prompt(facts, text, waits=waits, at=asked.at, place=JOURNAL)


def add_prompt(
    facts: Facts, prompt: str, *, waits: bool, at: datetime | None = None, place: str = ""
) -> Facts:
    """Return the facts with a prompt known from elsewhere as the newest one; it `waits` for an answer.

    What the record itself says is unanswered stays so, above it.
    """
    if not prompt.strip():
        return facts
    turn = 1 + max((said.turn for said in facts.conversation), default=0)
    said = Said("user", prompt, turn, at, place)
    before = facts.unprocessed_prompt
    waiting = before
    if waits:
        waiting = said if before is None else replace(said, text=f"{before.text}\n\n{prompt}")
    return replace(facts, conversation=(*facts.conversation, said), unprocessed_prompt=waiting)


def _is_of(asked: Prompt, leg: Leg) -> bool:
    """Return whether it was asked in the leg's present conversation: one that was left may be cleared."""
    return not asked.native_id or not leg.native_id or asked.native_id == leg.native_id


def _has(facts: Facts, asked: Prompt, clean: Callable[[str], str]) -> bool:
    """Return whether the record has the prompt, or an answer younger than it.

    The same words may have been said before: then they are this prompt unless all that answers them is older
    than it.
    """
    wanted, answers = squeeze(asked.text), 0
    for said in reversed(facts.conversation):
        if said.role == "assistant":
            if said.at is not None and said.at > asked.at:
                return True
            answers += said.at is not None
        elif said.at is not None and said.at < asked.at - _SLACK:
            return False
        elif wanted in squeeze(clean(said.text)):
            return answers == 0 or said.at is None or said.at >= asked.at
    return False
