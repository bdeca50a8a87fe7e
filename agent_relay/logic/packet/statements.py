"""What agents said, sorted: what was settled, what was tried in vain, what else was told, what is next."""

import re
from dataclasses import dataclass, field
from itertools import pairwise

from agent_relay.domain.facts import Facts, Said
from agent_relay.logic.packet.exchanges import Moment, find_commits, find_replies, iterate_moments
from agent_relay.logic.packet.passages import LENGTH, Passage, split_passages
from agent_relay.logic.packet.phrases import INTENT, LABEL, OUTCOME, REASON, fold
from agent_relay.logic.packet.sentences import cut_sentences, split_sentences
from agent_relay.logic.packet.speech import Spoken
from agent_relay.logic.packet.surroundings import BAD_LEAD, GOOD_LEAD, is_question
from agent_relay.logic.packet.weighing import (
    ARROW,
    FIRM,
    is_decision,
    is_failure,
    weigh,
    weigh_choice,
    weigh_refusal,
)

_SHORT = 15
_QUESTION = 120
# An answer this short is about what was asked; of a longer one only its beginning surely is.
_ANSWER = 700
_REMARK = 2


@dataclass(frozen=True, slots=True)
class Statements:
    """Quotations in the order they were made. `remarks` ended a turn and are neither of the others."""

    decisions: list[Spoken] = field(default_factory=list)
    attempts: list[Spoken] = field(default_factory=list)
    remarks: list[Spoken] = field(default_factory=list)


def sort_statements(facts: Facts) -> Statements:
    """What the agent settled, tried in vain and told, with the clause that gives its reason or outcome.

    A sentence that says by its words what it is, is quoted alone. A passage is weighed by its signs and by
    where it stands: as the answer to a question about the design, in a list of choices, at a turn's end.
    A short answer to such a question is quoted whole, with the question.
    """
    found = Statements()
    for moment in iterate_moments(facts):
        is_answer = bool(moment.asked) and len(moment.said.text) <= LENGTH
        sure = [] if is_answer else _sort_sentences(moment.said, found)
        _sort_passages(moment, sure, found)
    found.decisions.extend(find_replies(facts))
    found.decisions.extend(find_commits(facts))
    found.decisions.sort(key=lambda spoken: spoken.said.turn)
    return found


def _sort_sentences(said: Said, found: Statements) -> list[str]:
    """The sentences that were sorted by their words alone."""
    sure: list[str] = []
    for sentence, after in pairwise([*split_sentences(said.text), ""]):
        if len(sentence) < _SHORT or sentence.endswith(("?", ":")):
            continue
        plain = fold(sentence)
        if is_decision(plain):
            found.decisions.append(_explain(said, sentence, after, REASON))
        elif is_failure(plain):
            found.attempts.append(_explain(said, sentence, after, OUTCOME))
        else:
            continue
        sure.append(sentence)
    return sure


def _explain(said: Said, sentence: str, after: str, clause: re.Pattern[str]) -> Spoken:
    """The sentence with its clause; without one the next sentence is it, unless it says something new."""
    label = LABEL.match(sentence)
    found = clause.search(sentence, label.end() if label else 0)
    words = next((words for words in found.groups() if words), "") if found else ""
    plain = fold(after)
    is_new = INTENT.match(plain) or is_decision(plain) or is_failure(plain)
    if not words and after and not is_new:
        return Spoken(sentence, said, after)
    return Spoken(sentence, said, words)


def _sort_passages(moment: Moment, sure: list[str], found: Statements) -> None:
    """Add what the message says besides the sentences that are `sure`."""
    said = moment.said
    question = moment.asked if len(moment.asked) <= _QUESTION else ""
    asks = is_question(moment.asked)
    for at, passage in enumerate(split_passages(said.text, sure)):
        plain = fold(passage.text)
        answers = bool(moment.asked) and (at == 0 or len(said.text) <= _ANSWER)
        more = _weigh_place(passage)
        is_short = asks and len(said.text) <= LENGTH
        more += (3 if is_short else 1 + asks) * answers
        parts = [plain] if more > 0 else [fold(part) for part in cut_sentences(passage.text)]
        choice, refusal = max(map(weigh_choice, parts)), max(map(weigh_refusal, parts))
        choice = choice + more if choice or is_short else 0
        refusal = refusal + more + 2 * moment.is_undone if refusal else 0
        if max(choice, refusal) < (FIRM if moment.is_closing or answers else FIRM + 1):
            if moment.is_closing and weigh(plain) + more >= _REMARK:
                found.remarks.append(Spoken(passage.text, said))
            continue
        text = f"{question}{ARROW}{passage.text}" if answers and question else passage.text
        question = ""
        (found.attempts if refusal > choice else found.decisions).append(Spoken(text, said))


def _weigh_place(passage: Passage) -> int:
    if not passage.lead:
        return 0
    return 2 * bool(GOOD_LEAD.search(passage.lead)) - 2 * bool(BAD_LEAD.search(passage.lead))


def find_decisions(facts: Facts) -> list[Spoken]:
    """What the agent settled."""
    return sort_statements(facts).decisions


def find_attempts(facts: Facts) -> list[Spoken]:
    """What the agent says it tried in vain."""
    return sort_statements(facts).attempts


def find_intent(facts: Facts) -> str:
    """The agent's last statement of what it is about to do, empty where it made none since."""
    last = next((said for said in reversed(facts.conversation) if said.role == "assistant"), None)
    if last is None:
        return ""
    found = [sentence for sentence in split_sentences(last.text) if INTENT.match(fold(sentence))]
    return found[-1] if found else ""
