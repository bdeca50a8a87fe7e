"""Score a text about a case: what it says, and what it should not say."""

import html
import re
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.fidelity.talk import list_fragments
from tests.fidelity.truths import Question, Trap, Truth

NEAR = 700
"""Characters within which the patterns of one group have to stand."""
CLOSE = 300
"""Characters within which words make a trap harmless."""
_APART = "\n" * (NEAR + CLOSE)
_SETTLED = re.compile(r"settled|decided|decisions", re.IGNORECASE)
_MARKED = re.compile(r"\((?:\w+, )?turn \d+, settled")
_SHOWN = slice(240, 420)

Lookup = Callable[[Question], str]
"""Returns what a successor finds, besides the packet, by looking a question up."""


@dataclass(frozen=True, slots=True)
class Score:
    """How a text did. `grades` are 1, ½ or 0 in the order of the questions.

    `misleading` says what misled and where, `leaked` lists secrets; `talk` counts the characters of lines
    that hold ordinary talk; `settled` are the lines under a heading that calls them settled or decided, and
    `settled_untrue` counts those of them that are ordinary talk or a trap.
    """

    truth: Truth
    grades: tuple[float, ...]
    misleading: tuple[tuple[str, str], ...]
    leaked: tuple[str, ...]
    characters: int
    talk: int
    settled: tuple[str, ...]
    settled_untrue: int

    @property
    def full(self) -> int:
        """Questions answered in full."""
        return sum(grade == 1 for grade in self.grades)

    @property
    def part(self) -> int:
        """Questions answered in part."""
        return sum(grade == 0.5 for grade in self.grades)

    @property
    def questions(self) -> int:
        """All questions."""
        return len(self.grades)


def score_text(text: str, truth: Truth, *, document: str = "", lookup: Lookup | None = None) -> Score:
    """Score `text`, whoever wrote it; secrets are looked for in `document`, its other form, as well.

    With `lookup` a question may be answered by the text and what is looked up together.
    """
    settled = list_settled(text)
    return Score(
        truth,
        tuple(_grade_with(text, one, lookup) for one in truth.questions),
        tuple(find_misleading(text, truth.traps)),
        tuple(find_leaked(f"{text}\n{document}", truth.secrets)),
        len(text),
        sum(len(line) + 1 for line in text.split("\n") if is_talk(line)),
        tuple(settled),
        sum(is_talk(line) or bool(find_misleading(line, truth.traps)) for line in settled),
    )


def _grade_with(text: str, question: Question, lookup: Lookup | None) -> float:
    """The grade of the text; where that is not full, with what was looked up far enough below it."""
    given = grade(text, question)
    return given if given == 1 or lookup is None else grade(text + _APART + lookup(question), question)


def grade(text: str, question: Question) -> float:
    """1 where every group of patterns is found, ½ where a part is, else 0."""
    found = [is_near(text, group) for group in question.full]
    if all(found):
        return 1
    if question.part and re.search(question.part, text, re.MULTILINE):
        return 0.5
    return 0.5 if any(found) else 0


def is_near(text: str, patterns: Iterable[str]) -> bool:
    """Whether all patterns are found, each near one place of the first."""
    first, *others = [[found.start() for found in re.finditer(one, text, re.MULTILINE)] for one in patterns]
    return any(all(any(abs(place - at) <= NEAR for at in other) for other in others) for place in first)


def find_misleading(text: str, traps: Iterable[Trap]) -> list[tuple[str, str]]:
    """Each trap that occurs without the words that make it harmless, and the text around it."""
    found: list[tuple[str, str]] = []
    for trap in traps:
        for match in re.finditer(trap.pattern, text, re.MULTILINE):
            around = text[max(0, match.start() - CLOSE) : match.end() + CLOSE]
            if not trap.unless or not re.search(trap.unless, around):
                found.append((trap.what, " ".join(around[_SHOWN].split("\n"))))
                break
    return found


def find_leaked(text: str, secrets: Iterable[str]) -> list[str]:
    """The secrets that stand in `text`, also as they read once their escapes are undone."""
    forms = {secret: (secret, urllib.parse.unquote(secret), html.escape(secret)) for secret in secrets}
    return [secret for secret, ways in forms.items() if any(way in text for way in ways)]


def is_talk(line: str) -> bool:
    """Whether a line holds ordinary talk."""
    return any(fragment in line for fragment in list_fragments())


def list_settled(text: str) -> list[str]:
    """The items that their heading or their own mark calls settled, each with what is indented below it."""
    items: list[tuple[bool, str]] = []
    is_settled = False
    for line in text.split("\n"):
        if line.startswith("#"):
            is_settled = bool(_SETTLED.search(line))
        elif line.startswith((" ", "\t")) and items:
            items[-1] = (items[-1][0], f"{items[-1][1]}\n{line}")
        elif line.strip():
            items.append((is_settled, line))
    return [item for under_heading, item in items if under_heading or _MARKED.search(item)]


@dataclass(frozen=True, slots=True)
class Total:
    """Scores of several texts together."""

    scores: tuple[Score, ...]

    @property
    def recall(self) -> float:
        """The share of questions answered in full."""
        return sum(one.full for one in self.scores) / max(1, sum(one.questions for one in self.scores))

    @property
    def recall_with_parts(self) -> float:
        """The same, with half a point for a part."""
        points = sum(sum(one.grades) for one in self.scores)
        return points / max(1, sum(one.questions for one in self.scores))

    @property
    def misleading(self) -> float:
        """Misleading statements in one session."""
        return sum(len(one.misleading) for one in self.scores) / len(self.scores)

    @property
    def leaks(self) -> int:
        """Secrets that stand in a text."""
        return sum(len(one.leaked) for one in self.scores)

    @property
    def talk(self) -> float:
        """The share of characters that are ordinary talk."""
        return sum(one.talk for one in self.scores) / max(1, sum(one.characters for one in self.scores))

    @property
    def characters(self) -> int:
        """The length of the longest text."""
        return max(one.characters for one in self.scores)

    @property
    def settled(self) -> int:
        """Lines called settled or decided."""
        return sum(len(one.settled) for one in self.scores)

    @property
    def settled_untrue(self) -> float:
        """The share of them that is ordinary talk or misleads, as far as patterns tell."""
        return sum(one.settled_untrue for one in self.scores) / max(1, self.settled)

    def count_kinds(self) -> dict[str, tuple[int, int]]:
        """By kind of question: how many were answered in full, and how many there are."""
        full: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for score in self.scores:
            for question, given in zip(score.truth.questions, score.grades, strict=True):
                asked[question.kind] += 1
                full[question.kind] += given == 1
        return {kind: (full[kind], asked[kind]) for kind in sorted(asked)}
