"""Judge whether a value after a telling name is a secret or ordinary code."""

import re
from itertools import pairwise

from agent_relay.domain.text.patterns import compile_late

_TEMPLATE = compile_late(
    r"\$[({A-Za-z_]|\$\$|\{\{|\{[\w.:!]*\}|%[({]|%[sdrv]\b|%[A-Z_]+%|<[^<>]*>|#\{|\.\.\.|…|\*{3}|\[redacted",
    re.ASCII,
)
_WORD_IN_PLACE = (
    r"your|my|the|some|any|a|an|insert|enter|change|replace|put|add|dummy|fake|sample|example|placeholder"
    r"|redacted|hidden|masked|todo|xxx++|foo|bar|baz|test|testing|none|null|nil|true|false|undefined|empty"
    r"|default|invalid|wrong|bad|good|old|new|secret|secrets|password|passwd|passphrase|pass|pwd|token|key"
    r"|value|string|here|me|this|it|user|username|api|access|auth|bearer|basic|admin|root|guest|demo"
)
_STAND_IN = compile_late(rf"(?:{_WORD_IN_PLACE})+", re.IGNORECASE)
_NO_LETTERS = compile_late(r"(?<!\\)\\++[nrt]|[^A-Za-z]")
_TYPE = compile_late(
    r"(?:string|str|boolean|bool|bytes|integer|int|number|float|object|array|any)\??", re.IGNORECASE
)
_POSSESSIVE = compile_late(
    r"(?:my|your|the|some|example)[-_ ]?(?:\w{1,30}[-_ ])?(?:pass\w*|secret|token|key)", re.IGNORECASE
)
_PART = compile_late(r"[A-Za-z]*\d{0,5}|\d{1,4}[a-z]{1,3}")
_SPLIT = compile_late(r"[-_.:/@#, ]+|(?<=[a-z])(?=[A-Z])")
_CODE = compile_late(r"[()\[\]{}<>|\\]|::|->|=>")
_PATTERN = compile_late(r"\(\?|\[\^|\[\w-\w|\\[wsdbWSDBAZ.]|\.\*|\|.*\||\)[+*?{]|\][+*?{]")
_ATTRIBUTE = compile_late(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PATH = compile_late(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|file:|https?:|arn:|urn:)[^@]*\Z")
_NUMBER = compile_late(r"[-+$€#]?[\d_,.:x]+(?:e\d+)?[a-zA-Z%]{0,3}")
_VERSION = compile_late(r"v?\d+(?:[.-]\w+)*")
_LONG = 20
_ROW = 2
_LEAST_WORDS, _MOST_WORDS = 4, 12
_WORDS_ALONE = compile_late(r"[a-z]{3,16}(?: [a-z]{3,16})+")
# Hardly a sentence does without one of them, and word lists for passphrases hold next to none.
_SENTENCE = compile_late(
    r"\b(?:the|and|for|not|are|was|has|have|had|must|may|can|will|shall|should|would|could|does|did|you|your|our"
    r"|their|its|this|that|these|those|with|from|into|onto|over|than|then|them|they|she|him|her|his|who|what|when"
    r"|where|which|while|how|why|all|any|some|one|two|per|via|use|used|using|set|get|see|let|but|also|only|least"
    r"|most|more|less|please|enter|type|choose|changed?|repeat|confirm|forgot|reset|invalid|wrong|missing|required"
    r"|optional|default|empty|passw(?:or)?d|passphrase|secret|token|key|user|username|value|string|characters?"
    r"|words?|letters|digits|long|short|new|old|same|match|field|login)\b"
)


def is_stand_in(value: str) -> bool:
    """Return whether `value` is a placeholder: template, type, repeated character, `your-key-here`."""
    if _TEMPLATE.search(value) or _POSSESSIVE.search(value) or _TYPE.fullmatch(value):
        return True
    bare = _NO_LETTERS.sub("", value)
    return len(set(value)) <= _ROW or (bare != "" and _STAND_IN.fullmatch(bare) is not None)


def is_phrase(value: str) -> bool:
    """Return whether `value` is a passphrase of several words: words drawn at random make no sentence."""
    return (
        _WORDS_ALONE.fullmatch(value) is not None
        and _LEAST_WORDS <= value.count(" ") + 1 <= _MOST_WORDS
        and _SENTENCE.search(value) is None
    )


def is_wordy(value: str) -> bool:
    """Return whether `value` is made of words, each perhaps numbered, as names are: `auth-token-2`."""
    return all(_PART.fullmatch(part) for part in _SPLIT.split(value)) and not _is_scrambled(value)


def is_code(value: str) -> bool:
    """Return whether an unquoted `value` is an expression: a call, index, generic type or attribute."""
    return _CODE.search(value) is not None or _ATTRIBUTE.fullmatch(value) is not None


def is_pattern(value: str) -> bool:
    """Return whether a quoted `value` is a regular expression or a glob."""
    return _PATTERN.search(value) is not None


def looks_secret(value: str, *, least: int) -> bool:
    """Return whether `value`, of at least `least` characters, looks generated rather than written."""
    if len(value) < least or any(map(str.isspace, value)) or not value.isprintable():
        return False
    if is_stand_in(value) or is_wordy(value) or is_pattern(value):
        return False
    if _PATH.match(value) and not _is_scrambled(value):
        return False
    if _NUMBER.fullmatch(value) or _VERSION.fullmatch(value):
        return len(value) >= _LONG
    return any(map(str.isalpha, value)) and any(not c.isalpha() and c not in "_-./:," for c in value)


def _is_scrambled(value: str) -> bool:
    """Return whether case, or letter and digit, change as often as only in generated values."""
    if len(value) < _LONG:
        return False
    kinds = [0 if c.isdigit() else 1 if c.islower() else 2 for c in value if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= len(kinds) * 0.35
