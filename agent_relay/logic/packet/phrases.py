"""Phrases by which people give rules and agents tell what they decided, tried and intend."""

import re

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def fold(text: str) -> str:
    """`text` with every apostrophe in its plain form, as the phrases are written."""
    return text.translate(_APOSTROPHES)


def _any(*phrases: str) -> str:
    return "(?:" + "|".join(phrases) + ")"


CONSENT = re.compile(
    _any(
        *("y", "yes", "yep", "yeah", "ok", "okay", "sure", "k", "good", "great", "nice", "perfect", "lgtm"),
        *("go", "go on", "go ahead", "continue", "proceed", "do it", "please", "please do", "next", "retry"),
        *("thanks", "thank you", "hi", "hello", "hey", "test", "try again"),
    )
    + r"(?:[\s,]+please)?[\s.!,?]*",
    re.IGNORECASE,
)
RULE = re.compile(
    r"\b"
    + _any(
        *("don'?t", "do not", "never", "always", "must", "mustn't", "shouldn't", "should not", "may not"),
        *("avoid", "ensure", "make sure", "instead", "rather than", "no longer", "prefer", "forbidden"),
        *("not allowed", "under no circumstances", "has to", "have to", "stick (?:to|with)", "at most"),
        *("at least", "no more than", "cannot be", r"keep .{1,80}", r"not .{1,60}\bbut"),
        "no (?:new|more|extra|external|third|additional|other)",
        r"without (?:\w+ing|any|new)",
        "only (?:use|touch|change|edit|modify|add|the|in|if|when|with|one)",
        r"leave .{1,60}\b(?:alone|as|untouched)",
        "needs? to (?:be|stay|keep|remain|work|support|pass)",
        *("nicht", "niemals", "immer", "muss", "darf", "statt", "jamais", "toujours", "nunca", "siempre"),
    )
    + r"\b|, not \w",
    re.IGNORECASE,
)
CORRECTION = re.compile(
    r"(?:and |but |please |so )?"
    + _any(
        *("actually", "nope", "wait", "stop", "use", "keep", "remember", "important", "note that", "wrong"),
        *("that'?s (?:not|wrong)", "not (?:like )?that", "let'?s (?:not|use)", "only", "undo", "revert"),
        *("i (?:want|need|prefer|said|meant|told)", "rather"),
    )
    + r"\b|no\s*[,.!:;]",
    re.IGNORECASE,
)
POLITE = re.compile(r"(?:please|(?:can|could|would|will) you)\b", re.IGNORECASE)
DECISION = re.compile(
    r"\b"
    + _any(
        *("because", "decided?", "deciding", "i'?(?:ll| will| am|m) us(?:e|ing)", "we'?(?:ll| will) use"),
        *("going with", "went with", "chose", "choosing", "opt(?:ed|ing) (?:for|to)", "settled on"),
        *("in favou?r of", "trade-?offs?", "sticking with", "i won't"),
        # Of code people say "subtracts instead of adding"; only a doer's choice is a decision.
        r"(?:i|we|i'?ve|i'?m|i'?ll|we'?ll|let'?s|us(?:e|ing|ed)|ke(?:ep|pt))\b.{1,120}"
        r"\b(?:instead of|rather than)",
        "the (?:right|cleanest|simplest|safest) (?:fix|approach|way|place)",
        "i will not",
    )
    + r"\b",
    re.IGNORECASE,
)
FAILURE = re.compile(
    r"\b"
    + _any(
        *("tried", "attempted", "(?:didn't|did not|doesn't|does not) (?:work|help|fix)", "dead end"),
        "fail(?:ed|s) (?:because|with|again|since|on|for|when)",
        *("still fail(?:s|ed|ing)", "revert(?:ed|ing)", "rolled back", "undid", "gave up", "no luck"),
        *("wrong approach", "that broke", "broke the", "turned out (?:to be )?(?:wrong|not)"),
        *("(?:isn't|is not) possible", "can't work", "won't work"),
    )
    + r"\b",
    re.IGNORECASE,
)
REASON = re.compile(
    r"\b(?:because|since|so that|in order to|to avoid|due to)\b\s*(?P<why>.+)$|;\s*(?P<rest>.+)$",
    re.IGNORECASE,
)
OUTCOME = re.compile(
    r"(?:,?\s*\b(?:but|however|because|and it|yet)\b|[:;\u2013\u2014])\s*(?P<outcome>.+)$", re.IGNORECASE
)
INTENT = re.compile(
    "(?:now |next,? |then |first,? |so )?"
    + _any(
        *("i'?ll", "i will", "i'?m going to", "i am going to", "let me", "let's", "next", "the next step"),
        *("remaining", "what(?:'s| is) left", "still to do", "todo"),
    )
    + r"\b",
    re.IGNORECASE,
)
