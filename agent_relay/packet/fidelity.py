"""Measure how faithful a packet is: planted facts it keeps, planted secrets it leaks, and its size."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field

from agent_relay.domain.documents.document import Document, Strict
from agent_relay.packet.extract.phrases import plain_apostrophes

Kind = Literal[
    "constraint",
    "decision",
    "rejected",
    "correction",
    "todo_done",
    "todo_open",
    "error",
    "prompt",
]


class PlantedFact(Strict):
    """One fact. A packet that keeps it holds every text of `says`, however lines are broken.

    If `beside` is given, one of its texts is on the same line as the first of `says`: a step of a plan is
    only kept with its status.
    """

    kind: Kind
    says: tuple[str, ...] = Field(min_length=1)
    beside: tuple[str, ...] = ()


class PlantedSecret(Strict):
    """One secret, of which a packet may hold no part long enough to be of use.

    `text` may be given in pieces, so that no scanner takes a file of made-up secrets for a leak.
    """

    kind: str
    text: str | tuple[str, ...] = Field(min_length=1)

    @property
    def whole(self) -> str:
        """The secret in one piece."""
        return self.text if isinstance(self.text, str) else "".join(self.text)


class Planting(Document):
    """A file of planted facts. `transcript` is relative to it; other tables are its author's own."""

    agent: str = ""
    transcript: str = ""
    fact: tuple[PlantedFact, ...] = Field(min_length=1)
    secret: tuple[PlantedSecret, ...] = ()


KINDS: tuple[Kind, ...] = get_args(Kind)
# What stands before a quoted line and may fall between two words of a quotation.
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LEAK = 12


@dataclass(frozen=True, slots=True)
class Score:
    """The result. `found` and `planted` count facts by kind, in the order of `KINDS`.

    Kinds without planted facts are left out. `missing` lists the facts not found, `leaked` the kinds of the
    secrets found; `characters` is the length of the text.
    """

    found: dict[Kind, int]
    planted: dict[Kind, int]
    missing: tuple[PlantedFact, ...]
    leaked: tuple[str, ...]
    secrets: int
    characters: int

    @property
    def kinds(self) -> int:
        """The number of kinds of which every fact was found."""
        return sum(self.found[kind] == planted for kind, planted in self.planted.items())

    @property
    def is_perfect(self) -> bool:
        """Whether nothing is missing and nothing leaked."""
        return not self.missing and not self.leaked


def score_text(text: str, planting: Planting) -> Score:
    """Score `text`, whoever wrote it: only the planted words are looked for in it."""
    flat = _flatten(text)
    lines = [_flatten(line) for line in text.split("\n")]
    missing = tuple(fact for fact in planting.fact if not _holds(flat, lines, fact))
    planted = {kind: count for kind in KINDS if (count := sum(fact.kind == kind for fact in planting.fact))}
    lost = [fact.kind for fact in missing]
    return Score(
        found={kind: count - lost.count(kind) for kind, count in planted.items()},
        planted=planted,
        missing=missing,
        leaked=tuple(secret.kind for secret in planting.secret if _leaks(text, secret.whole)),
        secrets=len(planting.secret),
        characters=len(text),
    )


def _flatten(text: str) -> str:
    """Return `text` on one line, without marks of quotation, so that a broken line hides no fact."""
    return " ".join(plain_apostrophes(_QUOTED.sub("", text)).casefold().split())


def _holds(flat: str, lines: list[str], fact: PlantedFact) -> bool:
    if not all(_flatten(says) in flat for says in fact.says):
        return False
    if not fact.beside:
        return True
    first = _flatten(fact.says[0])
    return any(first in line and any(_flatten(mark) in line for mark in fact.beside) for line in lines)


def _leaks(text: str, secret: str) -> bool:
    """Check whether `text` contains twelve characters of `secret` in a row, or all of a shorter one."""
    length = min(_LEAK, len(secret))
    return any(secret[at : at + length] in text for at in range(len(secret) - length + 1))
