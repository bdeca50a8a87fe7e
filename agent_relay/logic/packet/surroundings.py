"""Signs in what surrounds a statement: what stands above it, what was asked before, what was done beside."""

import re

from agent_relay.logic.packet.signs import join_phrases
from agent_relay.logic.patterns import compile_late

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
    """Whether `text` begins or ends as a question does, in time that grows with its length alone."""
    return bool(_QUESTION.match(text)) or "?" in text[len(text.rstrip(_MARKS)) :]
