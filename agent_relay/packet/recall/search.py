"""Rank turns for a question, and excerpt the best ones around its terms.

Ranking is BM25 over turns, then over the entries inside the best of them.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from agent_relay.domain.text.plain import compile_late
from agent_relay.domain.values import replace
from agent_relay.packet.recall._terms import (
    FAILURE_MARK,
    FIRST_MARK,
    LAST_MARK,
    PLAN_MARK,
    count,
    prepare,
    read_query,
)
from agent_relay.packet.recall.turns import (
    GAP,
    LABELS,
    PASTED,
    EntryKind,
    PastEntry,
    PastTurn,
    quote_lines,
    set_apart,
)

LONGEST_EXCERPT = 800
"""The maximum length of an excerpt, in characters."""
MOST_FOUND = 10
"""The most turns that one search returns."""

_LONGEST_ENTRY = 48_000
_MOST_CLEANED = 200_000
_MARGIN = 4000
"""Characters next to a cut that are not quoted: they may be part of a secret that was cut in half."""
_LONGEST_PIECE = 240
_LEAST_PIECE = 12
_SHORT_LINES = 60
_REACH = 40
# The usual values of BM25; turns differ in length by what their commands print, which matters less.
_K1, _B = 1.2, 0.6
_CANDIDATES = 40
_RECENCY = 0.1
_KIND_WEIGHT: dict[EntryKind, float] = {
    "prompt": 1.25,
    "pasted": 1.25,
    "summary": 1.1,
    "error": 1.1,
    "edit": 0.9,
    "before": 0.8,
    "after": 0.8,
}
# Parts of the record that a question may name instead of words from a turn.
_MARKS: dict[EntryKind, bytes] = {"error": FAILURE_MARK, "plan": PLAN_MARK}
_SENTENCE = compile_late("(?<=[.!?;\u3002\uff01\uff1f])\\s+|(?<=[\u3002\uff01\uff1f])")


class Search:
    """One question to some turns, which it ranks and excerpts around the question's terms."""

    def __init__(self, turns: Sequence[PastTurn], query: str) -> None:
        self._turns = turns
        self._terms = read_query(query)
        self._worth: tuple[float, ...] = ()
        self._average = 1.0

    @property
    def asks_anything(self) -> bool:
        """True if the question contains a word to search for."""
        return bool(self._terms)

    def rank(self, limit: int) -> list[tuple[PastTurn, float]]:
        """Return the best turns with their scores, best first; only turns that contain a term."""
        found = []
        for turn, mark in zip(self._turns, _mark_ends(self._turns), strict=True):
            data = b"".join(map(_prepare, turn.entries)) + mark
            found.append((turn, [count(data, term) for term in self._terms], len(data)))
        self._weigh([counts for _, counts, _ in found], [size for _, _, size in found])
        # Of two equally good turns the newer one is preferred: most questions mean "what is it now".
        newest = max(1, len(found) - 1)
        scored = [
            (self._score(counts, size) * (1 + _RECENCY * at / newest), at)
            for at, (_, counts, size) in enumerate(found)
        ]
        best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], -row[1]))
        again = [(score + self._score_entries(self._turns[at]), at) for score, at in best[:_CANDIDATES]]
        again.sort(key=lambda row: (-row[0], -row[1]))
        return [(self._turns[at], score) for score, at in again[:limit]]

    def excerpt(self, turn: PastTurn, clean: Callable[[str], str], *, most: int = LONGEST_EXCERPT) -> str:
        """Return the parts of `turn` that answer best, in their order, at most `most` characters.

        `clean` prepares a text for display; it is given whole texts, or a wide part of a long one.
        """
        cleaned = [self._clean(entry, clean) for entry in self._select(turn.entries)]
        entries = [part for entry in cleaned for part in set_apart(entry)]
        pieces = [(piece, entry.kind) for entry in entries for piece in _split(entry)]
        scores = [
            self._score_piece(piece, _MARKS.get(kind, b"")) * _KIND_WEIGHT.get(kind, 1.0)
            for piece, kind in pieces
        ]
        first = next((at for at, (_, kind) in enumerate(pieces) if kind == "prompt"), 0)
        has_pasted = any(kind == "pasted" for _, kind in pieces)
        room = most - len(PASTED) - 1 if has_pasted else most
        chosen = _choose([piece for piece, _ in pieces], scores, room, first=first)
        lines: list[str] = []
        for before, at in zip([-1, *chosen], chosen, strict=False):
            if at != before + 1:
                lines.append(GAP)
            piece, kind = pieces[at]
            if kind == "pasted" and PASTED not in lines:
                lines.append(PASTED)
            lines.append(piece)
        return "\n".join(lines)[:most]

    def _select(self, entries: Sequence[PastEntry]) -> list[PastEntry]:
        """Return the entries to excerpt: all of the turn's, or the best ones of a very long turn."""
        room, chosen = _MOST_CLEANED, set[int]()
        worth = {at: self._score_piece(entry.whole) for at, entry in enumerate(entries)}
        for at in sorted(worth, key=lambda at: (entries[at].kind != "prompt", -worth[at])):
            room -= min(len(entries[at].whole), _LONGEST_ENTRY)
            if room < 0 and chosen:
                break
            chosen.add(at)
        return [entries[at] for at in sorted(chosen)]

    def _clean(self, entry: PastEntry, clean: Callable[[str], str]) -> PastEntry:
        head = clean(entry.head)
        if entry.kind == "before":
            return PastEntry("before", clean(entry.text[-_LONGEST_ENTRY:]))
        if entry.kind == "after":
            return PastEntry("after", clean(entry.text[:_LONGEST_ENTRY]))
        if len(entry.text) <= _LONGEST_ENTRY:
            return replace(entry, text=clean(entry.text), head=head)
        step = _LONGEST_ENTRY // 3
        best = max(
            range(0, len(entry.text), step), key=lambda at: self._score_piece(entry.text[at : at + step])
        )
        begin, end = max(0, best - step), min(len(entry.text), best + 2 * step)
        text = clean(entry.text[begin:end])
        # A text cut before its secrets were removed may begin or end with half of one.
        kept = text[_MARGIN if begin else 0 : -_MARGIN if end < len(entry.text) else None]
        if begin and entry.kind == "prompt":
            # Nobody types so much.
            return PastEntry("pasted", kept, PASTED)
        return replace(entry, text=kept, head=head)

    def _weigh(self, counts: Sequence[Sequence[float]], sizes: Sequence[int]) -> None:
        """Compute the value of each term from how few turns contain it, and the average length of a turn."""
        total = len(counts)
        self._average = max(1.0, sum(sizes) / max(1, total))
        worth = []
        for at, term in enumerate(self._terms):
            holding = sum(1 for row in counts if row[at] >= _K1 / 4)
            worth.append(term.weight * math.log(1 + (total - holding + 0.5) / (holding + 0.5)))
        self._worth = tuple(worth)

    def _score(self, counts: Sequence[float], size: int) -> float:
        norm = _K1 * (1 - _B + _B * size / self._average)
        pairs = zip(counts, self._worth, strict=True)
        return sum(worth * found * (_K1 + 1) / (found + norm) for found, worth in pairs if found)

    def _score_entries(self, turn: PastTurn) -> float:
        """Return how well the best entry alone answers: terms that occur together mean more."""
        return max(
            (self._score_text(one) * _KIND_WEIGHT.get(one.kind, 1) for one in turn.entries), default=0.0
        )

    def _score_text(self, entry: PastEntry) -> float:
        data = _prepare(entry)
        return self._score([count(data, term) for term in self._terms], len(data))

    def _score_piece(self, text: str, mark: bytes = b"") -> float:
        """Return how much of the question a short text covers."""
        data = prepare(text) + mark
        held = (
            min(1.0, count(data, term)) * worth for term, worth in zip(self._terms, self._worth, strict=True)
        )
        return sum(held)


def _mark_ends(turns: Sequence[PastTurn]) -> list[bytes]:
    """Return the marks of each turn: some questions ask for a leg's first or last turn."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, turn in enumerate(turns):
        if turn.number:
            first.setdefault(turn.leg, at)
            last[turn.leg] = at
    ends = dict.fromkeys(first.values(), FIRST_MARK)
    for at in last.values():
        ends[at] = ends.get(at, b"") + LAST_MARK
    return [ends.get(at, b"") for at in range(len(turns))]


def _prepare(entry: PastEntry) -> bytes:
    return prepare(entry.whole) + _MARKS.get(entry.kind, b"")


def _split(entry: PastEntry) -> list[str]:
    """Split an entry into its lines, long ones by sentence; the first piece has the entry's label.

    Pieces of what was pasted have a mark before each line instead, and no head.
    """
    label = LABELS.get(entry.kind, "")
    lines = [line for line in entry.shown.split("\n") if line.strip()]
    is_pasted = entry.kind == "pasted"
    pieces = [entry.head[:_LONGEST_PIECE]] if entry.head and not is_pasted else []
    begun = len(pieces)
    for line in lines:
        # Short lines are joined: there may be very many of them.
        if len(pieces) > begun and len(pieces[-1]) + len(line) < _SHORT_LINES:
            pieces[-1] = f"{pieces[-1]}\n{line.rstrip()}"
        else:
            pieces += _split_line(line.rstrip())
    if is_pasted:
        return [quote_lines(piece) for piece in pieces]
    if label and pieces:
        pieces[0] = label + pieces[0]
        pieces[-1] += ")" if label.startswith("(") else ""
    return pieces


def _split_line(line: str) -> list[str]:
    if len(line) <= _LONGEST_PIECE:
        return [line]
    pieces: list[str] = []
    for sentence in _SENTENCE.split(line):
        if pieces and len(pieces[-1]) + len(sentence) < _LONGEST_PIECE:
            pieces[-1] = f"{pieces[-1]} {sentence}"
        else:
            pieces += [sentence[at : at + _LONGEST_PIECE] for at in range(0, len(sentence), _LONGEST_PIECE)]
    return pieces


def _choose(pieces: Sequence[str], scores: Sequence[float], most: int, *, first: int) -> list[int]:
    """Choose the pieces to show: the prompt's `first`, the best, then their neighbours, as room allows."""
    # Each piece may come with a gap mark and two line feeds, and the first with a gap before it.
    room = most - len(GAP)
    chosen: set[int] = set()
    order = sorted(range(len(pieces)), key=lambda at: (at != first, -scores[at], at))
    best = [at for at in order if at == first or scores[at] > 0]
    for at in (*best, *_list_neighbours(best, len(pieces))):
        cost = len(pieces[at]) + len(GAP) + 2
        if room <= _LEAST_PIECE:
            break
        if at not in chosen and cost <= room:
            chosen.add(at)
            room -= cost
    return sorted(chosen)


def _list_neighbours(places: Sequence[int], end: int) -> Iterator[int]:
    """Yield the positions around each of `places`, nearest first."""
    for reach in range(1, min(end, _REACH)):
        for at in sorted(places[:_REACH]):
            yield from (near for near in (at + reach, at - reach) if 0 <= near < end)
