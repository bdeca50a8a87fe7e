"""Find which turns took back, replaced or corrected what an earlier one did or said.

Edits are matched by their lines alone, prompts by words that only two or three of them share.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from agent_relay.domain.facts import FileChange, Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes, split_sentences
from agent_relay.packet.extract.terms import list_words

_CORRECTS = get_phrases("corrects")
_RETRACTION = get_phrases("retraction")
_OUTRIGHT = get_phrases("outright-correction")
_RULE_CHANGE = get_phrases("rule-change")
_OPPOSES = get_phrases("opposes")
_SIGNS = (_CORRECTS, _RETRACTION, _OUTRIGHT, _RULE_CHANGE)
# The weight of the words that two prompts, and no third one, must share. Two characters of a script without
# spaces count as half a word, and so do three letters: among few prompts, every article is rare.
_SHARED = 5
# Less is enough where the user says explicitly that they correct something.
_SHARED_OUTRIGHT = 3
_WORD_COUNTS = 2
_WHOLE = 4
_BOTH = 2
# A word in quotation marks counts twice: the user quotes their earlier prompt.
_QUOTED = compile_late(
    '[\u00ab\u201c\u201e\u2018\u300c\u300e"]\\s?(\\w[^\u00bb\u201c\u201d\u2019\u300d\u300f"\n]{1,40})'
)
# With fewer words in common, a change is only hinted at; a word in more prompts than `_FEW` hints at nothing.
_SHARED_LOOSELY = 3
_FEW = 3
# The most characters between a negation and the word it negates: an article may stand there.
_NEAR = 12
_SHORT = 120
_LONGEST = 4000


_Line = tuple[str, str]
"""A path, and a line of that file."""


class LaterChange(msgspec.Struct, frozen=True):
    """A change by which turn `later` undid all edits of turn `earlier`, or corrected its words.

    The edits were `taken back` if the lines from before them came back, else `replaced`.
    """

    earlier: int
    later: int
    how: Literal["taken back", "replaced", "corrected"]


class LaterWords(msgspec.Struct, frozen=True):
    """A sentence of turn `later`, its `words`, that seems to change what turn `earlier` said."""

    earlier: int
    later: int
    words: str


def find_changed_edits(changes: Iterable[FileChange]) -> list[LaterChange]:
    """Find the turns whose edits are gone; `changes` are in the order in which they were made.

    A turn with any edit left is not among them. If a turn undid its own edits, `later` is the turn itself.
    """
    records: defaultdict[int, _TurnEdits] = defaultdict(_TurnEdits)
    # A turn waits at each of its lines until that is gone, so that every line is looked at once.
    waiting: defaultdict[_Line, set[int]] = defaultdict(set)
    found: dict[int, LaterChange] = {}
    for change in changes:
        added = {(change.path, line) for line in change.added_lines}
        removed = {(change.path, line) for line in change.removed_lines}
        gone = removed - added
        for turn in _take_away(gone, change.turn, records, waiting) - found.keys():
            came_back = bool(added & records[turn].replaced)
            found[turn] = LaterChange(turn, change.turn, "taken back" if came_back else "replaced")
        own = records[change.turn]
        if own.written and own.written <= gone and added <= own.replaced:
            found[change.turn] = LaterChange(change.turn, change.turn, "taken back")
        elif added:
            found.pop(change.turn, None)
        fresh = added - removed - own.replaced
        for lines in (own.written, own.left):
            lines.difference_update(gone)
            lines.update(fresh)
        own.replaced |= gone
        for line in added & own.written:
            waiting[line].add(change.turn)
    return sorted(found.values(), key=lambda one: one.earlier)


class _TurnEdits(msgspec.Struct):
    """The lines a turn wrote, those of them that are `left`, and those it replaced."""

    written: set[_Line] = msgspec.field(default_factory=set)
    left: set[_Line] = msgspec.field(default_factory=set)
    replaced: set[_Line] = msgspec.field(default_factory=set)


def _take_away(
    gone: set[_Line], turn: int, records: Mapping[int, _TurnEdits], waiting: Mapping[_Line, set[int]]
) -> set[int]:
    """Note that the lines are gone from the turns before; return those of which nothing is left by that."""
    touched: set[int] = set()
    for line in gone & waiting.keys():
        others = waiting[line] - {turn}
        waiting[line].difference_update(others)
        for other in others:
            records[other].left.discard(line)
        touched |= {other for other in others if line in records[other].written}
    return {other for other in touched if not records[other].left}


def find_corrections(prompts: Sequence[Message]) -> list[LaterChange]:
    """Find the prompts that a later one corrects, each with the last one that does."""
    terms = [list_words(said.text) for said in prompts]
    counts = Counter(term for found in terms for term in found)
    first: dict[str, int] = {}
    corrected: dict[int, LaterChange] = {}
    for at, said in enumerate(prompts):
        for term in terms[at]:
            first.setdefault(term, at)
        plain = plain_apostrophes(said.text[:_LONGEST])
        is_outright = bool(_OUTRIGHT.search(plain))
        if not (is_outright or _CORRECTS.search(plain) or _RETRACTION.search(plain)):
            continue
        quoted = list_words(" ".join(_QUOTED.findall(plain)))
        shared: Counter[int] = Counter()
        for term in terms[at]:
            if counts[term] == _BOTH and first[term] < at:
                shared[first[term]] += _weigh(term) * (1 + (term in quoted))
        most, earlier = max(((weight, before) for before, weight in shared.items()), default=(0, 0))
        if most >= (_SHARED_OUTRIGHT if is_outright else _SHARED):
            turn = prompts[earlier].turn
            corrected[turn] = LaterChange(turn, said.turn, "corrected")
    return list(corrected.values())


def find_later_words(prompts: Sequence[Message]) -> list[LaterWords]:
    """Find for each prompt the last sentence of a later one that seems to change it.

    Fewer words in common are enough than for a correction: a reader sees both and can judge.
    """
    terms = [list_words(said.text) for said in prompts]
    counts = Counter(term for found in terms for term in found)
    places: dict[str, list[int]] = {}
    for at, found in enumerate(terms):
        for term in found:
            if counts[term] <= _FEW:
                places.setdefault(term, []).append(at)
    later: dict[int, LaterWords] = {}
    for at, said in enumerate(prompts):
        if not any(places[term][0] < at for term in terms[at] & places.keys()):
            continue
        plain = plain_apostrophes(said.text[:_LONGEST])
        changes = any(sign.search(plain) for sign in _SIGNS)
        if not (changes or _OPPOSES.search(plain)):
            continue
        least = _WORD_COUNTS if _RULE_CHANGE.search(plain) else _SHARED_LOOSELY
        for sentence in split_sentences(plain):
            shared = _find_shared(sentence, at, places)
            for before, words in shared.items():
                weight = sum(map(_weigh, words))
                is_opposed = weight > _SHARED_LOOSELY and _is_opposed(sentence, words)
                if (changes and weight >= least) or is_opposed:
                    turn = prompts[before].turn
                    later[turn] = LaterWords(turn, said.turn, sentence)
    return list(later.values())


def _find_shared(sentence: str, at: int, places: Mapping[str, Sequence[int]]) -> dict[int, set[str]]:
    """Find, by earlier prompt, the rare words shared with `sentence`, except those that signal a change."""
    rare = [term for term in list_words(sentence) & places.keys() if places[term][0] < at]
    if not rare:
        return {}
    signal = {term for sign in _SIGNS for match in sign.finditer(sentence) for term in list_words(match[0])}
    shared: dict[int, set[str]] = {}
    for term in rare:
        for before in places[term]:
            if before < at and term not in signal:
                shared.setdefault(before, set()).add(term)
    return shared


def _is_opposed(sentence: str, words: set[str]) -> bool:
    """Check whether one of the words is negated, in a sentence that says little else."""
    return len(sentence) <= _SHORT and any(
        list_words(sentence[match.end() :][: _NEAR + max(map(len, words))]) & words
        for match in _OPPOSES.finditer(sentence)
    )


def _weigh(term: str) -> int:
    return 1 if len(term) < _WHOLE else _WORD_COUNTS
