"""Keep what the people of this leg said: leave out what relay typed and what earlier legs said."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_relay.domain.facts import Facts, Message

_CONTEXT = re.compile(r"<handoff-context\b.*?(?:</handoff-context>|\Z)", re.DOTALL)
_LETTER = re.compile(r"\w")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
# What an agent adds around a file named in a prompt.
_INLINED = re.compile(
    r"^-{2,} (?:Content from referenced files|End of content) -{2,}$|^Content from @.*:$", re.MULTILINE
)
USER_SAID = "the user said:"


@dataclass(frozen=True, slots=True)
class Quotation:
    """One quoted sentence or message, with the clause that gives its reason or outcome."""

    text: str
    said: "Message"
    clause: str = ""


def strip_relay(facts: "Facts", relay_texts: Iterable[str]) -> "tuple[Facts, bool]":
    """Remove what relay typed; also return whether relay's own prompt is still unanswered.

    In the transcript, a delivered packet and the opening typed after it appear as the user's words. Words a
    person added to them stay. `relay_texts` may hold `{placeholders}`.
    """
    patterns = [_compile_text(text) for text in relay_texts if text.strip()]
    conversation: list[Message] = []
    for said in facts.conversation:
        text = _strip(said.text, patterns) if said.role == "user" else said.text
        if text:
            conversation.append(said if text == said.text else replace(said, text=text))
    prompt = facts.unprocessed_prompt
    waits = False
    if prompt is not None:
        text = _strip(prompt.text, patterns)
        waits = text != prompt.text
        prompt = replace(prompt, text=text) if text else None
    return replace(facts, conversation=tuple(conversation), unprocessed_prompt=prompt), waits


def strip_packets(text: str) -> str:
    """Remove the packets from the text."""
    return _CONTEXT.sub("", text).strip()


def _compile_text(text: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in _PLACEHOLDER.split(" ".join(text.split()))]
    return re.compile(r"\S+".join(parts).replace(r"\ ", r"\s+"))


def _strip(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    rest = _CONTEXT.sub("", text)
    for pattern in patterns:
        rest = pattern.sub("", rest)
    if len(rest) == len(text):
        return text
    rest = _INLINED.sub("", rest)
    return rest.strip() if _LETTER.search(rest) else ""


def select_since(facts: "Facts", since: datetime | None) -> "Facts":
    """Keep only the facts from `since` on, and those without a time.

    The transcript of a resumed session repeats earlier legs.
    """
    if since is None:
        return facts
    return replace(
        facts,
        conversation=tuple(one for one in facts.conversation if one.at is None or one.at >= since),
        commands=tuple(one for one in facts.commands if one.at is None or one.at >= since),
        files=tuple(one for one in facts.files if one.at is None or one.at >= since),
        errors=tuple(one for one in facts.errors if one.at is None or one.at >= since),
    )
