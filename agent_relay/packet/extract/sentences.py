"""Cut what people and agents wrote into quotable blocks, sentences and passages; leave code out."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.phrases import get_phrases, plain_apostrophes

_FENCE = compile_late(r"^(```|~~~).*?^\1\s*$|^(```|~~~).*\Z", re.DOTALL | re.MULTILINE)
_MARK = compile_late(r"^\s*([-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS = compile_late(r"^(\*\*|__)(.+?)\1$")
# A full stop ends a sentence unless it belongs to one of the usual abbreviations.
_END = compile_late(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]]?\s+")
_WORD = compile_late(r"\w+")
_TABLE = compile_late(r"^\s*\|")
# Shorter lines are broken on purpose; longer ones were wrapped by an editor and go on below.
_WRAPPED_LENGTH = 60
MAX_LENGTH = 600
_Kind = Literal["text", "item", "heading", "row"]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, a list item, a heading or a row of a table (its cells between bars), without its mark."""

    kind: _Kind
    text: str


def split_sentences(text: str) -> list[str]:
    """Split `text` into sentences, white space normalised; table rows and overlong ones are left out."""
    found: list[str] = []
    for block in iterate_blocks(text):
        if block.kind != "row":
            found.extend(cut_sentences(block.text))
    return found


def cut_sentences(line: str) -> list[str]:
    """Split one paragraph into sentences; overlong ones are left out."""
    parts = (" ".join(part.split()) for part in _END.split(line))
    return [part for part in parts if part and len(part) <= MAX_LENGTH]


def iterate_blocks(text: str) -> Iterator[TextBlock]:
    """Yield the blocks of `text` without fenced code; lines that an editor wrapped are joined again."""
    kind: _Kind = "text"
    parts, length = [""], 0
    for raw in [*_FENCE.sub("\n", text).splitlines(), ""]:
        mark = _MARK.match(raw)
        line = raw[mark.end() :].strip() if mark else raw.strip()
        goes_on = line[:1].islower() and not mark and not parts[-1].endswith((".", "!", "?", ":"))
        if goes_on and length >= _WRAPPED_LENGTH and kind != "row":
            parts.append(line)
            continue
        if length:
            yield TextBlock(kind, " ".join(parts))
        if _TABLE.match(raw):
            kind, line = "row", " | ".join(cell.strip() for cell in line.strip("|").split("|"))
        else:
            kind, line = _tell_kind(mark[1] if mark else ""), _EMPHASIS.sub(r"\2", line)
        parts, length = [line], len(line)


def _tell_kind(mark: str) -> Literal["text", "item", "heading"]:
    if mark.startswith("#"):
        return "heading"
    return "item" if mark and mark != ">" else "text"


def normalise(text: str) -> str:
    """Normalise `text` for comparing: case, white space and closing punctuation do not matter."""
    return " ".join(text.casefold().split()).rstrip(".!…:;, ")


def is_alike(one: str, other: str) -> bool:
    """Check whether two short texts say the same: most of their words are shared."""
    first, second = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    if not first or not second:
        return normalise(one) == normalise(other)
    return len(first & second) / len(first | second) >= 0.6  # noqa: PLR2004 - three of five words


_NARRATION = get_phrases("narration")
CHOICES_HEADING = get_phrases("choices-heading")
LENGTH = 320
_RULE_ROW = re.compile(r"[\s|:-]+")
_SHORT = 12


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive sentences, quoted together; `lead` is the heading or line above them."""

    text: str
    lead: str = ""


def split_passages(text: str, stops: Collection[str] = ()) -> Iterator[Passage]:
    """Split `text` into passages.

    Questions, the sentences `stops` and what only narrates the current step separate passages and are left
    out. A table counts if the names of its columns mark it as one of choices; its overlong rows do not.
    """
    heading = lead = columns = ""
    blocks = list(iterate_blocks(text))
    for block, after in zip(blocks, [*blocks, None][1:], strict=True):
        if block.kind == "heading":
            heading, lead = block.text, ""
        elif block.kind == "row":
            columns = block.text if after and _RULE_ROW.fullmatch(after.text) else columns
            is_choice = columns != block.text and bool(CHOICES_HEADING.search(columns))
            if is_choice and len(block.text) <= MAX_LENGTH and not _RULE_ROW.fullmatch(block.text):
                yield Passage(block.text, f"{heading} {columns}".strip())
        elif block.kind == "text" and block.text.endswith(":"):
            lead = block.text
        else:
            yield from _cut_block(block, heading, lead, stops)
            lead = lead if block.kind == "item" else ""


def _cut_block(block: TextBlock, heading: str, lead: str, stops: Collection[str]) -> Iterator[Passage]:
    """Cut a block into runs of sentences of at most `LENGTH` characters; an overlong sentence is alone."""
    above = f"{heading} {lead}".strip() if block.kind == "item" else heading
    run = ""
    for sentence in cut_sentences(block.text):
        breaks = (
            sentence in stops
            or sentence.endswith(("?", ":"))
            or bool(_NARRATION.match(plain_apostrophes(sentence)))
        )
        if run and (breaks or len(run) + len(sentence) >= LENGTH):
            yield Passage(run, above)
            run = ""
        if not breaks:
            run = f"{run} {sentence}".strip()
    if len(run) >= _SHORT:
        yield Passage(run, above)
