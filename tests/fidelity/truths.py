"""The truth about a case: questions with their answers, traps, secrets.

One a line, fields apart by ` | `:

  Q kind | question | answer | patterns: `&&` near each other, `;;` separate groups | pattern for a part of it
  X what a packet must not say | pattern | pattern that makes it harmless where it is near
  S secret, which may be given in pieces by ` + `, so that no scanner takes the file for a leak
"""

import re
from dataclasses import dataclass

_FIELDS = re.compile(r" \|(?: |$)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question a successor may be asked. All patterns of each group of `full` answer it."""

    kind: str
    question: str
    answer: str
    full: tuple[tuple[str, ...], ...]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Trap:
    """A pattern that misleads unless `unless` occurs close by."""

    what: str
    pattern: str
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    """The questions, traps and secrets of one case."""

    questions: tuple[Question, ...]
    traps: tuple[Trap, ...] = ()
    secrets: tuple[str, ...] = ()


def load_truth(path: str) -> Truth:
    """The truth in the file at `path`."""
    with open(path, encoding="utf-8") as file:
        return parse_truth(file.read())


def parse_truth(text: str) -> Truth:
    """The truth in `text`; raises ValueError for a line with too few fields or an invalid pattern."""
    questions: list[Question] = []
    traps: list[Trap] = []
    secrets: list[str] = []
    for line in text.split("\n"):
        fields = [field.strip() for field in _FIELDS.split(line[2:])]
        match line[:2]:
            case "Q ":
                questions.append(_read_question(line, fields))
            case "X ":
                what, pattern, *unless = fields
                traps.append(Trap(what, _check(pattern), _check(unless[0]) if unless else ""))
            case "S ":
                secrets.append("".join(line[2:].strip().split(" + ")))
            case _:
                pass
    return Truth(tuple(questions), tuple(traps), tuple(secrets))


def _read_question(line: str, fields: list[str]) -> Question:
    if len(fields) < 4:
        raise ValueError(f"a question has a kind, words, an answer and patterns: {line}")
    kind, question, answer, full, *part = fields
    groups = tuple(tuple(_check(one.strip()) for one in group.split(" && ")) for group in full.split(" ;; "))
    return Question(kind, question, answer, groups, _check(part[0]) if part else "")


def _check(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from error
    return pattern
