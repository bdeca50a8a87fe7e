"""What was said, sorted: requests, constraints, decisions, attempts, and what relay itself typed."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from agent_relay.domain.facts import Facts, Said
from agent_relay.logic.packet.phrases import (
    APPROVAL,
    CHOICE,
    CONSENT,
    CONTRAST,
    CORRECTION,
    DECISION,
    FAILURE,
    INTENT,
    LABEL,
    MILD,
    OUTCOME,
    POLITE,
    PURPOSE,
    REASON,
    REJECTION,
    RULE,
    STANDING,
    STATEMENT,
    fold,
)
from agent_relay.logic.packet.sentences import split_sentences

_CONTEXT = re.compile(r"<handoff-context\b.*?(?:</handoff-context>|\Z)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
# What an agent adds around a file named in a prompt.
_INLINED = re.compile(
    r"^-{2,} (?:Content from referenced files|End of content) -{2,}$|^Content from @.*:$", re.MULTILINE
)
TOLD = "the user said:"
_SHORT = 15
_CORRECTION_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Spoken:
    """One quoted sentence or message, with the clause that gives its reason or outcome."""

    text: str
    said: Said
    clause: str = ""


def strip_relay(facts: Facts, relay_texts: Iterable[str]) -> tuple[Facts, bool]:
    """The facts without what relay typed, and whether relay's own prompt is still unanswered.

    A delivered packet and the opening typed after it stand in the transcript as the user's words. Words
    a person added to them stay. `relay_texts` may hold `{placeholders}`.
    """
    patterns = [_compile_text(text) for text in relay_texts if text.strip()]
    conversation: list[Said] = []
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
    return rest.strip() if re.search(r"\w", rest) else ""


def select_since(facts: Facts, since: datetime | None) -> Facts:
    """The facts from `since` on; what carries no time is kept. A resumed session repeats old legs."""
    if since is None:
        return facts
    return replace(
        facts,
        conversation=tuple(one for one in facts.conversation if one.at is None or one.at >= since),
        commands=tuple(one for one in facts.commands if one.at is None or one.at >= since),
        files=tuple(one for one in facts.files if one.at is None or one.at >= since),
        errors=tuple(one for one in facts.errors if one.at is None or one.at >= since),
    )


def find_requests(facts: Facts, *, has_task: bool = False) -> list[Said]:
    """The user's messages that ask for something: neither mere consent nor mere rules.

    Without a task so far the first one counts whatever it is: it is all there is.
    """
    found: list[Said] = []
    for said in facts.conversation:
        if said.role != "user" or CONSENT.fullmatch(said.text.strip()):
            continue
        sentences = split_sentences(said.text)
        is_first = not found and not has_task
        if is_first or not sentences or not all(map(is_rule, sentences)):
            found.append(said)
    if found or has_task:
        return found
    return [said for said in facts.conversation if said.role == "user"][:1]


def is_rule(sentence: str) -> bool:
    """Whether a sentence of the user's is a rule or a correction, not a question."""
    plain = fold(sentence)
    if plain.endswith("?") and not POLITE.match(plain):
        return False
    return bool(RULE.search(plain) or STANDING.search(plain) or CORRECTION.match(plain))


def weigh_rule(text: str) -> int:
    """How much one of the user's rules is missed: 2 for what holds throughout and for a contradiction."""
    plain = fold(text)
    if STANDING.search(plain) or (CORRECTION.match(plain) and not MILD.match(plain)):
        return 2
    if _is_statement(plain):
        return 2 if CONTRAST.search(plain) else 1
    return 0


def find_constraints(facts: Facts) -> list[Spoken]:
    """The user's rules and corrections, verbatim; a short correction is quoted whole."""
    found: list[Spoken] = []
    for said in facts.conversation:
        if said.role != "user":
            continue
        text = said.text.strip()
        if len(text) <= _CORRECTION_LENGTH and said.turn > 1 and _is_correction(text):
            found.append(Spoken(" ".join(text.split()), said))
        else:
            found.extend(Spoken(sentence, said) for sentence in split_sentences(text) if is_rule(sentence))
    for error in facts.errors:
        _, told, words = error.text.partition(TOLD)
        if told and words.strip():
            said = Said("user", words.strip(), error.turn, error.at, error.place)
            found.append(Spoken(words.strip(), said))
    return found


def _is_correction(text: str) -> bool:
    plain = fold(text)
    return not plain.endswith("?") and bool(CORRECTION.match(plain) or _is_statement(plain))


def _is_statement(plain: str) -> bool:
    """Whether the user states something, other than that it is well so."""
    return bool(STATEMENT.match(plain)) and not APPROVAL.search(plain)


def find_decisions(facts: Facts) -> list[Spoken]:
    """What the agent settled, with the reason it gave in the same sentence or the next."""
    return [
        _explain(said, sentence, after, REASON)
        for said, sentence, after in _iterate_statements(facts)
        if is_decision(fold(sentence))
    ]


def is_decision(plain: str) -> bool:
    """Whether a folded sentence tells of something settled; what was given up is no decision."""
    if CHOICE.search(plain):
        label = LABEL.match(plain)
        return not REJECTION.search(plain) or bool(label and CHOICE.match(label[0]))
    return bool(DECISION.search(plain) or PURPOSE.search(plain)) and not is_failure(plain)


def is_failure(plain: str) -> bool:
    """Whether a folded sentence tells of something tried in vain."""
    return bool(REJECTION.search(plain) or FAILURE.search(plain))


def find_attempts(facts: Facts) -> list[Spoken]:
    """What the agent says it tried in vain, with the outcome it named there or in the next sentence."""
    return [
        _explain(said, sentence, after, OUTCOME)
        for said, sentence, after in _iterate_statements(facts)
        if is_failure(fold(sentence)) and not is_decision(fold(sentence))
    ]


def _explain(said: Said, sentence: str, after: str, clause: re.Pattern[str]) -> Spoken:
    """The sentence with its clause; without one the next sentence is it, unless it says something new."""
    label = LABEL.match(sentence)
    found = clause.search(sentence, label.end() if label else 0)
    words = next((words for words in found.groups() if words), "") if found else ""
    plain = fold(after)
    is_new = INTENT.match(plain) or is_decision(plain) or is_failure(plain)
    if weigh(sentence) > 0 and not words and after and not is_new:
        return Spoken(sentence, said, after)
    return Spoken(sentence, said, words)


def weigh(text: str) -> int:
    """How much a statement of an agent's is missed: 2 for a choice or a rejection, 1 for a purpose."""
    plain = fold(text)
    if CHOICE.search(plain) or REJECTION.search(plain):
        return 2
    return 1 if PURPOSE.search(plain) else 0


def find_intent(facts: Facts) -> str:
    """The agent's last statement of what it is about to do, empty where it made none since."""
    last = next((said for said in reversed(facts.conversation) if said.role == "assistant"), None)
    if last is None:
        return ""
    found = [sentence for sentence in split_sentences(last.text) if INTENT.match(fold(sentence))]
    return found[-1] if found else ""


def _iterate_statements(facts: Facts) -> Iterable[tuple[Said, str, str]]:
    """What the agent said, sentence by sentence, each with the one after it."""
    for said in facts.conversation:
        if said.role == "assistant":
            sentences = [*split_sentences(said.text), ""]
            for sentence, after in pairwise(sentences):
                if len(sentence) >= _SHORT and not sentence.endswith("?"):
                    yield said, sentence, after
