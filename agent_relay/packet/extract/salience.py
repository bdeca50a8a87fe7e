"""Weigh how surely a statement expresses a choice, or something that was tried in vain.

No sign alone marks a choice; several of them together do.
"""

from functools import lru_cache

from agent_relay.packet.extract.phrases import get_phrases, plain_apostrophes

_CHOICE = get_phrases("choice")
_PURPOSE = get_phrases("purpose")
_ADVICE = get_phrases("advice")
_POLICY = get_phrases("policy")
_ABSOLUTE = get_phrases("absolute")
_COMPARISON = get_phrases("comparison")
_GROUNDS = get_phrases("grounds")
_REPORT = get_phrases("report")
_HEDGE = get_phrases("hedge")
_NARRATION = get_phrases("narration")
_LABEL = get_phrases("label")
_REJECTION = get_phrases("rejection")
_EXPERIMENT = get_phrases("experiment")
_HARM = get_phrases("harm")
_ABANDONMENT = get_phrases("abandonment")
_CONCESSION = get_phrases("concession")
_RECOVERED = get_phrases("recovered")
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
    if _NARRATION.match(plain):
        return 0
    weight = _TOLD if _CHOICE.search(plain) else 2 if _PURPOSE.search(plain) else 0
    weight += 2 * bool(_ADVICE.search(plain)) + 2 * (f"?{ARROW}" in plain)
    weight += sum(bool(sign.search(plain)) for sign in (_POLICY, _ABSOLUTE, _COMPARISON, _GROUNDS))
    weight -= 2 * bool(_REPORT.search(plain)) + 2 * bool(_HEDGE.search(plain))
    return max(0, min(_MOST, weight))


@lru_cache(_AT_HAND)
def weigh_refusal(plain: str) -> int:
    """Weigh from 0 to 6 how surely a statement rejects something: it was tried in vain, or dropped.

    Its apostrophes are plain.
    """
    if _NARRATION.match(plain) or _RECOVERED.search(plain):
        return 0
    told, tried, left = (bool(sign.search(plain)) for sign in (_REJECTION, _EXPERIMENT, _ABANDONMENT))
    harm = bool(_HARM.search(plain))
    if not (told or left or (tried and harm)):
        return 0
    weight = 2 * tried + 2 * left + harm + bool(_CONCESSION.search(plain))
    weight = max(_TOLD * told, weight - 2 * bool(_REPORT.search(plain)))
    return max(0, min(_MOST, weight))


def is_decision(plain: str) -> bool:
    """Check whether a sentence by itself states a decision; what was given up is no decision.

    Its apostrophes are plain.
    """
    if _CHOICE.search(plain):
        label = _LABEL.match(plain)
        return not _REJECTION.search(plain) or bool(label and _CHOICE.match(label[0]))
    return weigh_choice(plain) >= max(FIRM, weigh_refusal(plain))


def is_failure(plain: str) -> bool:
    """Check whether a sentence (with plain apostrophes) reports something tried in vain."""
    return weigh_refusal(plain) >= FIRM
