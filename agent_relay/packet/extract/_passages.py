"""Cut an agent's message into passages, and recognise the surroundings of a statement.

A passage is a run of sentences that belong together, with the heading or line above it. The surroundings
count, too: the heading of its list, the question before it, work that was undone beside it.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agent_relay.domain.text.patterns import compile_late
from agent_relay.packet.extract.phrases import plain_apostrophes
from agent_relay.packet.extract.salience import NARRATION, join_phrases
from agent_relay.packet.extract.sentences import MAX_LENGTH, TextBlock, cut_sentences, iterate_blocks

# What stands above a list or a table of choices, and above one of anything else.
GOOD_LEAD = compile_late(
    join_phrases(
        *(
            "decisions?",
            "decided",
            "design",
            "approach",
            "plan",
            "propos\\w+",
            "recommend\\w+",
            "what i'd do",
        ),
        *("measures?", "trade-?offs?", "choices?", "chosen", "rationale", "reasons?", "why", "how it works"),
        *("architecture", "outcome", "resolution", "verdict", "answer", "agreed", "settled", "what i did"),
        *("constraints?", "principles?", "rules?", "conventions?", "the (?:shape|idea|contract)"),
    ),
    re.IGNORECASE,
)
BAD_LEAD = compile_late(
    join_phrases(
        *(
            "next",
            "open",
            "questions?",
            "verif\\w+",
            "tests?",
            "files?",
            "changed",
            "findings?",
            "usage",
            "run",
        ),
        *(
            "steps?",
            "todo",
            "remaining",
            "how to",
            "output",
            "result\\w*",
            "what (?:landed|changed)",
            "status",
        ),
    ),
    re.IGNORECASE,
)
# A question of the user's about how it should be, and not about how it is.
DESIGN_QUESTION = compile_late(
    join_phrases(
        *("we", "us", "shall", "should", "would you", "could", "suggest", "propose", "recommend", "approach"),
        *("thoughts", "opinion", "idea", "verdict", "maybe", "better", "simpler", "easier", "what about"),
        *("how about", "instead", "considered", "try", "use", "do you (?:want|prefer|see|think|plan)"),
        *("how do you", "how will", "how would", "what if", "going to be", "worth"),
    )
    # Nothing here may match the same signs in two ways: hostile sentences are all question marks.
    + r"|^\W*+(?:\S+ ){0,2}\S+\?$"
    r"|^(?:can|could|should|shall) (?!you (?:explain|show|tell|run|check|see|look|find|list|give)\b)",
    re.IGNORECASE,
)
_QUESTION = compile_late(
    r"(?:can|could|should|shall|would|will|do|does|did|is|are|what|how|why|where|who|when|which)\b",
    re.IGNORECASE,
)
_MARKS = "?! \t\n"
# A question about the state of the work.
STATUS = compile_late(
    r"where (?:are|were|do) we|\b(?:status|state|progress|summary|overview|what(?:'s| is) (?:left"
    r"|missing|open)"
    r"|how far|what (?:do|did) you (?:see|find)|what you found)\b",
    re.IGNORECASE,
)
# What is asked for leave to go on, and settles nothing.
PROCEDURE = compile_late(
    r"\b(?:want (?:me )?to|wanna|shall (?:i|we)|should (?:i|we)|ready to|like (?:me )?to|can i|may i"
    r"|okay to)\s+"
    r"(?:continue|proceed|go|start|begin|commit|push|show|look|see|run|try|check|fix|help|pick|work"
    r"|move|dig|take"
    r"|settle|tackle|implement|do)\b|"
    + join_phrases(
        "next", "first", "now", "anything else", "sound good", "make sense", "go ahead", "your call"
    ),
    re.IGNORECASE,
)
# Commands by which work is taken back.
UNDOING = compile_late(
    r"\bgit (?:checkout (?:\S+ )?-- |restore\b|revert\b|reset --hard|stash\b|branch -D|clean -)|\bhg revert\b"
)


def is_question(text: str) -> bool:
    """Check whether `text` begins or ends as a question does, in time linear in its length."""
    return bool(_QUESTION.match(text)) or "?" in text[len(text.rstrip(_MARKS)) :]


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
            is_choice = columns != block.text and bool(GOOD_LEAD.search(columns))
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
            or bool(NARRATION.match(plain_apostrophes(sentence)))
        )
        if run and (breaks or len(run) + len(sentence) >= LENGTH):
            yield Passage(run, above)
            run = ""
        if not breaks:
            run = f"{run} {sentence}".strip()
    if len(run) >= _SHORT:
        yield Passage(run, above)
