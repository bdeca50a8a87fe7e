"""Remove secrets from a text: apply all rules to the same original, then replace once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agent_relay.domain.text.plain import clean_text
from agent_relay.redact._login_rules import RULES
from agent_relay.redact._multiline_secrets import (
    find_blocks,
    find_folded,
    find_key_parts,
    list_key_pieces,
)
from agent_relay.redact._named_values import WORDS, find_assignments
from agent_relay.redact._prose_secrets import STEMS, find_prose_secrets
from agent_relay.redact._provider_tokens import FOLDING, build_line_rules, build_tokens, find_by_punctuation
from agent_relay.redact.known_values import EMPTY_ALLOW_LIST, AllowList, build_known, find_known
from agent_relay.redact.rules import PLACEHOLDER, SecretSpan, find_in_lines, find_tokens

_TOKENS = build_tokens()
_LINE_RULES = build_line_rules()
# Formats without a literal beginning that may go over a line end as well.
_FOLDING = (*(rule for rule in _LINE_RULES if rule.hint == "-us"), *FOLDING)
# Which name a secret gets that several rules found.
_BLOCK, _TOKEN, _ADDRESS, _ADOPTED, _NAMED, _PROSE, _KNOWN = range(7)


class Redacted(msgspec.Struct, frozen=True):
    """A text without its secrets, how many of each kind were removed, and how many the user's list spared."""

    text: str
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    spared: Mapping[str, int] = msgspec.field(default_factory=dict)


def redact_text(
    text: str,
    *,
    known: frozenset[str] = frozenset(),
    allow: AllowList = EMPTY_ALLOW_LIST,
    keys: frozenset[str] = frozenset(),
) -> Redacted:
    """Return `text` with every secret replaced by `[redacted: <kind>]`; a second time changes nothing.

    `known` are values that are secret wherever they occur, such as those of the user's environment; what
    `allow` spares stays, unless it is part of something larger that it does not spare. `keys` are the pieces
    by which parts of private keys are recognised (`collect_keys`).
    """
    found = [*find_key_parts(text, keys), *_find_all(text, known)]
    found.sort(key=lambda span: (span.start, -span.end))
    spared = [] if allow is EMPTY_ALLOW_LIST else [span for span in found if allow.spares(text, span)]
    stays = frozenset(spared)
    spans = _merge([span for span in found if span not in stays])
    counts = Counter(span.kind for span in _merge(spared) if not any(_overlap(span, one) for one in spans))
    if not spans:
        return Redacted(text, spared=counts)
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], f"{PLACEHOLDER}{span.kind}]")
        done = span.end
    pieces.append(text[done:])
    return Redacted("".join(pieces), Counter(span.kind for span in spans), counts)


def collect_keys(texts: Iterable[str], allow: AllowList = EMPTY_ALLOW_LIST) -> frozenset[str]:
    """Return the pieces of all private keys in `texts` that `allow` does not spare.

    Lines from the middle of a key look like any base64: only the whole key, elsewhere, gives them away.
    """
    return list_key_pieces(
        text[span.start : span.end]
        for text in texts
        for span in find_blocks(text)
        if not allow.spares(text, span)
    )


def redact_words(text: str, *, known: frozenset[str] = frozenset()) -> str:
    """Return `text` without secrets, also those that are split by control characters.

    Control characters that split no secret stay: the code that shows the text removes them.
    """
    found = redact_text(text, known=known).text
    shown = redact_text(clean_text(found), known=known)
    return shown.text if shown.counts else found


def _find_all(text: str, known: frozenset[str]) -> Iterator[SecretSpan]:
    lower = text.lower()
    if len(lower) != len(text):  # a few letters grow in lower case and would shift every place behind them
        lower = "".join(letter if letter > "\x7f" else letter.lower() for letter in text)
    yield from find_blocks(text)
    # Asked first, because almost no text holds any of them and asking is much cheaper than seeking.
    for token in (token for token in _TOKENS if token.prefix in text):
        for match in find_tokens(text, token, token.pattern):
            yield SecretSpan(match.start(), match.end(), token.kind, _TOKEN)
    yield from find_folded(text, _TOKENS, _FOLDING, rank=_TOKEN)
    for rule in (rule for rule in RULES if rule.hint in lower):
        yield from find_in_lines(text, lower, rule, rank=_ADDRESS)
    for rule in (rule for rule in _LINE_RULES if rule.hint in lower):
        yield from find_in_lines(text, lower, rule, rank=_ADOPTED)
    yield from find_by_punctuation(text, rank=_ADOPTED)
    yield from find_assignments(text, lower, rank=_NAMED)
    yield from find_prose_secrets(text, lower, rank=_PROSE)
    yield from find_known(text, build_known(known), rank=_KNOWN)


def _overlap(one: SecretSpan, other: SecretSpan) -> bool:
    return one.start < other.end and other.start < one.end


def _merge(spans: list[SecretSpan]) -> list[SecretSpan]:
    """Merge overlapping spans into one, named by the rule with the lowest rank."""
    merged: list[SecretSpan] = []
    for span in spans:
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            merged.append(span)
            continue
        best = min(last, span, key=lambda one: one.rank)
        merged[-1] = SecretSpan(last.start, max(last.end, span.end), best.kind, best.rank)
    return merged


def list_literals() -> tuple[str, ...]:
    """Return the literals the rules look for first, each once; texts built of them are the slowest."""
    rules = (*RULES, *_LINE_RULES, *FOLDING)
    hints = (*(token.prefix for token in _TOKENS), *(rule.hint for rule in rules))
    return tuple(
        dict.fromkeys(
            (*hints, "-----BEGIN PRIVATE KEY-----", "Private-Lines: 1", "LS0tLS1CRUdJTi", *WORDS, *STEMS)
        )
    )
