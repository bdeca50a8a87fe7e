"""Find secrets that go over several lines: blocks of private keys, and tokens broken at a line's end."""

import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from agent_relay.domain.text.plain import compile_late
from agent_relay.redact.rules import (
    LONGEST_JUDGED,
    LineRule,
    SecretSpan,
    Token,
    find_all,
    find_in_lines,
    find_tokens,
    is_varied,
)

KIND = "private-key"
# Agents and pagers number the lines they show.
_NUMBER = compile_late(r"\s*\d{1,6}(?:[→:|]|\s)\s*")
_LONGEST = 40_000
_BEGIN = compile_late(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY) ?-{4,5}")
_END = compile_late(r"-{4,5} ?END (?:[A-Z0-9]+ )*(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY) ?-{4,5}")
_ESCAPE = compile_late(r"(?<!\\)\\++[nrt]")
_RUNS = compile_late(r"[A-Za-z0-9+/=]+")
_FIELD = compile_late(r"[A-Z][A-Za-z-]+: .{1,200}")
# What stands around the lines of a key: marks of diffs, quotations and comments, quotes, operators.
_AROUND = " \t\r\\\"'`,;:.#*>|()[]{}-"
_ENCODED_BEGIN = "LS0tLS1CRUdJTi"
_ENCODED_HEAD = 80
_PUTTY = compile_late(r"Private-Lines: *\d+")
_ENOUGH = 40
_PIECE = 20  # no other text shares so many characters in a row with a key
_MOST_PIECES = 100_000  # about sixty keys; a record with more is made up
_LONG_RUN = compile_late(rf"[A-Za-z0-9+/=]{{{_PIECE},}}")
_LONG_WORD = 16  # no line of prose is made of words that long


def find_blocks(text: str) -> Iterator[SecretSpan]:
    """Yield every private key. A header without a key below it is code about keys, and is left."""
    if "PRIVATE KEY" in text or "SECRET KEY" in text:
        yield from _find_marked(text)
    yield from _find_encoded(text)
    marks = [match for at in find_all(text, "Private-Lines:") if (match := _PUTTY.match(text, at))]
    for match, limit in zip(marks, [*(after.start() for after in marks[1:]), len(text)], strict=False):
        # No further than the next one, so that a thousand cost no more than one.
        end = _walk(text, match.end(), limit)
        if _holds_key(text[match.end() : end]):
            yield SecretSpan(match.end(), end, KIND, 0)


def list_key_pieces(blocks: Iterable[str]) -> frozenset[str]:
    """Return all short pieces of these private keys, by which parts of them are recognised."""
    pieces: set[str] = set()
    for block in blocks:
        body = "".join(run for run in _RUNS.findall(_ESCAPE.sub(" ", block)) if len(run) >= _LONG_WORD)
        pieces.update(body[at : at + _PIECE] for at in range(len(body) - _PIECE + 1))
        if len(pieces) > _MOST_PIECES:
            break
    return frozenset(pieces)


def find_key_parts(text: str, pieces: frozenset[str]) -> Iterator[SecretSpan]:
    """Yield the lines that are part of a private key, by the `pieces` of whole ones found elsewhere."""
    for run in _LONG_RUN.finditer(text) if pieces else ():
        # What is the first character here may be the end of an escaped line break.
        if any(text[at : at + _PIECE] in pieces for at in (run.start(), run.start() + 1)):
            yield SecretSpan(run.start(), run.end(), KIND, 0)


def _find_encoded(text: str) -> Iterator[SecretSpan]:
    """Yield keys whose whole block is base64 once more, as settings and Kubernetes carry them."""
    end = 0
    for at in find_all(text, _ENCODED_BEGIN):
        if at < end or not _is_encoded_key(text[at : at + _ENCODED_HEAD]):
            continue
        run = _RUNS.match(text, at)
        end = max(run.end() if run else at, _walk(text, at, len(text)))
        yield SecretSpan(at, end, KIND, 0)


def _is_encoded_key(head: str) -> bool:
    """Return whether the block that begins with `head` in base64 is a secret key: most are not."""
    run = _RUNS.match(head)
    begun = b64decode(head[: len(run[0].rstrip("=")) // 4 * 4]) if run else b""
    return _BEGIN.match(begun.decode("latin-1")) is not None


def _find_marked(text: str) -> Iterator[SecretSpan]:
    """Yield keys at their marks; each is searched only up to the next mark, which keeps this linear."""
    marks = sorted([*_BEGIN.finditer(text), *_END.finditer(text)], key=lambda mark: mark.start())
    edges = [0, *(mark.start() for mark in marks[1:]), len(text)]
    covered = 0
    for index, mark in enumerate(marks):
        after = edges[index + 1]
        if "BEGIN" in mark[0]:
            follower = marks[index + 1] if index + 1 < len(marks) else None
            covered = _walk(text, mark.end(), after)
            if not _holds_key(text[mark.end() : covered]):
                continue
            if follower and "END" in follower[0] and not text[covered:after].strip(_AROUND + "+n\n"):
                covered = follower.end()
            yield SecretSpan(mark.start(), covered, KIND, 0)
        elif mark.start() >= covered:
            before = marks[index - 1].end() if index else 0
            start = _walk_back(text, mark.start(), max(before, covered))
            if _holds_key(text[start : mark.start()]):
                yield SecretSpan(start, mark.end(), KIND, 0)


def _holds_key(body: str) -> bool:
    """Return whether enough of `body` is base64 to be a key."""
    runs = [run for run in _RUNS.findall(_ESCAPE.sub(" ", body)) if len(run) >= _LONG_WORD]
    return sum(map(len, runs)) >= _ENOUGH and any(map(str.isdigit, "".join(runs)))


def _is_key_line(line: str) -> bool:
    """Return whether `line` is a line of a key: base64 and decoration, a header field, or decoration."""
    number = _NUMBER.match(line)
    line = line[number.end() :] if number else line
    words = [word.strip(_AROUND) for word in _ESCAPE.sub(" ", line).split()]
    words = [word.removeprefix("+") for word in words if word not in ("", "+")]
    if all(_RUNS.fullmatch(word) for word in words):
        return all(len(word) >= _LONG_WORD for word in words[:-1])
    return _FIELD.fullmatch(line.strip(_AROUND + "+")) is not None


def _walk(text: str, at: int, limit: int) -> int:
    """Return where the lines of a key that begin at `at` end; at most `limit`."""
    end = at
    limit = min(limit, at + _LONGEST)
    while end < limit:
        stop = text.find("\n", end + 1, limit)
        stop = stop if stop >= 0 else limit
        line = text[end:stop]
        if not _is_key_line(line):
            break
        end = stop
    return at + len(text[at:end].rstrip())


def _walk_back(text: str, at: int, limit: int) -> int:
    """Return where the lines of a key that end at `at` begin; at least `limit`."""
    limit = max(limit, at - _LONGEST)
    start = max(text.rfind("\n", limit, at) + 1, limit)
    if not _is_key_line(text[start:at]):
        return at
    while start > limit:
        above = max(text.rfind("\n", limit, start - 1) + 1, limit)
        line = text[above : start - 1]
        if not line.strip() or not _is_key_line(line):
            break
        start = above
    return start


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


class Unfolded(msgspec.Struct, frozen=True):
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
