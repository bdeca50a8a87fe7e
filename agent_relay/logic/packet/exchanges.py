"""What passes between people and agents: questions, answers, and work handed in or taken back."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agent_relay.domain.facts import CommandRun, Facts, Said
from agent_relay.logic.packet.phrases import CONSENT, fold
from agent_relay.logic.packet.sentences import split_sentences
from agent_relay.logic.packet.speech import Spoken
from agent_relay.logic.packet.surroundings import DESIGN_QUESTION, PROCEDURE, STATUS, UNDOING, is_question
from agent_relay.logic.packet.weighing import ARROW, FIRM, weigh_choice
from agent_relay.logic.packet.wishes import is_rule
from agent_relay.logic.patterns import compile_late

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
_ALTERNATIVES = compile_late(r"\bor\b|\bwhich\b|\b[ab]\)", re.IGNORECASE)
_REPLY = 160
_QUESTION = 240
_BARE = 48
_NAME = 2
_COMMIT_LENGTH = 320
# Of a command no more is read: forged here-documents in one another would take for ever.
_COMMAND_LENGTH = 8000


@dataclass(frozen=True, slots=True)
class Moment:
    """A message of the agent's where it stands.

    `asked` is the user's question about the design it answers, empty where there is none; `is_closing`
    is whether it ended its turn, `is_undone` whether work was taken back in that turn.
    """

    said: Said
    asked: str
    is_closing: bool
    is_undone: bool


def iterate_moments(facts: Facts) -> Iterator[Moment]:
    """The agent's messages in order."""
    undone = {run.turn for run in facts.commands if "git" in run.command and UNDOING.search(run.command)}
    roles = [*(said.role for said in facts.conversation), "user"]
    asked = ""
    for said, after in zip(facts.conversation, roles[1:], strict=True):
        if said.role == "user":
            asked = _find_question(said.text)
        else:
            yield Moment(said, asked, after == "user", said.turn in undone)


def _find_question(text: str) -> str:
    """The user's words where they ask how it should be, or only name something, on one line."""
    plain = " ".join(text.split())
    sentences = [fold(sentence) for sentence in split_sentences(text)]
    asks = any(
        DESIGN_QUESTION.search(one) for one in sentences if is_question(one) and not STATUS.search(one)
    )
    names = len(plain.split()) <= _NAME and not CONSENT.fullmatch(plain) and not is_rule(plain)
    return plain if asks or names else ""


def find_replies(facts: Facts) -> list[Spoken]:
    """What an agent asked and the user answered in a few words, as one quotation of both."""
    found: list[Spoken] = []
    for said, after in pairwise(facts.conversation):
        if (said.role, after.role) != ("assistant", "user"):
            continue
        answer = " ".join(after.text.split())
        question = _find_last_question(said.text)
        if question and len(answer) <= _REPLY and _settles(question, answer):
            found.append(Spoken(f"{question}{ARROW}{answer}", after))
    return found


def _find_last_question(text: str) -> str:
    """The question a message ends with; a bare one with the sentence before it."""
    sentences = split_sentences(text)
    if not sentences or not sentences[-1].endswith("?"):
        return ""
    question = sentences[-1]
    if len(question) <= _BARE and len(sentences) > 1:
        question = f"{sentences[-2]} {question}"
    return question if len(question) <= _QUESTION else ""


def _settles(question: str, answer: str) -> bool:
    """Whether an answer settles more than that the work goes on."""
    if answer.endswith("?"):
        return False
    if _ALTERNATIVES.search(question):
        return True
    return not PROCEDURE.search(question) and bool(CONSENT.match(answer) or len(answer.split()) > 1)


def find_commits(facts: Facts) -> list[Spoken]:
    """The messages of commits that explain themselves."""
    found: list[Spoken] = []
    for run in facts.commands:
        text = _read_message(run) if "commit" in run.command and not run.exit_code else ""
        if text:
            found.append(Spoken(text, Said("assistant", text, run.turn, run.at, run.place)))
    return found


def _read_message(run: CommandRun) -> str:
    """A commit's message on one line: with its body, or alone where its words tell a choice; else empty."""
    found = _COMMIT.search(run.command)
    if found is None:
        return ""
    command = run.command[found.start() :][:_COMMAND_LENGTH]
    parts = [one["here"] or one["single"] or one["double"] or "" for one in _MESSAGE.finditer(command)]
    subject, _, body = _TRAILER.sub("", "\n\n".join(parts)).strip().partition("\n")
    body = " ".join(body.split())
    if not body and weigh_choice(fold(subject)) < FIRM:
        return ""
    mark = "" if subject.endswith((".", ":", "!")) else "."
    return f"{subject}{mark if body else ''} {body}".strip()[:_COMMIT_LENGTH]
