"""Sort what an agent said into decisions, failed attempts and the next intention.

Commit messages that explain a change count as something the agent said.
"""

import re
from collections.abc import Iterator

import msgspec

from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.requests import Quotation, is_rule
from agent_relay.packet.extract.sentences import (
    ARROW,
    CHOICES_HEADING,
    FIRM,
    LENGTH,
    Passage,
    cut_sentences,
    get_phrases,
    is_decision,
    is_failure,
    plain_apostrophes,
    split_passages,
    split_sentences,
    weigh_choice,
    weigh_refusal,
)

_OTHER_HEADING = get_phrases("other-heading")
_QUESTION = get_phrases("question")
_DESIGN_QUESTION = get_phrases("design-question")
_STATUS_QUESTION = get_phrases("status-question")
_CONSENT = get_phrases("consent")
_INTENT = get_phrases("intent")
_QUESTION_MARKS = "?! \t\n"
# Commands that undo work.
_UNDOING = compile_late(
    r"\bgit (?:checkout (?:\S+ )?-- |restore\b|revert\b|reset --hard|stash\b|branch -D|clean -)|\bhg revert\b"
)
_COMMIT = compile_late(r"\bgit\b[^|;&\n]{0,300}?\bcommit\b")
_MESSAGE = compile_late(
    r"\s-(?:-message(?:=|\s+)|[a-z]*m\s*)"
    r"(?:\"\$\(cat <<-?\s*['\"]?(?P<mark>\w+)['\"]?\n(?P<here>.*?)\n\s*(?P=mark)"
    r"|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")",
    re.DOTALL,
)
_TRAILER = compile_late(
    r"^(?:[A-Z][\w-]+-[Bb]y|[\w-]+-Id|Refs?|Fixes|Closes): .*$|^[^\w\n]*Generated with .*$", re.MULTILINE
)
_NAME = 2
_COMMIT_LENGTH = 320
# The most that is read of a command: forged nested here-documents would take for ever.
_COMMAND_LENGTH = 8000


class _AgentMessage(msgspec.Struct, frozen=True):
    """A message of the agent's with its context.

    `asked` is the user's question about the design that it answers, empty if there is none; `is_closing` is
    whether it ended its turn, `is_undone` whether work was undone in that turn.
    """

    said: Message
    asked: str
    is_closing: bool
    is_undone: bool


def _iterate_messages(facts: Facts) -> Iterator[_AgentMessage]:
    """Yield the agent's messages in order."""
    undone = {run.turn for run in facts.commands if "git" in run.command and _UNDOING.search(run.command)}
    roles = [*(said.role for said in facts.conversation), "user"]
    asked = ""
    for said, after in zip(facts.conversation, roles[1:], strict=True):
        if said.role == "user":
            asked = _find_question(said.text)
        else:
            yield _AgentMessage(said, asked, after == "user", said.turn in undone)


def _find_question(text: str) -> str:
    """Return the user's words on one line if they ask about the design or are a mere name, else ""."""
    plain = " ".join(text.split())
    sentences = [plain_apostrophes(sentence) for sentence in split_sentences(text)]
    asks = any(
        _DESIGN_QUESTION.search(one)
        for one in sentences
        if _is_question(one) and not _STATUS_QUESTION.search(one)
    )
    names = len(plain.split()) <= _NAME and not _CONSENT.fullmatch(plain) and not is_rule(plain)
    return plain if asks or names else ""


def _is_question(text: str) -> bool:
    """Check whether `text` begins or ends like a question, in time linear in its length."""
    return bool(_QUESTION.match(text)) or "?" in text[len(text.rstrip(_QUESTION_MARKS)) :]


def _find_commits(facts: Facts) -> list[Quotation]:
    """Find the commit messages that explain a change."""
    found: list[Quotation] = []
    for run in facts.commands:
        text = _read_message(run) if "commit" in run.command and not run.exit_code else ""
        if text:
            found.append(Quotation(text, Message("assistant", text, run.turn, run.at, run.place)))
    return found


def _read_message(run: CommandRun) -> str:
    """Return a commit's message on one line, or an empty string if it explains nothing.

    A message explains if it has a body, or if its subject states a choice.
    """
    found = _COMMIT.search(run.command)
    if found is None:
        return ""
    command = run.command[found.start() :][:_COMMAND_LENGTH]
    parts = [one["here"] or one["single"] or one["double"] or "" for one in _MESSAGE.finditer(command)]
    subject, _, body = _TRAILER.sub("", "\n\n".join(parts)).strip().partition("\n")
    body = " ".join(body.split())
    if not body and weigh_choice(plain_apostrophes(subject)) < FIRM:
        return ""
    mark = "" if subject.endswith((".", ":", "!")) else "."
    return f"{subject}{mark if body else ''} {body}".strip()[:_COMMIT_LENGTH]


_SHORT = 15
_LONGEST_QUOTED_QUESTION = 120
# An answer this short is about the question; of a longer one, only the beginning certainly is.
_ANSWER = 700


class Statements(msgspec.Struct, frozen=True):
    """An agent's choices, and its failed or abandoned attempts, each in the order of the turns."""

    decisions: list[Quotation] = msgspec.field(default_factory=list)
    attempts: list[Quotation] = msgspec.field(default_factory=list)


def sort_statements(facts: Facts) -> Statements:
    """Sort the agent's statements into decisions and failed attempts.

    A sentence that states a decision by its words alone is quoted alone. A passage is weighed by its phrases
    and its position: as the answer to a design question, in a list of choices, at the end of a turn. A short
    answer to a design question is quoted whole, with the question.
    """
    found = Statements()
    for moment in _iterate_messages(facts):
        is_answer = bool(moment.asked) and len(moment.said.text) <= LENGTH
        sure = [] if is_answer else _sort_sentences(moment.said, found)
        _sort_passages(moment, sure, found)
    found.decisions.extend(_find_commits(facts))
    found.decisions.sort(key=lambda spoken: spoken.said.turn)
    return found


def _sort_sentences(said: Message, found: Statements) -> list[str]:
    """Add to `found` the sentences that are decisions or failures by their words alone; return them."""
    sure: list[str] = []
    for sentence in split_sentences(said.text):
        if len(sentence) < _SHORT or sentence.endswith(("?", ":")):
            continue
        plain = plain_apostrophes(sentence)
        if is_decision(plain):
            found.decisions.append(Quotation(sentence, said))
        elif is_failure(plain):
            found.attempts.append(Quotation(sentence, said))
        else:
            continue
        sure.append(sentence)
    return sure


def _sort_passages(moment: _AgentMessage, sure: list[str], found: Statements) -> None:
    """Add to `found` what the message says besides the sentences in `sure`."""
    said = moment.said
    question = moment.asked if len(moment.asked) <= _LONGEST_QUOTED_QUESTION else ""
    asks = _is_question(moment.asked)
    for at, passage in enumerate(split_passages(said.text, sure)):
        plain = plain_apostrophes(passage.text)
        answers = bool(moment.asked) and (at == 0 or len(said.text) <= _ANSWER)
        more = _weigh_place(passage)
        is_short = asks and len(said.text) <= LENGTH
        more += (3 if is_short else 1 + asks) * answers
        parts = [plain] if more > 0 else [plain_apostrophes(part) for part in cut_sentences(passage.text)]
        choice, refusal = max(map(weigh_choice, parts)), max(map(weigh_refusal, parts))
        choice = choice + more if choice or is_short else 0
        refusal = refusal + more + 2 * moment.is_undone if refusal else 0
        if max(choice, refusal) < (FIRM if moment.is_closing or answers else FIRM + 1):
            continue
        text = f"{question}{ARROW}{passage.text}" if answers and question else passage.text
        question = ""
        (found.attempts if refusal > choice else found.decisions).append(Quotation(text, said))


def _weigh_place(passage: Passage) -> int:
    if not passage.lead:
        return 0
    return 2 * bool(CHOICES_HEADING.search(passage.lead)) - 2 * bool(_OTHER_HEADING.search(passage.lead))


def find_intent(facts: Facts) -> str:
    """Return the last sentence of the agent's last message that announces its next step, else ""."""
    last = next((said for said in reversed(facts.conversation) if said.role == "assistant"), None)
    if last is None:
        return ""
    found = [
        sentence for sentence in split_sentences(last.text) if _INTENT.match(plain_apostrophes(sentence))
    ]
    return found[-1] if found else ""
