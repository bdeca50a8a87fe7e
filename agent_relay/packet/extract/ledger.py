"""Build the ledger of a leg: the user's words, what they answer, and what came of them.

An exchange is included if a successor would miss it. Its weight depends on its context (an answer to
options, work that followed, a failed run, an undone edit) and on its words (`phrases.toml`).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from agent_relay.domain.documents.packet import Exchange
from agent_relay.domain.facts import CommandRun, FileChange, Message
from agent_relay.domain.text.plain import compile_late, render_count
from agent_relay.packet.extract.later_changes import (
    LaterChange,
    LaterWords,
    find_changed_edits,
    find_corrections,
    find_disproof,
    find_later_words,
    is_meant,
    turns_down,
)
from agent_relay.packet.extract.outcomes import find_checks, find_telling_line, has_failed
from agent_relay.packet.extract.provenance import tell_source
from agent_relay.packet.extract.requests import is_asking, is_consent, is_rule
from agent_relay.packet.extract.sentences import (
    ARROW,
    FIRM,
    WIDE,
    cut_words,
    get_phrases,
    list_words,
    plain_apostrophes,
    split_sentences,
    weigh,
)
from agent_relay.packet.extract.turns import PromptTurn

LEAST = 4
"""The least weight of an exchange that is included however many there are."""
GAP = " […] "
"""Marks where something was taken out of a text."""
BEGINNING = ", beginning: "
"""Separates the number of pasted lines from the first of them."""
FEW = 8
"""Number of heavy exchanges below which all are included, and with them what the agent decided."""
_ROUTINE = -1
_WEIGHTY = get_phrases("weighty")
_PICKS = get_phrases("picks")
_OFFERS = get_phrases("offers")
_QUESTION_END = get_phrases("question-end")
_DISPROOF = get_phrases("disproof")
_MEASURED = get_phrases("measured")
_NO_ANSWER = get_phrases("no-answer")
_MARK = compile_late("[?\uff1f]")
_OPTION = compile_late(
    r"^[ \t]*(?:[-*•][ \t]+)?\**(?:\d{1,2}|[A-Ha-h])[.)\uff09、:][ \t]*\**\S|^[ \t]*\([\da-hA-H]\)[ \t]",
    re.MULTILINE,
)
_INLINE_OPTION = compile_late(r"(?<!\w)\(?(?:[1-4]|[A-Da-d])\)[ \t]*\S")
_BULLET = compile_late(r"^[ \t]*[-*•][ \t]+\S", re.MULTILINE)
_NAMES_CODE = compile_late(r"`[^`\n]+`|[\w-][/\\]\w|\w\.[a-z]{1,5}\b|\w_\w|[a-z][A-Z]\w")
_NUMBER = compile_late(r"\d")
_WIDE = compile_late(WIDE)
_PARAGRAPH = compile_late(r"\n[ \t]*\n")
_FEW_WORDS = 60
# A line that only introduces a list says nothing by itself.
_LEAD = compile_late(r"[^.!?\n\u3002]{0,80}[:\uff1a]")
_CLAUSE_END = compile_late(r"[.,;:!?\n\u3001\u3002\uff0c\uff1b\uff1a\uff01\uff1f]")
_WORDS_PER_WEIGHT = 8
_FAILED = _STATEMENTS = 2
_SHARED_WORDS = 2
# Shorter terms occur in every sentence.
_LONG_TERM = 5
# How much of each part is quoted, in characters.
_ON = 170
_ON_OPTIONS = 480
_SAID = 420
_TOLD = 320
_LINE = 190
_COMMAND = 70
_MEASURE = 110
_PASTE = 110
_ENDED_BY = 56
_LONGEST_WORD = 24


def build_exchanges(turns: Sequence[PromptTurn], agent: str) -> list[Exchange]:
    """Build the exchanges of `turns` that would be missed, in their order."""
    readings = _read_turns(turns)
    told = [reading.build(agent) for reading in readings]
    for at in range(1, len(told)):
        if readings[at].is_leave_to_edit and _ends_asking(told[at - 1]) and told[at].weight < LEAST:
            told[at] = told[at].model_copy(update={"weight": LEAST})
    heavy = [one for one in told if one.weight >= LEAST]
    if len(heavy) < FEW:
        told = [
            reading.build(agent, with_closing=True) if reading.turn.words or reading.turn.closing else one
            for reading, one in zip(readings, told, strict=True)
        ]
        heavy = [one for one in told if one.weight > _ROUTINE]
    return _say_once(heavy)


def find_offer(text: str) -> int:
    """Return what a message offers: 2 for a choice among options, 1 for something to answer, else 0."""
    if len(_OPTION.findall(text)) > 1 or len(_INLINE_OPTION.findall(text)) > 1:
        return 2
    parts = _PARAGRAPH.split(text)
    is_open = len(_BULLET.findall(text)) > 1 or any(_QUESTION_END.search(part) for part in parts)
    return int(is_open or bool(_OFFERS.search(plain_apostrophes(text))))


class _Reading(msgspec.Struct, frozen=True):
    """One turn as the ledger reads it.

    `before` is what the agent had said last, `offered` what that offers, `answers` the same if the user's
    words answer it. `is_turned_down` is whether the next prompt rejects what was done here; `ended` is how
    it was taken back, by the prompt `ended_by`; `took_back` is the turn whose edits were undone here.
    `revisited` are later words that seem to change it, if it was not taken back, or those of the agent that
    disprove the suspicion agreed to (`is_disproved`). `failed` are failed runs.
    """

    turn: PromptTurn
    before: str
    offered: int
    answers: int
    is_question: bool
    is_consent: bool
    is_turned_down: bool
    ended: LaterChange | None
    ended_by: str
    revisited: LaterWords | None
    is_disproved: bool
    took_back: int | None
    failed: Sequence[CommandRun]

    @property
    def said(self) -> str:
        """The user's own words."""
        return self.turn.prompt.text if self.turn.prompt else ""

    @property
    def is_leave_to_edit(self) -> bool:
        """True if the user only agreed to what the agent had proposed, and it was done."""
        return self.is_consent and bool(self.answers and self.turn.edits)

    @property
    def is_settled(self) -> bool:
        """True if the user chose, ruled or confirmed something that was not taken back."""
        is_over = self.is_turned_down or self.ended or self.is_disproved or self.turn.is_interrupted
        if not self.said or self.is_question or is_over or _MARK.search(self.said):
            return False
        answers = self._takes_up() and not _NO_ANSWER.fullmatch(plain_apostrophes(self.said.strip()))
        return bool(answers or self.took_back) or any(map(is_rule, split_sentences(self.said)))

    def _takes_up(self) -> bool:
        """Check whether the user's words are about what they follow; a long prompt may start afresh."""
        if self.answers != 1 or _count_words(self.said) < _WORDS_PER_WEIGHT:
            return bool(self.answers)
        opening = _CLAUSE_END.split(self.said.strip(), 1)[0]
        shared = list_words(self.said) & list_words(self.before)
        return is_consent(opening) or any(len(term) >= _LONG_TERM or term.isdigit() for term in shared)

    def build(self, agent: str, *, with_closing: bool = False) -> Exchange:
        """Build the exchange; include what the agent decided in its last answer if `with_closing`."""
        turn = self.turn
        facts: tuple[Message | CommandRun | FileChange, ...] = (*turn.answers, *turn.runs, *turn.edits)
        place = turn.prompt or next(iter(facts), None)
        told, measured = self._tell(with_closing=with_closing), self._measure()
        return Exchange(
            said=_cut(self.said.replace("\n\n", GAP) if turn.pasted else self.said, _SAID),
            on=self._find_asked(),
            pasted=_describe_paste(turn.pasted),
            failed="\n".join(dict.fromkeys(map(_describe_failure, self.failed[-_FAILED:]))),
            measured=measured,
            told=told,
            is_settled=self.is_settled,
            took_back=self.took_back,
            ended_in=self.ended.later if self.ended else None,
            ended_how=self.ended.how if self.ended else None,
            ended_by=cut_ending(self.ended_by),
            revisited_in=self.revisited.later if self.revisited else None,
            revisited_by=cut_ending(self.revisited.words) if self.revisited else "",
            is_broken_off=turn.is_interrupted and bool(self.said) and not facts,
            weight=self._weigh(told, measured),
            source=tell_source(agent, place) if place else None,
        )

    def _weigh(self, told: str, measured: str) -> int:
        turn = self.turn
        work = (
            2 * bool(turn.edits)
            + 3 * bool(self.failed)
            + bool(measured)
            + 2 * bool(self.took_back or self.ended)
        )
        words = turn.words if self.is_consent else (*turn.words, told)
        strongest = max(map(weigh, words), default=0)
        if turn.is_routine:
            return 2 * bool(self.failed) + strongest if told or self.failed else _ROUTINE
        work += 2 * bool(_DISPROOF.search(plain_apostrophes(told)))
        return max(0, work + max(0, strongest - FIRM + 1) + self._weigh_words())

    def _weigh_words(self) -> int:
        """Return the weight of what the user said, and in what context."""
        if not self.said:
            return 0
        if self.is_consent:
            return 2 * self.answers - 2
        plain = plain_apostrophes(self.said)
        weight = 2 * bool(_WEIGHTY.search(plain) or _NUMBER.search(plain)) + bool(_NAMES_CODE.search(plain))
        weight += min(2, _count_words(plain) // _WORDS_PER_WEIGHT) + 2 * bool(self.turn.pasted)
        weight += self.answers + bool(self.answers)
        return weight - self.is_question * (1 if self.turn.edits or self.failed or self.turn.pasted else 2)

    def _find_asked(self) -> str:
        """Find what the user's words answer: all options, or else the beginning of what the agent said."""
        if not self.before or not self.said:
            return ""
        is_short = len(self.said) < _FEW_WORDS
        if self.answers > 1 or (self.answers and is_short):
            return _cut(_find_options(self.before), _ON_OPTIONS)
        refers = _PICKS.match(plain_apostrophes(self.said)) or turns_down(self.said)
        return _cut(_find_head(self.before), _ON) if is_short and refers and not self.is_question else ""

    def _measure(self) -> str:
        lines = [
            line.strip()
            for run in self.turn.runs
            if run.output and not run.exit_code and not find_checks(run.command)
            for line in run.output.splitlines()
            if _MEASURED.search(line)
        ]
        return "; ".join(cut_words(line, _MEASURE) for line in dict.fromkeys(lines[-2:]))

    def _tell(self, *, with_closing: bool) -> str:
        """Quote the beginning of the answer, after what was decided before it."""
        head = _cut(_find_head(self._choose_answer()), _TOLD)
        decided = [*self.turn.words, *(self.turn.closing if with_closing else ())]
        strong = [word for word in decided if with_closing or weigh(word) >= FIRM]
        answered = [self._leave_question(word) for word in strong]
        lines = [_cut(word, _TOLD) for word in dict.fromkeys(answered) if word[:_ON] not in head]
        return "\n".join([*lines[-_STATEMENTS:], *([head] if head else [])])

    def _leave_question(self, word: str) -> str:
        """Drop the user's question, which the exchange quotes, from an answer that was stored with it."""
        question, arrow, answer = word.partition(ARROW)
        return answer if arrow and question in " ".join(self.said.split()) else word

    def _choose_answer(self) -> str:
        """Choose the last long message, or one about the user's words if the last is about something else."""
        texts = [one.text for one in self.turn.answers]
        long = [text for text in texts if len(text) > _FEW_WORDS] or texts[-1:]
        asked = list_words(self.said)
        shared = [len(asked & list_words(_find_head(text))) for text in texts]
        most = max(shared, default=0)
        if most < _SHARED_WORDS or not long or asked & list_words(_find_head(long[-1])):
            return long[-1] if long else ""
        return texts[len(shared) - 1 - shared[::-1].index(most)]


def _ends_asking(asked: Exchange) -> bool:
    """Check whether an included exchange ends with a question, which looks open without its answer."""
    return asked.weight >= LEAST and bool(_QUESTION_END.search(asked.told))


def _read_turns(turns: Sequence[PromptTurn]) -> list[_Reading]:
    ends = find_changed_edits(change for turn in turns for change in turn.edits)
    taking = {one.later: one.earlier for one in ends if one.how == "taken back" and one.later != one.earlier}
    prompts = {turn.number: turn.prompt for turn in turns if turn.prompt}
    ended = {one.earlier: one for one in find_corrections([*prompts.values()])}
    words = _list_words(turns)
    ended |= {one.earlier: one for one in ends if is_meant(one, words)}
    revisits = {one.earlier: one for one in find_later_words([*prompts.values()])}
    found: list[_Reading] = []
    before = ""
    for turn, after in zip(turns, [*turns[1:], None], strict=False):
        said = turn.prompt.text if turn.prompt else ""
        is_question = is_asking(said)
        offered, end = find_offer(before), ended.get(turn.number)
        if offered and _PICKS.match(plain_apostrophes(said)):
            offered = 2
        revisit = revisits.get(turn.number)
        told = (*turn.answers, *(after.answers if after else ()))
        disproof = find_disproof(said, before, told) if offered and not is_question else None
        found.append(
            _Reading(
                turn=turn,
                before=before,
                offered=offered,
                answers=offered if said and not is_question else 0,
                is_question=is_question,
                is_consent=bool(said) and is_consent(said),
                is_turned_down=bool(after and after.prompt and turns_down(after.prompt.text)),
                ended=end,
                ended_by=_quote_end(end, revisit, prompts) if end and end.later not in ended else "",
                revisited=disproof
                or (revisit if not end and any(map(is_rule, split_sentences(said))) else None),
                is_disproved=bool(disproof),
                took_back=taking.get(turn.number),
                failed=_list_failed(turn.runs),
            )
        )
        before = turn.answers[-1].text if turn.answers else before
    return found


def _list_failed(runs: Sequence[CommandRun]) -> list[CommandRun]:
    last = {run.command: run for run in runs}
    return [run for run in runs if has_failed(run) and has_failed(last[run.command])]


def _quote_end(end: LaterChange, revisit: LaterWords | None, prompts: Mapping[int, Message]) -> str:
    """Quote what ended a turn: the sentence about it, or else the beginning of the later prompt."""
    return revisit.words if revisit and revisit.later == end.later else _get_words(prompts.get(end.later))


def _list_words(turns: Sequence[PromptTurn]) -> dict[int, str]:
    """List, by turn, what the user asked for; if they only agreed, that is what the agent had proposed."""
    found: dict[int, str] = {}
    before = ""
    for turn in turns:
        said = _get_words(turn.prompt)
        found[turn.number] = before if said and is_consent(said) else said
        before = turn.answers[-1].text if turn.answers else before
    return found


def _get_words(prompt: Message | None) -> str:
    return prompt.text if prompt else ""


def _find_options(text: str) -> str:
    """Return a message up to the end of its options, or, if it has none, up to its question."""
    parts = _PARAGRAPH.split(text.strip())
    signs = (_OPTION, _INLINE_OPTION, _BULLET, _QUESTION_END)
    last = max((at for at, part in enumerate(parts) if any(sign.search(part) for sign in signs)), default=0)
    return "\n\n".join(parts[: last + 1])


def _find_head(text: str) -> str:
    """Return the first paragraph that is not a heading: the answer itself; the rest is talk."""
    parts = [part.strip() for part in _PARAGRAPH.split(text) if part.strip()]
    told = [part for part in parts if not part.startswith("#") and not _LEAD.fullmatch(part)]
    return next(iter((*told, *parts)), "")


def cut_ending(words: str) -> str:
    """Shorten the words by which something was taken back to the length quoted beside it."""
    return _cut(words, _ENDED_BY)


def _cut(text: str, limit: int) -> str:
    """Cut at the end of a nearby word: half a word may read as another one."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    whole = head.rpartition(" ")[0] if line[limit - 1] != " " else head
    return f"{whole if len(head) - len(whole) <= _LONGEST_WORD else head}…"


def _count_words(text: str) -> int:
    return len(text.split()) + len(_WIDE.findall(text)) // 2


def _describe_failure(run: CommandRun) -> str:
    line = find_telling_line(run.output)
    command = f"`{cut_words(run.command, _COMMAND)}`"
    return f"{command}: {cut_words(line, _LINE)}" if line else command


def _describe_paste(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{render_count(len(lines), 'line')}{BEGINNING}{_cut(lines[0], _PASTE)}" if lines else ""


def _say_once(exchanges: list[Exchange]) -> list[Exchange]:
    """Drop what the neighbour says: options stay with their answer, everything else where it was said."""
    kept = list(exchanges)
    for at, (one, after) in enumerate(pairwise(exchanges)):
        above, _, last = one.told.rpartition("\n")
        start = last.rstrip("…")[: _ON - 1]
        if not start or not (start in after.on or start.startswith(after.on.rstrip("…") or "\n")):
            continue
        # What is settled is shown apart, and needs what it answers.
        stays = after.is_settled and not one.is_settled
        if stays or len(after.on) > min(_ON, len(last)):
            kept[at] = kept[at].model_copy(update={"told": above})
        on = max(after.on, last, key=len) if stays else after.on if kept[at].told == above else ""
        kept[at + 1] = kept[at + 1].model_copy(update={"on": on})
    return kept
