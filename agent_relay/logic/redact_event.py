"""The last look at an event before it is journalled: nobody's words take a secret along."""

from collections.abc import Callable
from dataclasses import replace

from agent_relay.domain.event import (
    Body,
    BudgetNoted,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SessionStopping,
    SessionWoke,
    SignalSeen,
)
from agent_relay.domain.handoff_event import HandoffBegun, HandoffCancelled, HandoffClosed, HandoffFailed
from agent_relay.domain.turn_event import ChatBegun, SessionWaits, TurnBegun, TurnEnded
from agent_relay.logic.redact import redact_text


def redact_body(body: Body, *, known: frozenset[str]) -> Body:  # noqa: C901, PLR0911 - one arm an event
    """`body` without secrets; `known` are values that are secret wherever they stand."""

    def clean(text: str) -> str:
        return redact_text(text, known=known).text if text else text

    def clean_all(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(clean(text) for text in texts)

    match body:
        case SessionCreated() | ChatBegun():
            return replace(body, task=clean(body.task))
        case SignalSeen():
            return replace(body, text=clean(body.text), model=clean(body.model))
        case HandoffBegun():
            return _clean_begun(body, clean)
        case HandoffClosed():
            return replace(body, note=clean(body.note), skipped=clean_all(body.skipped))
        case BudgetNoted():
            return replace(body, text=clean(body.text))
        case SessionRested():
            return replace(body, why=clean(body.why), skipped=clean_all(body.skipped))
        case TurnBegun():
            return replace(body, prompt=clean(body.prompt))
        case TurnEnded():
            return replace(body, why=clean(body.why), said=clean(body.said))
        case (
            HandoffCancelled()
            | HandoffFailed()
            | SessionEnded()
            | SessionStopping()
            | SessionWaits()
            | SessionWoke()
        ):
            return replace(body, why=clean(body.why))
        case _:
            return body


def _clean_begun(body: HandoffBegun, clean: Callable[[str], str]) -> HandoffBegun:
    def clean_all(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(clean(text) for text in texts)

    return replace(
        body,
        why=clean(body.why),
        focus=clean(body.focus),
        skipped=clean_all(body.skipped),
        deliverables=clean_all(body.deliverables),
        criteria=clean_all(body.criteria),
        constraints=clean_all(body.constraints),
        questions=clean_all(body.questions),
    )
