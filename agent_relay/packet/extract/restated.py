"""Drop from a leg what only repeats relay's own words, so that no later packet attributes them to anybody.

A packet asks its reader to say what it picks up, so the answer restates the packet. A successor also opens
and searches earlier packets, and what that prints was said and done by others.
"""

import re
from collections.abc import Iterator, Mapping

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.text.plain import compile_late
from agent_relay.domain.values import replace
from agent_relay.packet.extract.sentences import (
    get_phrases,
    is_failure,
    list_stems,
    plain_apostrophes,
    split_sentences,
)

_TAKES_OVER = get_phrases("takes-over")
_CHOICE = get_phrases("choice")
_CORRECTS = get_phrases("corrects")
_CLAUSE_END = compile_late(r"[:;\u2013\u2014\uff1a\uff1b\uff0c\u3001]\s*|,\s+|\s-\s")
_WORD = compile_late(r"\w+")
_PUNCTUATION = ".,;:!?()[]\"'`*\u2026"
_IN_NAMES = "._/\\:"
# A sentence that restates the packet has at most this share of new words.
_NEW_SHARE = 0.25
_LONGEST = 4000
# A sentence is usually found within this distance of the previous one.
_NEAR = 2000
# Commands that print relay's own records.
_PRINTS_RELAY = compile_late(r"\.agent-relay/sessions/|\bagent-relay +(?:recall|packet|handoff)\b")


def find_handed_over(facts: Facts, stripped: Facts) -> dict[int, str]:
    """Return by turn the prompts relay typed; `stripped` are the facts without relay's words."""
    left = {said.turn: said.text for said in stripped.conversation if said.role == "user"}
    return {
        said.turn: said.text
        for said in facts.conversation
        if said.role == "user" and left.get(said.turn) != said.text
    }


def leave_out_restated(facts: Facts, handed_over: Mapping[int, str], before: ResumePacket) -> Facts:
    """Return the facts without messages that restate the packet `before` and commands that print a packet.

    In each turn of `handed_over` (relay's prompts by turn), the sentences of the agent's first message that
    say nothing new are dropped. If that message ends the turn's work, it is a report: only the announcement
    is dropped.
    """
    commands = tuple(run for run in facts.commands if not prints_relay(run.command))
    facts = replace(facts, commands=commands)
    if not handed_over:
        return facts
    known = list_stems([*handed_over.values(), *_list_texts(before.model_dump(mode="json"))])
    first: dict[int, Message] = {}
    last: dict[int, Message] = {}
    for said in facts.conversation:
        if said.role == "assistant" and said.turn in handed_over:
            first.setdefault(said.turn, said)
            last[said.turn] = said
    conversation: list[Message] = []
    for said in facts.conversation:
        if said is not first.get(said.turn):
            conversation.append(said)
            continue
        begins = _is_before_work(said, facts, is_last=said is last[said.turn])
        text = _leave_out(said.text, known, begins=begins)
        if text:
            conversation.append(said if text == said.text else replace(said, text=text))
    return replace(facts, conversation=tuple(conversation))


def prints_relay(command: str) -> bool:
    """Check whether the command prints relay's own records: others' words, said and done elsewhere."""
    return bool(_PRINTS_RELAY.search(command[:_LONGEST]))


def _is_before_work(said: Message, facts: Facts, *, is_last: bool) -> bool:
    """Check whether the message was said before anything was done in its turn."""
    runs = [run.at for run in facts.commands if run.turn == said.turn]
    edits = [change.at for change in facts.files if change.turn == said.turn and change.action != "read"]
    work = [*runs, *edits]
    moments = [at for at in work if at is not None]
    if not work:
        return True
    return said.at <= min(moments) if said.at is not None and moments else not is_last


def _leave_out(text: str, known: set[str], *, begins: bool) -> str:
    """Drop the sentences that say nothing new; each is searched for after the previous one."""
    parts: list[str] = []
    place = 0
    for sentence in split_sentences(text):
        kept = _keep_new(sentence, known, begins=begins)
        found = _find(text, sentence, place) if kept != sentence else None
        if found:
            parts += [text[place : found[0]], kept]
            place = found[1]
    left = "".join([*parts, text[place:]])
    return left.strip() if _WORD.search(left) else ""


def _find(text: str, sentence: str, place: int) -> tuple[int, int] | None:
    """Find the sentence from `place` on, whatever white space separates its words in the text."""
    begin = text.find(sentence, place, place + _NEAR + len(sentence))
    if begin >= 0:
        return begin, begin + len(sentence)
    found = re.compile(r"\s+".join(map(re.escape, sentence.split()))).search(text, place)
    return found.span() if found else None


def _keep_new(sentence: str, known: set[str], *, begins: bool) -> str:
    """Return the part of the sentence that was not handed over, or an empty string."""
    plain = plain_apostrophes(sentence)
    if announced := _TAKES_OVER.match(plain):
        end = _CLAUSE_END.search(sentence, announced.end())
        clause, rest = (sentence[: end.start()], sentence[end.end() :]) if end else (sentence, "")
        if _names_new(clause, known):
            return sentence
        return rest if rest and not (begins and _restates(rest, known)) else ""
    return "" if begins and _restates(sentence, known) else sentence


def _restates(text: str, known: set[str]) -> bool:
    plain = plain_apostrophes(text)
    if plain.rstrip().endswith(("?", "\uff1f")) or _names_new(text, known):
        return False
    terms = list_stems([text])
    new = len(terms - known)
    if _CHOICE.search(plain) or _CORRECTS.search(plain) or is_failure(plain):
        return not new
    return new <= _NEW_SHARE * len(terms)


def _names_new(text: str, known: set[str]) -> bool:
    """Check whether the text has a number or an identifier that was not handed over."""
    words = [word.strip(_PUNCTUATION) for word in text.split()]
    return not list_stems(word for word in words if _is_name(word)) <= known


def _is_name(word: str) -> bool:
    """Check whether a word is a number or an identifier, judging by its punctuation and capitals."""
    inner = word[1:]
    return word[:1].isdigit() or any(sign in inner for sign in _IN_NAMES) or inner != inner.lower()


def _list_texts(value: object) -> Iterator[str]:
    """Yield the strings in a document's values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _list_texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _list_texts(part)
