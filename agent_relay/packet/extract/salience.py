"""Weigh how surely a statement expresses a choice, or something that was tried in vain.

No sign alone marks a choice; several of them together do.
"""

import re
from functools import lru_cache

from agent_relay.domain.text.patterns import compile_late
from agent_relay.packet.extract.phrases import CHOICE, LABEL, PURPOSE, REJECTION, plain_apostrophes


def join_phrases(*phrases: str) -> str:
    """Build a pattern that matches any of `phrases` as whole words."""
    return r"\b(?:" + "|".join(phrases) + r")(?!\w)"


# What an agent says of the step it is at; it is over with the step.
NARRATION = compile_late(
    r"(?:ok(?:ay)?|alright|great|good|perfect|right|sure|excellent|interesting|hm+|so|and|now|next|then|first"
    r"|finally|meanwhile|also)?[\s,.!:\u2013\u2014-]*"
    r"(?:let me|let's (?:see|look|check|start|verify|run|do|begin)|now (?:let|the|i|for|add|update|that|to)\b"
    r"|i(?:'ll| will|'m going to| am going to|'m about to)\s+(?:now |first |just |also |then "
    r"|quickly |start by )*"
    r"(?:\w+ing|read|look|check|see|start|begin|find|search|run|map|list|try|verify|review|explore|trace"
    r"|examine|inspect|investigate|test|measure|write|add|update|fix|create|continue|go(?! with| for)"
    r"|do|wait|report)\b"
    r"|i(?:'m| am) (?:now |just )?(?:reading|looking|checking|running|going through|searching|starting)"
    r"|i (?:now )?(?:have|see|read|looked|found|checked|can see|understand)\b"
    r"|(?:looking|reading|checking|running|starting|searching|working|moving|continuing|waiting|testing"
    r"|rewriting|exporting|publishing|adding|updating|fixing|verifying)\b"
    r"|[^.!?]{0,60}\blet(?: me|'s see|'s check)\b"
    r"|(?:done|fixed|added|renamed|updated|changed|moved|removed|corrected|adjusted|applied|noted|understood"
    r"|thanks|thank you|got it|on it|sure|will do|made|set|passed|shifted|rewritten|restored|captured"
    r"|confirmed)\b"
    r"(?:[.!:,]|$| (?:it|in|on|to|that|this|them|for|the|a|as|every)\b))",
    re.IGNORECASE,
)
# What is found, run or counted, as opposed to what is meant to be.
REPORT = compile_late(
    join_phrases(
        *("pass(?:es|ed)?", r"\d+ (?:tests?|errors?|failures?|warnings?)", "all tests", "green"),
        *("fail(?:ed|s|ing)?", "still (?:red|open|missing|fails?)", "bug", "typo", "warning", "traceback"),
        *("twice", "(?:too )?early", "by mistake", "off by one", "unused", "undefined"),
        *("exit code", "stack ?trace", "is missing", "was missing", "compiles", "lints?"),
    ),
    re.IGNORECASE,
)
# Advice, and a wish of the agent's own for how it should be.
ADVICE = compile_late(
    join_phrases(
        r"(?:i|we)(?:'d| would)(?: rather| also)? (?:go|use|keep|put|treat|start|make|do|take|leave|move"
        r"|store|split|have|say|stay|stick|avoid|drop|prefer)",
        *(
            "recommend(?:ed|ation)?",
            "my rec",
            "(?:i'?m|i|we) lean(?:ing)?",
            "suggest(?:ed|ion)?",
            "propos(?:e|al)",
        ),
        *("should (?:be|stay|go|live|remain|come|use|not)", "(?:is|are) best", "better (?:to|off)"),
        *("locked in", "recorded as", "d[1-9]\\d?", "resolved", "the (?:plan|design|rule|idea) is"),
        *("from now on", "for good", "going forward"),
        *(
            "(?:have|has|had|what) (?:i|we)(?:'ve)?(?: now)? set up",
            "deliberate(?:ly)?",
            "intentional(?:ly)?",
        ),
    ),
    re.IGNORECASE,
)
# What is still open, or only possible.
HEDGE = compile_late(
    join_phrases(
        *(
            "could",
            "might",
            "maybe",
            "perhaps",
            "possibly",
            "alternatively",
            "unclear",
            "if you",
            "either way",
        ),
        *("open (?:question|point|issue|item)s?", "(?:still|remains?|genuinely|only) open", "options?:?"),
        *("want to", "when you'?re", "whether", "worth (?:deciding|a)", "to confirm", "assum(?:e[sd]?|ing)"),
    ),
    re.IGNORECASE,
)
# How things are meant to be, in the present: where they live, what makes them, who owns them.
POLICY = compile_late(
    join_phrases(
        r"(?:is|are|be|gets?|stays?|remains?) (?:now |always |only |never )?(?:\w{3,}ed|written|kept"
        r"|stored|built"
        r"|read|sent|held|made|run|drawn|split|put|set|chosen|frozen|known|given|taken|shown)",
        r"(?:is|are) (?:a|an|the|one|our|per|by|in|on|plain|its|just)",
        r"(?:stays?|remains?|keeps?|lives?|goes|belongs?|carr(?:y|ies)|comes? from|hangs? on|owns?"
        r"|holds?|gets?"
        r"|becomes?|wins?|follows?|replaces?|serves?|takes? over|needs? no|has no|have no"
        r"|moves? (?:in|to|out))",
        r"(?:reads?|writes?|runs?|uses?|compares?|relies|rely|covers?|lasts?|ends?|begins?|starts?"
        r"|notif(?:y|ies))"
        r" (?:only|in|into|on|at|from|by|one|a|an|the|its|once|per|with)",
    ),
    re.IGNORECASE,
)
# What holds of all cases, or of none.
ABSOLUTE = compile_late(
    join_phrases(
        *(
            "every",
            "each",
            "always",
            "only",
            "never",
            "whichever",
            "whatever",
            "whoever",
            "nobody",
            "nothing",
        ),
        *(
            "none",
            "any",
            "all of",
            "once per",
            "one \\w+ per",
            r"(\w+) by \1",
            r"per \w+",
            "at most",
            "at least",
        ),
        *("on its own", "no \\w+", "without", "alone", "exactly"),
    ),
    re.IGNORECASE,
)
# One thing set against another.
AGAINST = compile_late(
    r", (?:not|no)\b|\bnot\b.{1,60}\bbut\b|"
    + join_phrases(
        *(
            "instead",
            "rather",
            "no longer",
            "over",
            "in place of",
            "neither",
            "nor",
            "as opposed to",
            "unlike",
        ),
        *("versus", "vs", "whereas", "while", "though", "although", "however", "yet", "on the other hand"),
        *("simpler", "cheaper", "safer", "faster", "smaller", "cleaner", "better", "enough", "beats?"),
    ),
    re.IGNORECASE,
)
# Grounds, told by a word or by what follows a semicolon, a colon or a dash.
GROUND = compile_late(
    join_phrases(
        *(
            "because",
            "since",
            "so that",
            "so the",
            "so it",
            "so we",
            "so i",
            "therefore",
            "hence",
            "thus",
            "as a",
        ),
        *(
            "result of",
            "which (?:makes?|keeps?|lets?|means|saves?|avoids?|gives?|leaves?|is)",
            "(?:that|this) way",
        ),
        *("otherwise", "or else", "lest", "to (?:avoid|keep|prevent|stay|survive)", "in order to", "for the"),
        *(
            "that lets",
            "would (?:cost|need|lose|break|mean|be|make|require|stall|have)",
            "survives?",
            "never",
        ),
    )
    + r"|[;\u2013\u2014] \w+|\w: \w+ \w+|\. So ",
    re.IGNORECASE,
)
# That something was really tried, or nearly.
EXPERIMENT = compile_late(
    join_phrases(
        *(
            "tried",
            "trying",
            "tested",
            "measured",
            "benchmark(?:ed|s)?",
            "experiment(?:ed)?",
            "prototyp(?:e|ed)",
        ),
        *("profiled", "timed", "evaluated", "considered", "attempt(?:ed)?", "wired", "converted", "ported"),
        "(?:i|we) (?:had|built|ran|wrote|spent|began|started|went|put|got|made|wrapped|moved|swapped)",
        *("had .{1,40} (?:running|before|working)", "and wrote", "went through it", "my first", "at first"),
        *("on (?:a|the) branch", "scratch", "in the (?:trial|replay|benchmark|experiment|logs?|profile)"),
        "after \\w+ (?:runs?|plans?|tries|attempts?|days?|hours?)",
        *("sounded", "looked(?! at| up| for| into| around)", "seemed", "promised"),
    ),
    re.IGNORECASE,
)
# What it cost.
HARM = compile_late(
    join_phrases(
        *(
            "too \\w+",
            "slow(?:s|er|ed)?",
            r"\d+(?:\.\d+)? ?(?:[x%\u00d7]|ms|min(?:utes)?|s|seconds|hours|MB|kB|GB)",
        ),
        *(
            "break(?:s|ing)?",
            "broke",
            "fail(?:s|ed)?",
            "hang(?:s)?",
            "hung",
            "crash(?:es|ed)?",
            "lost",
            "los(?:e|es)",
        ),
        *("time[sd]? out", "timeout", "leak(?:s|ed)?", "stall(?:s|ed)?", "dead ?lock(?:s|ed)?", "race[sd]?"),
        *("cannot", "can't", "could not", "couldn't", "doesn't", "does not", "didn't", "did not", "won't"),
        *(
            "would (?:need|require|cost|lose|mean|break|have to|drag)",
            "require[sd]?",
            "need(?:s|ed)? (?:a|an|the)",
        ),
        *(
            "depends on",
            "worse",
            "doubl(?:e|es|ed)",
            "tripl(?:e|es|ed)",
            "grew",
            "nobody",
            "nothing",
            "no \\w+",
        ),
        *("wrong", "unstable", "flaky", "missing", "wanted", "cost(?:s)?", "peg(?:s|ged)"),
        *("stopp?(?:s|ed)?", "different", "differs?", "overlap(?:s|ped)?", "woke", "stale", "choke(?:s|d)?"),
        *("fell", "falls?", "fought", "fights?", "refus(?:es|ed)", "ignor(?:es|ed)", "blocks?", "hides?"),
        *("un\\w+able", "impossible", "never", "limit(?:s|ed)?", "only", "more", "other \\w+", "gave"),
    ),
    re.IGNORECASE,
)
# That it was left.
VERDICT = compile_late(
    r"(?:^|[.!,;\u2014-] )(?:so )?no(?:t (?:for|here|now|worth|an?|with)\b.*)?[.!]?$|(?:^|[.!] )no[.,]|"
    + join_phrases(
        *(
            "(?<!fall )(?<!falls )back to",
            "went back",
            "left (?:it|that|them) out",
            "parked",
            "dropped",
            "out again",
            "gone again",
        ),
        *("undo(?:ing|ne)?", "undid", "revert(?:ed|ing|s)?", "rolled back", "removed again", "took it out"),
        *(
            "stays?",
            "we (?:keep|stay|stick)",
            "isn't worth",
            "not worth",
            "unus\\w+",
            "so it's out",
            "skipp(?:ed|ing)",
        ),
        *("gave (?:it )?up", "no go", "not an? \\w+", "rather not", "would not", "wouldn't"),
        *("(?:branch|code|patch) (?:is )?(?:gone|deleted|dropped)", "threw (?:it|that) (?:out|away)"),
    ),
    re.IGNORECASE,
)
CONCESSION = compile_late(
    join_phrases(
        *("but", "though", "however", "yet", "although", "except", "until", "still", "even", "on paper"),
        *(
            "would (?:be|have|bring|scale|give|save|make|solve)",
            "sounds?",
            "looks?",
            "tempting",
            "neat",
            "nice",
        ),
    ),
    re.IGNORECASE,
)
# That what failed was helped at once: nothing was given up.
RECOVERED = compile_late(
    join_phrases(
        r"(?:pass(?:es|ed)?|works?|builds?|runs?|compiles|is fine|is green) (?:now|again|this time)",
        r"(?:second|third|next) (?:\w+ )?(?:went through|passed|worked|succeeded)",
        r"so i (?:added|fixed|changed|renamed|corrected|updated|moved|removed|installed)",
    ),
    re.IGNORECASE,
)


ARROW = " → "
"""Separates a question from its answer."""
FIRM = 3
"""The weight from which on a statement counts as a choice or a rejection."""
_TOLD = 4
_MOST = 6
_AT_HAND = 64
"""How many statements' weights are cached: each statement is weighed several times in a row."""


def weigh(text: str) -> int:
    """Weigh from 0 to 6 how much a statement would be missed; a choice or rejection has `FIRM` or more."""
    plain = plain_apostrophes(text)
    return max(weigh_choice(plain), weigh_refusal(plain))


@lru_cache(_AT_HAND)
def weigh_choice(plain: str) -> int:
    """Weigh from 0 to 6 how surely a statement is a choice; its apostrophes are plain."""
    if NARRATION.match(plain):
        return 0
    weight = _TOLD if CHOICE.search(plain) else 2 if PURPOSE.search(plain) else 0
    weight += 2 * bool(ADVICE.search(plain)) + 2 * (f"?{ARROW}" in plain)
    weight += sum(bool(sign.search(plain)) for sign in (POLICY, ABSOLUTE, AGAINST, GROUND))
    weight -= 2 * bool(REPORT.search(plain)) + 2 * bool(HEDGE.search(plain))
    return max(0, min(_MOST, weight))


@lru_cache(_AT_HAND)
def weigh_refusal(plain: str) -> int:
    """Weigh from 0 to 6 how surely a statement rejects something: it was tried in vain, or dropped.

    Its apostrophes are plain.
    """
    if NARRATION.match(plain) or RECOVERED.search(plain):
        return 0
    told, tried, left = (bool(sign.search(plain)) for sign in (REJECTION, EXPERIMENT, VERDICT))
    harm = bool(HARM.search(plain))
    if not (told or left or (tried and harm)):
        return 0
    weight = 2 * tried + 2 * left + harm + bool(CONCESSION.search(plain))
    weight = max(_TOLD * told, weight - 2 * bool(REPORT.search(plain)))
    return max(0, min(_MOST, weight))


def is_decision(plain: str) -> bool:
    """Check whether a sentence by itself states a decision; what was given up is no decision.

    Its apostrophes are plain.
    """
    if CHOICE.search(plain):
        label = LABEL.match(plain)
        return not REJECTION.search(plain) or bool(label and CHOICE.match(label[0]))
    return weigh_choice(plain) >= max(FIRM, weigh_refusal(plain))


def is_failure(plain: str) -> bool:
    """Check whether a sentence (with plain apostrophes) reports something tried in vain."""
    return weigh_refusal(plain) >= FIRM
