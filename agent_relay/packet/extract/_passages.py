"""Cut an agent's message into passages: runs of sentences that belong together, with their heading."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agent_relay.packet.extract.phrases import get_phrases, plain_apostrophes
from agent_relay.packet.extract.sentences import MAX_LENGTH, TextBlock, cut_sentences, iterate_blocks

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
