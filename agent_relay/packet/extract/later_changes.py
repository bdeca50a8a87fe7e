"""Find which turns took back, replaced or corrected what an earlier one did or said.

Edits are matched by their lines alone, prompts by words that only two or three of them share.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal

import msgspec

from agent_relay.domain.facts import FileChange, Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.packet.extract.requests import is_asking, is_rule
from agent_relay.packet.extract.sentences import (
    get_phrases,
    list_stems,
    list_words,
    normalise,
    plain_apostrophes,
    split_sentences,
)

_CORRECTS = get_phrases("corrects")
_RETRACTION = get_phrases("retraction")
_OUTRIGHT = get_phrases("outright-correction")
_SELF = get_phrases("corrects-self")
_TURNED_DOWN = get_phrases("turned-down")
_NUMBER = compile_late(r"\d")
_SUSPECTS = get_phrases("suspects")
_DISPROOF = get_phrases("disproof")
_RULE_CHANGE = get_phrases("rule-change")
_OPPOSES = get_phrases("opposes")
_ALLOWS = get_phrases("allows")
_TAKES_BACK = get_phrases("takes-back-rule")
_LIMITS = get_phrases("limits-scope")
_QUOTES = get_phrases("quotes-somebody")
_FORBIDS = get_phrases("forbids")
_ABSOLUTE = get_phrases("absolute")
_FORBIDDING = (_FORBIDS, _OPPOSES)
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
# A file, a folder or an identifier: what such a rule is about.
_NAME = compile_late(
    r"(?<![\w./-])(?:[\w-]++/++(?!\w)|[^\W_](?:[^\W_]|-)*+(?:[./_]++[^\W_](?:[^\W_]|-)*+)++)", re.ASCII
)
_CLAUSE_END = compile_late(
    r"[,;:]\s|\s[-\u2013\u2014]\s|\b(?:and|or|und|oder|y|et|ou)\b|[\u3001\uff0c\uff1b]"
)
# The share of a rule's words, without those that make it one, that a sentence about it repeats.
_MOST_OF_IT = 0.6
# Shorter words occur in every sentence, except in scripts without spaces.
_TELLING, _WIDE_FROM = 5, "\u3040"
# The newest rules that one sentence is compared with.
_RULES = 100


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


class LiftedRule(msgspec.Struct, frozen=True):
    """A `rule` of turn `earlier` that the sentence `words` of turn `later` took back, or a part of it.

    `says_more` is whether the sentence is itself a rule, about something else or under which condition.
    """

    rule: str
    earlier: int
    later: int
    how: Literal["taken back", "corrected"]
    words: str
    says_more: bool


def find_lifted_rules(prompts: Sequence[Message]) -> list[LiftedRule]:
    """Find the rules that a later sentence of the user's takes back, each with the last one that does.

    The sentence has to say so, and to name what the rule is about. A rule that is given again is in force.
    """
    rules: dict[str, _Rule] = {}
    lifted: dict[str, LiftedRule] = {}
    for said in prompts:
        sentences = split_sentences(said.text[:_LONGEST])
        lifting = {one: _read_lifting(one) for one in sentences if _may_lift(plain_apostrophes(one))}
        for sentence, found in lifting.items():
            for key, rule in [*islice(reversed(rules.items()), _RULES)]:
                how = _tell_lifted(rule, found) if rule.turn != said.turn else None
                if how:
                    says_more = how == "corrected" or is_rule(_drop_lifting(sentence))
                    lifted[key] = LiftedRule(rule.text, rule.turn, said.turn, how, sentence, says_more)
        for sentence in sentences:
            if is_rule(_drop_lifting(sentence) if sentence in lifting else sentence):
                key = normalise(sentence)
                rules.pop(key, None)
                rules[key] = _read_rule(sentence, said.turn)
                lifted.pop(key, None)
    return list(lifted.values())


class _Clause(msgspec.Struct, frozen=True):
    """A part of a rule: the names in it, its other words, and whether it forbids something."""

    names: set[str]
    stems: set[str]
    forbids: bool


class _Rule(msgspec.Struct, frozen=True):
    """A rule, as it is compared with later sentences."""

    text: str
    turn: int
    names: set[str]
    clauses: Sequence[_Clause]


class _Lifting(msgspec.Struct, frozen=True):
    """A sentence that takes a rule back: the names and words in it, whichever rule it is, and how much."""

    names: set[str]
    stems: set[str]
    takes_back: bool
    is_limited: bool


def _read_rule(sentence: str, turn: int) -> _Rule:
    plain = plain_apostrophes(sentence)
    clauses = [_read_clause(part) for part in _CLAUSE_END.split(plain) if part]
    return _Rule(sentence, turn, _list_names(plain), clauses)


def _read_clause(clause: str) -> _Clause:
    signs = (match[0] for sign in (*_FORBIDDING, _ABSOLUTE) for match in sign.finditer(clause))
    forbids = any(sign.search(clause) for sign in _FORBIDDING)
    return _Clause(_list_names(clause), list_stems([clause]) - list_stems(signs), forbids)


def _read_lifting(sentence: str) -> _Lifting:
    plain = _QUOTES.sub(" ", plain_apostrophes(sentence))
    names = _list_names(plain) | list_words(plain)
    takes_back, is_limited = bool(_TAKES_BACK.search(plain)), bool(_LIMITS.search(plain))
    return _Lifting(names, list_stems([plain]), takes_back, is_limited)


def _may_lift(plain: str) -> bool:
    plain = _QUOTES.sub(" ", plain)
    return bool(_ALLOWS.search(plain) or _TAKES_BACK.search(plain)) and not is_asking(plain)


def _drop_lifting(sentence: str) -> str:
    """Return the sentence without the words that take a rule back, which sound like one."""
    return _TAKES_BACK.sub(" ", _ALLOWS.sub(" ", plain_apostrophes(sentence)))


def _tell_lifted(rule: _Rule, told: _Lifting) -> Literal["taken back", "corrected"] | None:
    """Tell whether the rule is taken back, all of it or a part.

    What is allowed must have been forbidden: "you may edit db.py" takes no rule back that says how.
    """
    left = rule.names - told.names
    forbidding = any(clause.forbids for clause in rule.clauses)
    if not (forbidding or told.takes_back) or (rule.names and left == rule.names):
        return None
    # What stands beside the rule in its sentence, such as where the work is, is not what it is about.
    clauses = [one for one in rule.clauses if one.forbids or one.names or not forbidding]
    met = [one for one in clauses if _is_about(one, told)]
    if not met:
        return None
    is_open = any(one.forbids and one not in met for one in clauses)
    return "corrected" if left or is_open or told.is_limited else "taken back"


def _is_about(clause: _Clause, told: _Lifting) -> bool:
    """Check whether the sentence names what the clause is about, or repeats most of its words."""
    if clause.names:
        return bool(clause.names & told.names)
    return bool(clause.stems) and len(clause.stems & told.stems) >= _MOST_OF_IT * len(clause.stems)


def _list_names(text: str) -> set[str]:
    return {name.rstrip("/").casefold() for name in _NAME.findall(text)}


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
    """Find the prompts that a later one corrects, or takes a rule from, each with the last one that does."""
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
        if most < _SHARED_OUTRIGHT and at and _SELF.search(plain):
            near = sum(_weigh(term) for term in terms[at] & terms[at - 1])
            most, earlier = (_SHARED_OUTRIGHT, at - 1) if near >= _SHARED_OUTRIGHT else (most, earlier)
        if most >= (_SHARED_OUTRIGHT if is_outright else _SHARED):
            turn = prompts[earlier].turn
            corrected[turn] = LaterChange(turn, said.turn, "corrected")
    for rule in find_lifted_rules(prompts):
        if rule.earlier not in corrected or corrected[rule.earlier].later <= rule.later:
            corrected[rule.earlier] = LaterChange(rule.earlier, rule.later, "corrected")
    return list(corrected.values())


def is_meant(change: LaterChange, words: Mapping[int, str]) -> bool:
    """Check whether the words of both turns confirm, as their edits suggest, that one replaced the other."""
    earlier, later = (words.get(turn, "") for turn in (change.earlier, change.later))
    if change.how == "taken back" or not earlier:
        return True
    if turns_down(earlier):
        return False
    return bool(list_words(earlier) & list_words(later)) or all(map(_NUMBER.search, (earlier, later)))


def turns_down(text: str) -> bool:
    """Check whether the user rejects what was just done or tried."""
    return bool(_TURNED_DOWN.search(plain_apostrophes(text)))


def find_disproof(said: str, before: str, answers: Iterable[Message]) -> LaterWords | None:
    """Find the first sentence of `answers` that disproves a suspicion the user agreed to.

    The suspicion is voiced in `before`, which the user answered with `said`, or in their own words.
    """
    voiced = [
        sentence
        for text in (said, before)
        for sentence in split_sentences(text[:_LONGEST])
        if _SUSPECTS.search(plain_apostrophes(sentence))
    ]
    words = {term for sentence in voiced for term in list_words(sentence)}
    named = {term for term in words if len(term) >= _TELLING or term[0] >= _WIDE_FROM}
    for answer in answers if named else ():
        for sentence in split_sentences(answer.text[:_LONGEST]):
            plain = plain_apostrophes(sentence)
            if _DISPROOF.search(plain) and named & list_words(plain):
                return LaterWords(answer.turn, answer.turn, sentence)
    return None


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
