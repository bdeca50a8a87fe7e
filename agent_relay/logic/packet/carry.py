"""Merges what a predecessor's packet says with what was found since, without saying anything twice."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from agent_relay.domain.facts import Facts, Said
from agent_relay.domain.packet import Attempt, Decision, PlanStep, Provenance, Quote
from agent_relay.logic.packet.sentences import is_alike, normalise
from agent_relay.logic.packet.speech import Spoken
from agent_relay.logic.packet.weighing import weigh
from agent_relay.logic.packet.wishes import weigh_rule

_EntryT = TypeVar("_EntryT")

_CONSTRAINTS = 40
_DECISIONS = 30
_ATTEMPTS = 30
_REMARKS = 24
_TASK_LENGTH = 12_000
_REQUEST_LENGTH = 2_000
_REQUESTS = 8
_THEN = "\n\nThen: "


def tell_source(agent: str, said: Said) -> Provenance:
    """Where words stand in their transcript."""
    return Provenance(agent=agent, transcript=said.place, turn=said.turn, at=said.at)


def build_task(before: str | None, requests: Sequence[Said], *, waiting: str = "") -> str | None:
    """The first request, and below it what the user asked for later; `waiting` has its own place.

    Words are kept verbatim; of overlong ones the middle is left out, and said so.
    """
    task = before
    later = list(requests)
    if task is None and later:
        task = _cut(later.pop(0).text.strip(), _TASK_LENGTH)
    if task is None:
        return None
    fresh = [said.text.strip() for said in later]
    fresh = [text for text in fresh if text not in task and text not in waiting]
    for text in fresh[-_REQUESTS:]:
        task += _THEN + _cut(text, _REQUEST_LENGTH)
    return _cut(task, _TASK_LENGTH)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def merge_constraints(before: Iterable[Quote], found: Iterable[Spoken], agent: str) -> tuple[Quote, ...]:
    """The rules so far and the new; of too many those that hold throughout, the oldest and the newest."""
    quotes = list(before)
    known = {normalise(quote.text) for quote in quotes}
    for spoken in found:
        key = normalise(spoken.text)
        if key not in known:
            known.add(key)
            quotes.append(Quote(text=spoken.text, source=tell_source(agent, spoken.said)))
    last = len(quotes) - 1
    ranks = [(-weigh_rule(quote.text), min(at, last - at)) for at, quote in enumerate(quotes)]
    return _keep(quotes, ranks, _CONSTRAINTS)


def _keep(entries: Sequence[_EntryT], ranks: Sequence[tuple[int, int]], limit: int) -> tuple[_EntryT, ...]:
    """The `limit` entries of the lowest ranks, in their order."""
    chosen = sorted(range(len(entries)), key=ranks.__getitem__)[:limit]
    return tuple(entries[at] for at in sorted(chosen))


def _keep_told(entries: Sequence[_EntryT], texts: Sequence[str], limit: int) -> tuple[_EntryT, ...]:
    """The `limit` entries of the most weight, the newest first among equals; what is said twice once."""
    order = sorted(range(len(entries)), key=lambda at: (-weigh(texts[at]), -at))
    chosen: list[int] = []
    for at in order:
        if len(chosen) < limit and not any(is_alike(texts[at], texts[other]) for other in chosen):
            chosen.append(at)
    return tuple(entries[at] for at in sorted(chosen))


def merge_decisions(before: Iterable[Decision], found: Iterable[Spoken], agent: str) -> tuple[Decision, ...]:
    """The decisions so far, with their ids, and the new; of too many the firmest, then the newest."""
    decisions = list(before)
    known = {normalise(decision.summary) for decision in decisions}
    number = max((_number(decision.id) for decision in decisions), default=0)
    for spoken in found:
        key = normalise(spoken.text)
        if key in known:
            continue
        known.add(key)
        number += 1
        source = tell_source(agent, spoken.said)
        decisions.append(Decision(id=f"D{number}", summary=spoken.text, why=spoken.clause, source=source))
    return _keep_told(decisions, [one.summary for one in decisions], _DECISIONS)


def _number(name: str) -> int:
    return int(name[1:]) if name[1:].isascii() and name[1:].isdigit() else 0


def merge_attempts(
    before: Iterable[Attempt], found: Iterable[Spoken], failures: Iterable[Attempt], agent: str
) -> tuple[Attempt, ...]:
    """What was tried so far, and since."""
    attempts = list(before)
    spoken_of = [
        Attempt(summary=one.text, outcome=one.clause, source=tell_source(agent, one.said)) for one in found
    ]
    known = {normalise(attempt.summary) for attempt in attempts}
    for attempt in [*spoken_of, *failures]:
        key = normalise(attempt.summary)
        if key not in known:
            known.add(key)
            attempts.append(attempt)
    return _keep_told(attempts, [one.summary for one in attempts], _ATTEMPTS)


def merge_remarks(before: Iterable[Quote], found: Iterable[Spoken], agent: str) -> tuple[Quote, ...]:
    """What else was told, of too much that which says most."""
    quotes = [*before, *(Quote(text=one.text, source=tell_source(agent, one.said)) for one in found)]
    return _keep_told(quotes, [quote.text for quote in quotes], _REMARKS)


def merge_plan(before: Sequence[PlanStep], facts: Facts, agent: str) -> tuple[PlanStep, ...]:
    """The agent's own plan, and the open steps of its predecessor's that it does not name."""
    if not facts.plan:
        return tuple(before)
    steps = [
        PlanStep(
            text=step.text,
            status=step.status,
            source=Provenance(agent=agent, transcript=facts.transcript, turn=step.turn or None),
        )
        for step in facts.plan
    ]
    left = [
        step
        for step in before
        if step.status in ("pending", "in_progress")
        and not any(is_alike(step.text, one.text) for one in steps)
    ]
    return (*steps, *left)
