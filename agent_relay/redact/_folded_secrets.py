"""Find secrets that a terminal, a mail or a diff broke over line ends: the same rules on unfolded text."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from agent_relay.domain.text.patterns import compile_late
from agent_relay.redact.rules import (
    LONGEST_JUDGED,
    LineRule,
    SecretSpan,
    Token,
    find_in_lines,
    find_tokens,
    is_varied,
)

# A break: the end of a line, real or escaped, then indentation and perhaps the mark of a diff or a
# quotation. What may end the line before (a quote, an operator, a continuation) is looked at separately.
_BREAK = compile_late(
    r"(?:\n|(?<!\\)\\++(?:r\\*+)?n)[ \t]*+"
    r"(?:[+|>](?=[ \t\w\"'+/=.:%-])[ \t]*+|(?P<minus>-)[ \t]*+(?=[\w\"']))?"
    r"(?:\\*+[\"'`])?(?=[\w+/=.:%-])"
)
_BEFORE = compile_late(r"[\w+/=.:%-](?P<end>(?:\\*[\"'`][ \t]*[+.]?)?[ \t]*\\?\r?)\Z")
_LONGEST_BEFORE = 8
_WORD_BEFORE = compile_late(r"[A-Za-z0-9]\Z(?<!\\[nrtbf])(?<!%[0-9A-Fa-f]{2})")
_MOST_FOLDS = 12
_TAIL = 12


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A text without its line breaks, with the places of its characters in the original."""

    text: str
    starts: tuple[int, ...]
    shifts: tuple[int, ...]
    edges: frozenset[int]

    def place(self, at: int) -> int:
        """Return the place of character `at` in the original; right after a fold, the place behind it."""
        index = bisect_right(self.starts, at) - 1
        return at + (self.shifts[index] if index >= 0 else 0)

    def folds_between(self, start: int, end: int) -> tuple[int, ...]:
        """Return the places of folds strictly between `start` and `end`."""
        return self.starts[bisect_right(self.starts, start) : bisect_right(self.starts, end - 1)]


def unfold(text: str) -> Unfolded:
    """Return `text` without the line breaks between characters of words, and without their marks."""
    pieces: list[str] = []
    starts: list[int] = []
    shifts: list[int] = []
    done = removed = 0
    for match in _BREAK.finditer(text):
        before = _BEFORE.search(text, max(match.start() - _LONGEST_BEFORE, done), match.start())
        if before is None:
            continue
        start, end = before.start("end"), match.end()
        if match["minus"] and text[text.rfind("\n", 0, match.start()) + 1] != "-":
            end = match.start("minus")  # only below another removed line is it the mark of one
        pieces.append(text[done:start])
        removed += end - start
        starts.append(end - removed)
        shifts.append(removed)
        done = end
    pieces.append(text[done:])
    return Unfolded("".join(pieces), tuple(starts), tuple(shifts), frozenset(starts))


def find_folded(
    text: str, tokens: tuple[Token, ...], rules: tuple[LineRule, ...], *, rank: int
) -> Iterator[SecretSpan]:
    """Yield secrets that go over a line end; those within one line are found by the other rules."""
    if "\n" not in text and "\\n" not in text:
        return
    view = unfold(text)
    if not view.starts:
        return
    for token in (token for token in tokens if token.prefix in view.text):
        for match in find_tokens(view.text, token, token.bare):
            if is_varied(match[0][:LONGEST_JUDGED]):
                yield from _place(view, match, token.kind, rank, token.bare if token.open_ended else None)
    lower = view.text.lower()
    for rule in rules:
        for found in find_in_lines(view.text, lower, rule, rank=rank):
            if view.folds_between(found.start, found.end):
                yield SecretSpan(view.place(found.start), view.place(found.end - 1) + 1, found.kind, rank)


def _place(
    view: Unfolded, match: re.Match[str], kind: str, rank: int, open_ended: re.Pattern[str] | None
) -> Iterator[SecretSpan]:
    """Yield the match's place in the original, if it is a word of its own and goes over a fold."""
    start, end, text = match.start(), match.end(), view.text
    folds = view.folds_between(start, end)
    if not folds or len(folds) > _MOST_FOLDS:
        return
    if start not in view.edges and _WORD_BEFORE.search(text, max(0, start - 3), start):
        return
    if open_ended:
        end = _end_of_tail(view, open_ended, match, folds)
    elif end < len(text) and text[end].isalnum() and end not in view.edges:
        return
    if view.folds_between(start, end):
        yield SecretSpan(view.place(start), view.place(end - 1) + 1, kind, rank)


def _end_of_tail(
    view: Unfolded, pattern: re.Pattern[str], match: re.Match[str], folds: tuple[int, ...]
) -> int:
    """Return where a token without a fixed length ends: the next line may be its rest, or just a next line.

    Up to its least length it must go on; beyond that, a piece belongs to it if it looks generated, not
    written.
    """
    bounds = [*folds, match.end()]
    end = next(
        bound
        for bound in bounds
        if bound == match.end() or pattern.fullmatch(view.text, match.start(), bound)
    )
    for begin, stop in zip(folds, bounds[1:], strict=True):
        if begin < end:
            continue
        if not _is_tail(view, begin, stop):
            break
        end = stop
    return end


def _is_tail(view: Unfolded, begin: int, stop: int) -> bool:
    piece = view.text[begin:stop]
    letters, digits = any(map(str.isalpha, piece)), any(map(str.isdigit, piece))
    mixed = piece[1:].lower() != piece[1:] and piece.upper() != piece
    alone = stop in view.edges or stop == len(view.text) or view.text[stop] in "\n\"'`,;)\\"
    return letters and ((digits and len(piece) >= _TAIL) or (alone and (digits or mixed)))
