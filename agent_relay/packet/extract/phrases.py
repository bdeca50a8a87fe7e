"""Expressions for how people give rules and how agents state what they decided, tried and intend."""

import re

from agent_relay.domain.text.patterns import compile_late

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def plain_apostrophes(text: str) -> str:
    """Replace every apostrophe in `text` by the plain one, which the phrases use."""
    return text.translate(_APOSTROPHES)


def _any(*phrases: str) -> str:
    return "(?:" + "|".join(phrases) + ")"


CONSENT = compile_late(
    _any(
        *("y", "yes", "yep", "yeah", "ok", "okay", "sure", "k", "good", "great", "nice", "perfect", "lgtm"),
        *("go", "go on", "go ahead", "continue", "proceed", "do it", "please", "please do", "next", "retry"),
        *("thanks", "thank you", "hi", "hello", "hey", "test", "try again"),
    )
    + r"(?:[\s,]+please)?[\s.!,?]*",
    re.IGNORECASE,
)
RULE = compile_late(
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
# What holds throughout the work, whatever step it is at.
STANDING = compile_late(
    r"\b"
    + _any(
        *("never", "always", "forbidden", "not allowed", "under (?:no|any)", "at all (?:times|costs)"),
        *("whatever (?:you|happens|comes)", "no matter", "in (?:any|every|all) cases?", "everywhere"),
        *("anywhere", "throughout", "across the board", "off[ -]limits", "out of bounds", "hands off"),
        *("no[ -]go", "taboo", "sacred", "frozen", "untouched", "unchanged", "read[ -]only"),
        r"(?:stay|remain|keep)s? (?:as|where|what|the way|compatible|in place|put|byte)\b",
        r"(?:nothing|nobody|no ?one|none)\b.{0,60}\b(?:gets?|goes|go|may|is|are|should|leaves?|must"
        r"|ships?|runs?"
        r"|lands?|touch(?:es)?|writes?|calls?|depends?|but|except|without|newer|older|else|beyond|outside)",
        r"(?:we|it|they|this|that|users?|customers?|nobody|clients?)\s+(?:can(?:'t|not)|can not|mustn't)",
        r"(?:is|are) (?:the|a|our) (?:hard |absolute )?(?:floor|ceiling|limit|minimum|maximum|cap"
        r"|rule|requirement)",
        *("mandatory", "required", "non-negotiable", "requirement", "constraint", "rule"),
        r"every \w+ (?:has|needs|must|should|is|gets)",
        "(?:no|any) (?:new|more|extra|external|third|additional|other)",
        r"(?:must|may|has to|have to|needs? to|should)(?: not|n't)?\b.{0,80}\b(?:be|stay|keep|remain"
        r"|work|support"
        r"|pass|run|survive|build|compile|start|touched|changed)",
        r"(?:don'?t|do not|please avoid|avoid)\b.{0,30}\b(?:pull|add|use|touch|introduce|break|change"
        r"|rename|remove"
        r"|delete|commit|push|write|call|rely|depend|import|install|upgrade|bump)\w*",
        *("niemals", "immer", "jamais", "toujours", "nunca", "siempre"),
        *("keep (?:it|them|this|that|everything|the)", "leave .{1,60} alone"),
    )
    + r"\b|\b(?:everywhere|only)\s*[.!]?$|\beverywhere in\b",
    re.IGNORECASE,
)
_SIGH = (
    r"(?:(?:h+m+|uh+m?|oh|err?|well|ok(?:ay)?|sorry|ah|hey|nah|(?:no)+|nope|wait|stop"
    r"|hold on|please|and|but|so|yes)\b"
    r"[\s,.!:;\u2013\u2014-]*)*"
)
CORRECTION = compile_late(
    _SIGH
    + _any(
        *("actually", "nope", "wait", "stop", "use", "keep", "remember", "important", "note that", "wrong"),
        *("that'?s (?:not|wrong)", "not (?:like )?that", "let'?s (?:not|use)", "only", "undo", "revert"),
        *("i (?:want|need|prefer|said|meant|told|asked)", "rather", "i'?d (?:rather|prefer)", "instead"),
        *("not", "the other way", "i (?:never|didn'?t|did not)", "we (?:never|don'?t|agreed|decided)"),
        r"you(?:'?re| are|'?ve| have|r)?\b.{0,30}\b(?:wrong|twice|forgot|forgotten|missed|missing"
        r"|broke|broken"
        r"|mis\w+|swapped|mixed|confus\w+|overwr\w+|still|again|skipp\w+|ignor\w+|count\w+|changed|removed)",
        r"(?:that|this|it|those|these|they)\b.{0,40}\b(?:should(?:n't)?|isn't|wasn't|aren't|weren't|not|wrong"
        r"|must(?:n't)?|belongs?|supposed)",
        r"(?:the|those|these) .{1,60}\b(?:belongs?|should(?:n't)? (?:be|have|go|stay)|was meant|were meant)",
    )
    + r"\b|(?:no+|nope|nah|wait|stop)\s*[,.!:;\u2013\u2014-]",
    re.IGNORECASE,
)
# A statement, where people at work mostly give orders: it tells what the agent did not know or got wrong.
STATEMENT = compile_late(
    r"(?!(?:what|why|how|where|who|when|which|is|are|was|were|do|does|did|can|could|will|would|should"
    r"|has|have|if)\b)"
    r"[\w'./-]+[ ,]+(?:(?!(?:what|why|how|where|who|when|which|whether|that|if|and|then|to|me|so)\b)"
    r"[\w'./-]+[ ,]+){0,5}?(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|have|had|goes|go|comes?|starts?"
    r"|begins?|ends?|means?|lives?|belongs?|counts?|holds?|returns?|takes?|uses?|needs?|expects?"
    r"|wants?|began|said"
    r"|comes|came|went|changed|moved)\b",
    re.IGNORECASE,
)
APPROVAL = compile_late(
    r"\b(?:good|great|nice|fine|perfect|works|working|thanks|thank you|correct|right|ok|okay|cool"
    r"|lovely|better)\b",
    re.IGNORECASE,
)
CONTRAST = compile_late(
    r"\b(?:not|n't|wrong|instead|rather|you|your|theirs|ours|never|other|opposite|twice|still|again"
    r"|already)\b"
    r"|n't\b",
    re.IGNORECASE,
)
# How a small wish begins that looks like a correction and passes with its turn.
MILD = compile_late(
    r"(?:please )?(?:use|keep|remember|important|note that|only|let'?s|make sure|i want)\b", re.IGNORECASE
)
POLITE = compile_late(r"(?:please|(?:can|could|would|will) you)\b", re.IGNORECASE)
_DOER = r"(?:i|we|i'?ve|we'?ve|i'?m|we'?re|i'?ll|we'?ll|let'?s)"
# Words by which a choice is told as one.
CHOICE = compile_late(
    r"\b"
    + _any(
        *("decided?", "deciding", "chose", "chosen", "choosing", "picked", "opt(?:ed|ing) (?:for|to)"),
        *("go(?:ing)? with", "went with", "gone with", "settled? (?:on|for)", "stick(?:ing)? (?:with|to)"),
        *("landed on", "ended up (?:with|us)", "went for", "going for", "it shall be"),
        *("stuck (?:with|to)", "committed to", "standardi[sz](?:e|ed|ing) on", "agreed on", "in favou?r of"),
        *("trade-?offs?", "i won't", "i will not", "my choice", "our choice", "by design", "on purpose"),
        r"(?:the|my|our|a) (?:best|right|cleanest|simplest|safest|better|only|obvious|sane|sound) "
        r"(?:fix|fit|approach|way|place|option|choice|call|tool|answer|solution|candidate|compromise)",
        # Of code people say "subtracts instead of adding"; only a doer's choice is a decision.
        rf"(?:{_DOER}|us(?:e|ing|ed)|ke(?:ep|pt)|prefer(?:red|ring)?|go(?:es)?)\b.{{1,120}}"
        r"\b(?:instead of|rather than|and not|over (?:an?|the|our|my)|in place of)",
        r"(?:prefer(?:red)?|favou?r(?:ed)?|took|taken)\b.{1,60}\bover",
    )
    + r"\b|\bit is[.!]$|^(?:decision|decided|settled|agreed|resolved|verdict|conclusion"
    r"|design)\s*[:\u2013\u2014-]",
    re.IGNORECASE,
)
# What a statement is called before it is made: "Decision: not X, it does not scale" is a decision still.
LABEL = compile_late(
    r"(?:decision|decided|settled|agreed|resolved|verdict|conclusion|design|rejected|ruled out"
    r"|discarded|tried"
    r"|failed)\s*[:\u2013\u2014-]+\s*",
    re.IGNORECASE,
)
# An announcement, or a state of things, with its purpose or its reason.
_GROUNDS = (
    r"(?:because|since|so that|so the|so we|to avoid|to keep|in order to|otherwise|or else|lest|"
    r"which (?:makes?|keeps?|lets?|means|saves?|avoids?|gives?|leaves?)|(?:that|this) way|then)"
)
PURPOSE = compile_late(
    rf"\b{_DOER}\b.{{1,160}}\b{_GROUNDS}\b"
    r"|\b(?:stays?|lives?|goes|remains?|belongs?|becomes?|gets?|moves?) .{1,120}"
    rf"(?:\b{_GROUNDS}\b|[:;\u2013\u2014])",
    re.IGNORECASE,
)
DECISION = compile_late(
    r"\b(?:because|i'?(?:ll| will| am|m) us(?:e|ing)|we'?(?:ll| will) use)\b", re.IGNORECASE
)
# An approach that was given up for good.
REJECTION = compile_late(
    r"\b"
    + _any(
        *("rul(?:ed|ing|es) (?:it |that |this |them )?out", "reject(?:ed|ing)", "abandon(?:ed|ing)?"),
        *("discard(?:ed|ing)", "scrapped", "shelved", "dismissed", "gave up", "given up", "giving up"),
        *("dropped the", "back(?:ed|ing) out", "dead[ -]end", "no luck", "wrong approach", "undid", "undone"),
        r"(?:took|taken|taking|pulled|ripped) (?:it|that|this|them|the \w+) (?:back )?out",
        *("revert(?:ed|ing)", "rolled back", "not an option", "no option", "out of the question"),
        *("no (?:good|use|go|help|way around)", "ha(?:s|d) no chance", "a non-?starter"),
        r"(?:is|are|was|were|falls?|fell) (?:out(?! of\b)|unusable|unsuitable|unworkable|useless"
        r"|hopeless|too \w+)\b",
        r"(?:did|do|does|will|would|could|can|is|was|are|were)(?:n't| not|not)\s+(?:really |quite |even )?"
        r"(?:work|help|fix|do|scale|fly|hold|cut it|pan out|viable|feasible|possible|usable|good"
        r" enough|keep up)",
        r"(?:won't|can't) (?:do|work|help|scale|fly|hold|keep up|be used)",
        r"turned out (?:to be )?(?:wrong|not|\w+er|too|worse|useless|unusable|un\w+)",
        r"(?:looked|seemed|sounded|was) (?:tempting|promising|attractive|obvious|good|nice|right|simple)"
        r"\b.{1,120}\b(?:but|yet|until|except|though|however)",
        r"(?:tried|attempted|experimented|considered|thought (?:of|about)|toyed|started (?:out )?with"
        r"|began with)"
        r"\b.{1,160}\b(?:but|yet|until|however|then|fails?|failed|breaks?|broke|slow|slower|worse"
        r"|that|which)",
        r"(?:at first|first|initially|originally)[, ]+(?:i|we)\b.{1,160}(?:\bbut\b|\bthat\b|\bwhich\b"
        r"|[;:\u2013\u2014])",
        r"(?:my|the|our) (?:first|initial|original|earlier|previous) (?:idea|attempt|version|approach"
        r"|try|plan)"
        r"\b.{1,160}\b(?:but|fail\w*|broke|breaks?|wrong|slow|until|did(?:n't| not))",
        r"(?:would|could|might|should) have\b.{1,160}\b(?:but|yet|however|except|though)",
        r"(?:path|way|option|idea|approach|route|door|plan|that|this|it|code) (?:is|are|was|were) "
        r"(?:gone|closed|dead|off the table|history|ruled out|not (?:it|the way))",
        r"costs? more than|more trouble than|not worth|isn't worth|failed the \w+",
        r"(?:guess|assumption|idea|approach|version|attempt|theory|plan) (?:was|is|proved|turned out) "
        r"(?:wrong|bad|naive|too|not|unus\w+)",
        *("steer clear of", "against (?:it|that|using)", "that broke", "broke the"),
    )
    + r"\b",
    re.IGNORECASE,
)
FAILURE = compile_late(
    r"\b"
    + _any(
        *("tried", "attempted", "(?:didn't|did not|doesn't|does not) (?:work|help|fix)"),
        "fail(?:ed|s) (?:because|with|again|since|on|for|when)",
        *("still fail(?:s|ed|ing)", "(?:isn't|is not) possible"),
    )
    + r"\b",
    re.IGNORECASE,
)
REASON = compile_late(
    r"\b(?:because|since|so that|in order to|to avoid|due to)\b\s*(?P<why>.+)$|[;:]\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
OUTCOME = compile_late(
    r"(?:(?:,\s*|(?<!\s)\s*)\b(?:but|however|because|and it|yet)\b|[:;,\u2013\u2014])\s*(?P<outcome>.+)$",
    re.IGNORECASE,
)
INTENT = compile_late(
    "(?:now |next,? |then |first,? |so )?"
    + _any(
        *("i'?ll", "i will", "i'?m going to", "i am going to", "let me", "let's", "next", "the next step"),
        *("remaining", "what(?:'s| is) left", "still to do", "todo"),
    )
    + r"\b",
    re.IGNORECASE,
)
