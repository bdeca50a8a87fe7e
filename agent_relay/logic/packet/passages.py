"""Cuts what an agent wrote into passages: sentences that belong together, and what stands above them."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agent_relay.logic.packet.phrases import fold
from agent_relay.logic.packet.sentences import MAX_LENGTH, Block, cut_sentences, iterate_blocks
from agent_relay.logic.packet.signs import NARRATION
from agent_relay.logic.packet.surroundings import GOOD_LEAD

LENGTH = 320
_RULE_ROW = re.compile(r"[\s|:-]+")
_SHORT = 12


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences quoted as they follow one another; `lead` is the heading or line the list below it has."""

    text: str
    lead: str = ""


def split_passages(text: str, stops: Collection[str] = ()) -> Iterator[Passage]:
    """The passages of `text`; questions, `stops` and what only tells the step at hand stand between them.

    A table counts where the names of its columns say that it is one of choices; its overlong rows do not.
    """
    heading = lead = columns = ""
    blocks = list(iterate_blocks(text))
    for block, after in zip(blocks, [*blocks, None][1:], strict=True):
        if block.kind == "heading":
            heading, lead = block.text, ""
        elif block.kind == "row":
            columns = block.text if after and _RULE_ROW.fullmatch(after.text) else columns
            is_choice = columns != block.text and bool(GOOD_LEAD.search(columns))
            if is_choice and len(block.text) <= MAX_LENGTH and not _RULE_ROW.fullmatch(block.text):
                yield Passage(block.text, f"{heading} {columns}".strip())
        elif block.kind == "text" and block.text.endswith(":"):
            lead = block.text
        else:
            yield from _cut_block(block, heading, lead, stops)
            lead = lead if block.kind == "item" else ""


def _cut_block(block: Block, heading: str, lead: str, stops: Collection[str]) -> Iterator[Passage]:
    """Runs of sentences of at most `LENGTH` characters, one overlong sentence alone."""
    above = f"{heading} {lead}".strip() if block.kind == "item" else heading
    run = ""
    for sentence in cut_sentences(block.text):
        breaks = sentence in stops or sentence.endswith(("?", ":")) or bool(NARRATION.match(fold(sentence)))
        if run and (breaks or len(run) + len(sentence) >= LENGTH):
            yield Passage(run, above)
            run = ""
        if not breaks:
            run = f"{run} {sentence}".strip()
    if len(run) >= _SHORT:
        yield Passage(run, above)
