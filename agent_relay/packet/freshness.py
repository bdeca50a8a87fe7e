"""List what changed since a packet was written, and measure how faithful one is.

Changes of the tree and of the conversation come in sentences. Measured are planted facts that a text keeps,
planted secrets it leaks, and its size.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from pydantic import Field

from agent_relay.domain.documents.document import Document, Strict
from agent_relay.domain.documents.packet import ResumePacket, TouchedFile
from agent_relay.domain.facts import Facts
from agent_relay.domain.values import Tree, TreeFile, render_path
from agent_relay.packet.extract.sentences import plain_apostrophes

_NAMED = 5
_SHORT = 12


def verify_freshness(packet: ResumePacket, tree: Tree) -> tuple[str, ...]:
    """List what differs from the packet by now; empty if nothing changed or nothing can be compared."""
    then = packet.git
    is_seen = then is not None and bool(then.head or then.fingerprint)
    if not tree.is_whole:
        return (f"cannot tell whether the tree changed: {tree.note}",) if is_seen else ()
    if then is None or not tree.is_git:
        return ("the tree is no longer a git work tree",) if then is not None and then.head else ()
    found: list[str] = []  # where nothing was seen, a file from elsewhere named a repository, no more
    if is_seen and then.head != tree.head:
        found.append(f"HEAD was {_name(then.head)}, now it is {_name(tree.head)}")
    if (is_seen or then.branch) and then.branch != tree.branch:
        found.append(f"the branch was {then.branch or '(detached)'}, now it is {tree.branch or '(detached)'}")
    if not then.fingerprint or then.fingerprint == tree.fingerprint:
        return tuple(found)
    changed = _changed(packet.touched_files, tree.files)
    if changed:
        names = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
        found.append(f"{len(changed)} {'file' if len(changed) == 1 else 'files'} changed since: {names}")
    elif not found:
        found.append("files that were already modified have been modified again")
    return tuple(found)


def list_later(facts: Facts, agent: str, since: datetime) -> tuple[str, ...]:
    """List what `agent` was asked after the moment `since` (aware), when the packet was written.

    The unanswered prompt is quoted in full, and may be several prompts in one text.
    """
    prompts = [
        said for said in facts.conversation if said.role == "user" and said.at is not None and said.at > since
    ]
    notes: list[str] = []
    if prompts:
        which = "prompt was" if len(prompts) == 1 else "prompts were"
        notes.append(f"{len(prompts)} more {which} given to {agent}, whose work on it is not included")
    waiting = facts.unprocessed_prompt
    if waiting is not None and waiting.at is not None and waiting.at > since:
        notes.append(f"the user sent this last and got no answer: {waiting.text}")
    return tuple(notes)


def _name(head: str | None) -> str:
    return head[:_SHORT] if head else "nothing (no commits)"


def _changed(then: tuple[TouchedFile, ...], now: tuple[TreeFile, ...]) -> list[str]:
    """List the paths whose entry differs.

    Files only read are not compared, nor those without anything to compare.
    """
    before = {file.path: file for file in then if file.status != "read"}
    after = {render_path(file.path): file for file in now}
    gone = [path for path, file in before.items() if path not in after and file.status != "deleted"]
    differ = [
        path
        for path, file in after.items()
        if path not in before or (file.added, file.removed) != (before[path].added, before[path].removed)
    ]
    return sorted({*gone, *differ})


FactKind = Literal[
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

    kind: FactKind
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


KINDS: tuple[FactKind, ...] = get_args(FactKind)
# What stands before a quoted line and may fall between two words of a quotation.
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LEAK = 12


@dataclass(frozen=True, slots=True)
class Score:
    """The result. `found` and `planted` count facts by kind, in the order of `KINDS`.

    Kinds without planted facts are left out. `missing` lists the facts not found, `leaked` the kinds of the
    secrets found; `characters` is the length of the text.
    """

    found: dict[FactKind, int]
    planted: dict[FactKind, int]
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
