"""How much a statement of an agent's says about how things are meant to be, and about what did not do."""

from functools import lru_cache

from agent_relay.logic.packet.phrases import CHOICE, LABEL, PURPOSE, REJECTION, fold
from agent_relay.logic.packet.signs import (
    ABSOLUTE,
    ADVICE,
    AGAINST,
    CONCESSION,
    EXPERIMENT,
    GROUND,
    HARM,
    HEDGE,
    NARRATION,
    POLICY,
    RECOVERED,
    REPORT,
    VERDICT,
)

ARROW = " → "
"""Between what was asked and what was answered."""
FIRM = 3
"""The weight from which on a statement is told as what it is."""
_TOLD = 4
_MOST = 6
_AT_HAND = 64
"""How many statements' weights are kept: a statement is asked about several times in a row."""


def weigh(text: str) -> int:
    """How much a statement is missed: from 0 to 6, `FIRM` and more for a choice or a rejection."""
    plain = fold(text)
    return max(weigh_choice(plain), weigh_refusal(plain))


@lru_cache(_AT_HAND)
def weigh_choice(plain: str) -> int:
    """How sure a folded statement is a choice."""
    if NARRATION.match(plain):
        return 0
    weight = _TOLD if CHOICE.search(plain) else 2 if PURPOSE.search(plain) else 0
    weight += 2 * bool(ADVICE.search(plain)) + 2 * (f"?{ARROW}" in plain)
    weight += sum(bool(sign.search(plain)) for sign in (POLICY, ABSOLUTE, AGAINST, GROUND))
    weight -= 2 * bool(REPORT.search(plain)) + 2 * bool(HEDGE.search(plain))
    return max(0, min(_MOST, weight))


@lru_cache(_AT_HAND)
def weigh_refusal(plain: str) -> int:
    """How sure a folded statement is that something will not do: it was tried to no good, or left."""
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
    """Whether a folded sentence alone tells of something settled; what was given up is no decision."""
    if CHOICE.search(plain):
        label = LABEL.match(plain)
        return not REJECTION.search(plain) or bool(label and CHOICE.match(label[0]))
    return weigh_choice(plain) >= max(FIRM, weigh_refusal(plain))


def is_failure(plain: str) -> bool:
    """Whether a folded sentence tells of something tried in vain."""
    return weigh_refusal(plain) >= FIRM
