"""Define a redaction rule: a kind of secret, the literals that must be near, and the pattern that decides."""

import re
from collections.abc import Callable, Iterator

import msgspec

# A word may begin after anything but a letter or digit, and after what JSON, URLs and colours put there.
LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9]m))"
RIGHT = r"(?![A-Za-z0-9])"
PLACEHOLDER = "[redacted: "
LONGEST_JUDGED = 4000
"""Characters that show whether a generator made a word; the rest of a long word is not looked at."""
_LINE_BYTES = 4000
_MOST_TRIES = 8
_WORD = re.compile(r"[A-Za-z0-9_.=+/%-]*+")


class SecretSpan(msgspec.Struct, frozen=True):
    """A secret found: characters `start` to `end`. Of two that overlap, the lower `rank` names it."""

    start: int
    end: int
    kind: str
    rank: int


class Token(msgspec.Struct, frozen=True):
    """A secret that is recognised by how it begins. `pattern` is matched where `prefix` was found.

    `bare` is the same without checking what surrounds it. `open_ended` means that the token ends only at the
    first foreign character, so that the rest of it may follow after a line end.
    """

    kind: str
    prefix: str
    pattern: re.Pattern[str]
    bare: re.Pattern[str]
    open_ended: bool
    accept: Callable[[str], bool]


class LineRule(msgspec.Struct, frozen=True):
    """A secret recognised inside a line that holds `hint` (lower case). Group 1 is the secret, else all."""

    kind: str
    hint: str
    pattern: re.Pattern[str]
    accept: Callable[[str], bool]


def find_all(text: str, literal: str) -> Iterator[int]:
    """Yield every place where `literal` begins in `text`."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


def find_tokens(text: str, token: Token, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield each accepted match of `pattern`, one of `token`'s two, where its prefix occurs in `text`.

    A word may hold the prefix thousands of times, and each time the rest of the word would be read and judged
    anew. After `_MOST_TRIES` in vain the rest of such a word is skipped, which makes the whole linear.
    """
    done = word_end = tries = 0
    for at in find_all(text, token.prefix):
        if at < done:
            continue
        match = pattern.match(text, at)
        if match and token.accept(match[0][:LONGEST_JUDGED]):
            done = match.end()
            tries = 0
            yield match
        elif token.open_ended:
            if at >= word_end:
                word = _WORD.match(text, at)
                word_end, tries = word.end() if word else at, 0
            tries += 1
            if tries >= _MOST_TRIES:
                done = word_end


def find_in_lines(text: str, lower: str, rule: LineRule, *, rank: int) -> Iterator[SecretSpan]:
    """Yield what `rule` finds in lines of `text` that hold its hint; `lower` is `text` in lower case."""
    done = -1
    for at in find_all(lower, rule.hint):
        if at < done:
            continue
        start = max(text.rfind("\n", 0, at) + 1, at - _LINE_BYTES, done)
        end = text.find("\n", at)
        done = min(end if end >= 0 else len(text), at + _LINE_BYTES)
        for match in rule.pattern.finditer(text, start, done):
            group = 1 if match.re.groups and match[1] is not None else 0
            if rule.accept(match[group]):
                yield SecretSpan(match.start(group), match.end(group), rule.kind, rank)


def is_varied(secret: str) -> bool:
    """Return whether `secret` could come from a generator: no row of x, no words in lower case."""
    lower, upper = secret.lower() != secret, secret.upper() != secret
    return len(set(secret)) >= min(8, len(secret)) and (
        any(character.isdigit() for character in secret) or (lower and upper)
    )
