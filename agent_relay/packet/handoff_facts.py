"""Add what relay itself knows of a handoff: terms, newest prompt, and what the agent's record lacks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from agent_relay.domain.documents.packet import ResumePacket, TouchedFile
from agent_relay.domain.documents.record_matching import squeeze
from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.protocol.json_text import parse_json
from agent_relay.domain.session import AgentNote, Handoff, Leg, Prompt, Session
from agent_relay.domain.values import replace


def add_terms(packet: ResumePacket, handoff: Handoff) -> ResumePacket:
    """Return `packet` with what is expected, and who takes over if the handoff fails or has failed.

    `expectations` has deliverables, acceptance_criteria, checks (commands that relay runs), proposed_checks,
    constraints and priority; `rollback` has agent and questions, and for the rollback agent itself `failed`,
    the handoff it makes up for, and why. Without such terms the packet is unchanged.
    """
    terms = handoff.terms
    expectations: dict[str, object] = {
        "deliverables": list(terms.deliverables),
        "acceptance_criteria": list(terms.criteria),
        "checks": list(terms.checks),
        "proposed_checks": list(terms.proposed_checks),
        "constraints": list(terms.constraints),
        "priority": terms.priority,
    }
    rollback: dict[str, object] = {
        "agent": handoff.to_agent if handoff.rolls_back else terms.rollback,
        "questions": list(terms.questions),
        "failed": handoff.rolls_back,
        "why": handoff.why if handoff.rolls_back else "",
    }
    changes = {
        "expectations": {name: value for name, value in expectations.items() if value},
        "rollback": {name: value for name, value in rollback.items() if value},
    }
    return packet.model_copy(update={name: value for name, value in changes.items() if value})


def add_wishes(packet: ResumePacket, note: AgentNote, facts: Facts) -> ResumePacket:
    """Return `packet` with the next step and the files that its agent named, if no prompt came after that.

    A prompt that waits for its answer stays the next step. Lines and notes of files are fields of their own.
    """
    if any(said.role == "user" and said.at is not None and said.at > note.at for said in facts.conversation):
        return packet
    changes: dict[str, object] = {}
    if note.next_step and packet.unprocessed_prompt is None:
        changes["next_task"] = note.next_step
    named = {file["path"]: file for file in map(_parse_file, note.files) if file.get("path")}
    touched = [
        TouchedFile.model_validate({**file.model_dump(), **named.pop(file.path, {})})
        for file in packet.touched_files
    ]
    touched += [TouchedFile.model_validate({"status": "read", **file}) for file in named.values()]
    return packet.model_copy(update={**changes, "touched_files": tuple(touched)})


def _parse_file(text: str) -> dict[str, str]:
    """Return path, lines and note of a file as the journal has it; empty for anything else."""
    try:
        found = parse_json(text.encode())
    except (ValueError, RecursionError):
        return {}
    told = found.items() if isinstance(found, dict) else ()
    return {
        name: value for name, value in told if name in ("path", "lines", "note") and isinstance(value, str)
    }


def has_own_terms(session: Session, handoff: Handoff) -> bool:
    """Check whether terms were given for this handoff itself, not only for its parent."""
    known = (*session.done, *((session.retriable,) if session.retriable is not None else ()))
    parent = next((one for one in known if one.id == handoff.parent), None)
    return not handoff.terms.is_empty and (parent is None or parent.terms != handoff.terms)


def list_missing_terms(packet: ResumePacket, text: str) -> tuple[str, ...]:
    """List those expectations and rollback terms of the packet that `text` does not contain."""
    told = " ".join(text.split())
    notes = []
    for field, terms in (("expected of you", packet.expectations), ("if it fails", packet.rollback)):
        for name, value in (terms or {}).items():
            said = [str(one) for one in (value if isinstance(value, list) else [value])]
            missing = [one for one in said if " ".join(one.split()) not in told]
            if missing:
                notes.append(f"{field}, {name.replace('_', ' ')}: {'; '.join(missing)}")
    return tuple(notes)


AUTOMATIC = frozenset({"rate_limit", "context", "failure"})
"""Reasons of handoffs that no user requested."""
JOURNAL = "relay's journal"
"""The source given for a prompt that the agent's own record lacks."""
# A hook is a program of its own: its record may be that much younger than the prompt's row.
_HOOK_SLACK = timedelta(seconds=60)


def is_prompt_unanswered(session: Session, leg: Leg, handoff: Handoff) -> bool:
    """Tell whether the leg's last prompt is unanswered, as far as relay saw.

    It is answered once its turn ended, unless what ended it forces a handoff.
    """
    asked, limit = leg.asked, session.limit
    is_limited = asked is not None and limit is not None and limit.agent == leg.agent and limit.at >= asked.at
    return handoff.reason in AUTOMATIC or is_limited or (asked is not None and not asked.is_over)


def add_newest_prompt(facts: Facts, leg: Leg, *, waits: bool, clean: Callable[[str], str]) -> Facts:
    """Return the facts with the leg's newest prompt, if the record neither has nor answers it.

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
    """Add to the facts, as the newest, a prompt known from elsewhere; it `waits` for an answer.

    What the record itself calls unanswered stays so, above it.
    """
    if not prompt.strip():
        return facts
    turn = 1 + max((said.turn for said in facts.conversation), default=0)
    said = Message("user", prompt, turn, at, place)
    before = facts.unprocessed_prompt
    waiting = before
    if waits:
        waiting = said if before is None else replace(said, text=f"{before.text}\n\n{prompt}")
    return replace(facts, conversation=(*facts.conversation, said), unprocessed_prompt=waiting)


def _is_of(asked: Prompt, leg: Leg) -> bool:
    """Check whether the prompt was asked in the leg's present conversation.

    A conversation that was left may be cleared.
    """
    return not asked.native_id or not leg.native_id or asked.native_id == leg.native_id


def _has(facts: Facts, asked: Prompt, clean: Callable[[str], str]) -> bool:
    """Check whether the record has the prompt, or an answer younger than it.

    The same words may have been said before: they count as this prompt unless all answers to them are older
    than it.
    """
    wanted, answers = squeeze(asked.text), 0
    for said in reversed(facts.conversation):
        if said.role == "assistant":
            if said.at is not None and said.at > asked.at:
                return True
            answers += said.at is not None
        elif said.at is not None and said.at < asked.at - _HOOK_SLACK:
            return False
        elif wanted in squeeze(clean(said.text)):
            return answers == 0 or said.at is None or said.at >= asked.at
    return False


# Agents' clocks are coarser than ours, and a prompt may be typed while the leg is still said to start.
_CLOCK_SLACK = timedelta(seconds=2)
_EVER = datetime.min.replace(tzinfo=UTC)


class RecordGap(msgspec.Struct, frozen=True):
    """Gap in the predecessor's record: `sentence` tells of it, and is empty if there is none.

    `is_wordless` is whether the leg was asked something that its record does not mention.
    """

    sentence: str = ""
    is_wordless: bool = False


def find_record_gap(facts: Facts, *, agent: str, version: str, leg: Leg) -> RecordGap:
    """Find what the leg's transcript lacks; `version` is the newest version of `agent` known here."""
    # Everything in an adopted conversation was said before its leg, whose program relay did not start.
    since = leg.starting_at - _CLOCK_SLACK if leg.child_pid else _EVER
    within = [said for said in facts.conversation if said.at is None or said.at >= since]
    is_wordless = leg.was_busy and not any(said.role == "user" for said in within)
    newer = f"; {agent} may be newer than {version}, the newest version known here" if version else ""
    if facts.unread:
        return RecordGap(is_wordless=is_wordless)
    if facts.strange_lines:
        how_many = f"{facts.strange_lines} of {facts.lines} lines"
        return RecordGap(f"{how_many} of {agent}'s own record could not be understood{newer}", is_wordless)
    if not is_wordless:
        return RecordGap()
    if not facts.transcript:
        return RecordGap(f"{agent}'s own record of this work was not found{newer}", is_wordless)
    if facts.conversation and not within:
        why = f"{agent} had not yet written what it was last asked into its own record"
        return RecordGap(why, is_wordless)
    return RecordGap(f"{agent}'s own record does not mention what it was last asked{newer}", is_wordless)
