"""The last look at an event before it is journalled: nobody's words take a secret along."""

from dataclasses import replace

from agent_relay.domain.event import (
    Body,
    HandoffBegun,
    HandoffFailed,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SessionStopping,
    SessionWoke,
    SignalSeen,
)
from agent_relay.logic.redact import redact_text


def redact_body(body: Body, *, known: frozenset[str]) -> Body:
    """`body` without secrets; `known` are values that are secret wherever they stand."""

    def clean(text: str) -> str:
        return redact_text(text, known=known).text if text else text

    match body:
        case SessionCreated():
            return replace(body, task=clean(body.task))
        case SignalSeen():
            return replace(body, text=clean(body.text), model=clean(body.model))
        case HandoffBegun():
            return replace(
                body,
                why=clean(body.why),
                focus=clean(body.focus),
                skipped=tuple(clean(text) for text in body.skipped),
            )
        case SessionRested():
            return replace(body, why=clean(body.why), skipped=tuple(clean(text) for text in body.skipped))
        case HandoffFailed() | SessionEnded() | SessionStopping() | SessionWoke():
            return replace(body, why=clean(body.why))
        case _:
            return body
