"""List a leg's turns for the ledger: what was pasted and decided in each, without repetitions."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, group_by_turn
from agent_relay.domain.text.plain import compile_late
from agent_relay.domain.values import replace
from agent_relay.packet.extract.requests import Quotation
from agent_relay.packet.extract.sentences import normalise, split_sentences
from agent_relay.packet.extract.statements import Statements

_DIGITS = compile_late(r"\d+")
# Code and tables may stand between two sentences.
_NEAR = 20_000
# A sentence that occurs in more turns than this is a habit.
_REPEATED = 2


class PromptTurn(msgspec.Struct):
    """One prompt and what was done in its turn; `number` counts the user's prompts from 1.

    `prompt` is the user's own words, `None` for unprompted work; `pasted` is what they pasted with it.
    `words` are the agent's statements of choices and failures during the turn, `closing` those in its last
    message. `is_routine` is whether other prompts of the session say the same apart from numbers;
    `is_interrupted` whether the user interrupted the turn.
    """

    number: int
    prompt: Message | None = None
    pasted: str = ""
    answers: list[Message] = msgspec.field(default_factory=list)
    runs: list[CommandRun] = msgspec.field(default_factory=list)
    edits: list[FileChange] = msgspec.field(default_factory=list)
    words: list[str] = msgspec.field(default_factory=list)
    closing: list[str] = msgspec.field(default_factory=list)
    is_routine: bool = False
    is_interrupted: bool = False


def list_turns(facts: Facts, pasted: Mapping[int, str], statements: Statements) -> list[PromptTurn]:
    """List the turns in order.

    `pasted` is, by turn, what the user pasted; the user's messages in `facts` do not contain it. Sentences
    that a session repeats with other numbers say nothing about its progress, and are left out.
    """
    turns = {
        one.number: PromptTurn(
            one.number, one.prompt, pasted.get(one.number, ""), one.answers, one.commands, one.edits
        )
        for one in group_by_turn(facts)
        # Files that were only read, and failed tool calls, are listed elsewhere.
        if one.prompt or one.answers or one.commands or one.edits
    }
    for quoted in (*statements.decisions, *statements.attempts):
        _add_words(turns, quoted)
    found = list(turns.values())
    _leave_out_repeated(found)
    for turn in found:
        turn.is_interrupted = turn.number in facts.interrupted_turns
    return found


def _add_words(turns: Mapping[int, PromptTurn], quoted: Quotation) -> None:
    turn = turns.get(quoted.said.turn)
    if turn is None:
        return
    is_closing = bool(turn.answers) and quoted.said is turn.answers[-1]
    (turn.closing if is_closing else turn.words).append(quoted.text)


def _leave_out_repeated(turns: Sequence[PromptTurn]) -> None:
    prompts = Counter(_shape(turn.prompt.text) for turn in turns if turn.prompt)
    sentences: Counter[str] = Counter()
    for turn in turns:
        told = (sentence for said in turn.answers for sentence in split_sentences(said.text))
        sentences.update(set(map(_shape, told)))
    habits = {shape for shape, count in sentences.items() if count > _REPEATED}
    for turn in turns:
        turn.is_routine = turn.prompt is not None and prompts[_shape(turn.prompt.text)] > 1
        turn.answers = [_leave_out(said, habits) for said in turn.answers]
        turn.words = [word for word in turn.words if _shape(word) not in habits]
        turn.closing = [word for word in turn.closing if _shape(word) not in habits]


def _leave_out(said: Message, habits: set[str]) -> Message:
    """Leave the habits out of a message; each sentence is looked for behind the one before it."""
    parts: list[str] = []
    place = kept = 0
    for sentence in split_sentences(said.text):
        begin = said.text.find(sentence, place, place + _NEAR + len(sentence))
        if begin < 0:
            continue
        place = begin + len(sentence)
        if _shape(sentence) in habits:
            parts.append(said.text[kept:begin])
            kept = place
    return replace(said, text="".join([*parts, said.text[kept:]]).strip()) if parts else said


def _shape(text: str) -> str:
    return _DIGITS.sub("0", normalise(text))
