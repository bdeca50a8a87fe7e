"""Remove secrets from an event before it is journalled."""

from collections.abc import Callable
from dataclasses import fields, replace

from agent_relay.domain.events.session import (
    Body,
    PromptSeen,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SessionStopping,
    SessionWoke,
    SignalSeen,
)
from agent_relay.domain.events.work import (
    BudgetNoted,
    ChatBegun,
    HandoffBegun,
    HandoffCancelled,
    HandoffClosed,
    HandoffFailed,
    PacketPublished,
    SessionWaits,
    TurnBegun,
    TurnEnded,
)
from agent_relay.session.turns.chat import LONGEST_MESSAGE, shorten_message

MOST_PROMPT = 8000
"""How many characters of a prompt are journalled."""
_MARGIN = 4000
"""How far beyond a cut secrets are looked for, in characters: no rule knows half of one."""


def count_redacted(body: Body) -> int:
    """Return how many characters `redact_body` searches at most, including what it may skip."""
    if isinstance(body, PromptSeen):
        return min(len(body.text), MOST_PROMPT + _MARGIN)
    values = [getattr(body, field.name) for field in fields(body)]
    texts = [text for value in values for text in (value if isinstance(value, tuple) else (value,))]
    return sum(len(text) for text in texts if isinstance(text, str))


def redact_body(body: Body, *, known: frozenset[str]) -> Body:  # noqa: C901, PLR0911 - one arm an event
    """Return `body` without secrets; `known` are values that are secret wherever they occur."""

    def clean(text: str) -> str:
        return _clean(text, known) if text else text

    def clean_all(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(clean(text) for text in texts)

    match body:
        case SessionCreated() | ChatBegun():
            return replace(body, task=clean(body.task))
        case SignalSeen():
            return replace(body, text=clean(body.text), model=clean(body.model))
        case HandoffBegun():
            return _clean_begun(body, clean, clean_all)
        case PacketPublished():
            return replace(body, lacks=clean(body.lacks))
        case HandoffClosed():
            return replace(body, note=clean(body.note), skipped=clean_all(body.skipped))
        case BudgetNoted():
            return replace(body, text=clean(body.text))
        case SessionRested():
            return replace(body, why=clean(body.why), skipped=clean_all(body.skipped))
        case TurnBegun():
            return replace(body, prompt=clean(body.prompt))
        case PromptSeen():
            return _clean_prompt(body, clean)
        case TurnEnded():
            said = _clean_answer(body.said, clean)
            return replace(body, why=clean(body.why), said=said, refused=clean_all(body.refused))
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


def _clean(text: str, known: frozenset[str]) -> str:
    # Most events hold no words of anybody, and the rules take long to load.
    from agent_relay.redact.text import redact_words

    return redact_words(text, known=known)


def _clean_prompt(body: PromptSeen, clean: Callable[[str], str]) -> PromptSeen:
    """Return the event with a long prompt cut to what a journal keeps, after secrets are removed."""
    searched = body.text[: MOST_PROMPT + _MARGIN]
    beyond = len(body.text) - len(searched)
    text = clean(searched)
    # What was cut before it was searched may end with half a secret.
    kept = (text[:-_MARGIN] if beyond else text)[:MOST_PROMPT]
    return replace(body, text=kept, left_out=body.left_out + beyond + len(text) - len(kept))


def _clean_answer(said: str, clean: Callable[[str], str]) -> str:
    """Return the end of an agent's words, as a chat keeps them, cut after secrets are removed."""
    beyond = len(said) - LONGEST_MESSAGE - _MARGIN
    if beyond <= 0:
        return shorten_message(clean(said))
    # What was cut before it was searched may begin with half a secret.
    return shorten_message(clean(said[beyond:])[_MARGIN:], before=beyond + _MARGIN)


def _clean_begun(
    body: HandoffBegun,
    clean: Callable[[str], str],
    clean_all: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> HandoffBegun:
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
