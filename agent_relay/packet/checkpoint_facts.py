"""Join the facts that checkpoints keep into a conversation's, restore what a record lost, thin old ones."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from agent_relay.domain.facts import (
    CheckpointFacts,
    CommandRun,
    Facts,
    FileChange,
    Message,
    Tokens,
    ToolError,
)
from agent_relay.domain.values import replace

MOST_TEXT = 12_000
"""The characters of one message that a checkpoint keeps, from its two ends."""
_MARGIN = 2_000
"""The characters beyond a cut that are searched for secrets: no rule recognises half of one."""
_MOST_OUTPUT = 1_500
"""The part kept from the end of a command's output: as much as a packet quotes."""
_MOST_RUNS, _MOST_CHANGES, _MOST_ERRORS = 200, 400, 32
_THIN_TEXT = (2_000, 400)
"""The characters left of each message in an old checkpoint, and in a very old one."""
LEVELS = len(_THIN_TEXT)
"""The number of times a checkpoint can be thinned before it is removed."""

_Fact = TypeVar("_Fact", Message, CommandRun, FileChange, ToolError)


def bound_facts(facts: Facts, clean: Callable[[str], str]) -> Facts:
    """Return what one checkpoint keeps of `facts`: long messages cut, only the last of very many commands.

    `clean` removes secrets from a text; it is given texts of bounded length only.
    """

    def cut(said: Message) -> Message:
        return replace(said, text=_clean_ends(said.text, clean))

    waiting = facts.unprocessed_prompt
    return replace(
        facts,
        conversation=tuple(map(cut, facts.conversation)),
        commands=_bound_runs(facts.commands[-_MOST_RUNS:], clean),
        files=tuple(_clean_change(change, clean) for change in facts.files[-_MOST_CHANGES:]),
        plan=tuple(replace(step, text=_clean_ends(step.text, clean)) for step in facts.plan),
        errors=tuple(
            replace(error, text=_clean_ends(error.text, clean)) for error in facts.errors[-_MOST_ERRORS:]
        ),
        unprocessed_prompt=cut(waiting) if waiting is not None else None,
        limit_text=_clean_ends(facts.limit_text, clean),
        summary=_clean_ends(facts.summary, clean),
        background=tuple(_clean_ends(text, clean) for text in facts.background),
        last_lines=(),
        strange_lines=0,
    )


def _bound_runs(runs: tuple[CommandRun, ...], clean: Callable[[str], str]) -> tuple[CommandRun, ...]:
    """Return the runs with the end of what each command printed last, and what its earlier runs measured."""
    # Who only reads checkpoints needs none of it.
    from agent_relay.packet.extract.quotable import find_measured

    last = {run.command: index for index, run in enumerate(runs)}
    bound = []
    for index, run in enumerate(runs):
        output = run.output if last[run.command] == index else find_measured(run)
        kept = clean(output[-_MOST_OUTPUT - _MARGIN :])[-_MOST_OUTPUT:] if output else ""
        bound.append(replace(run, command=_clean_ends(run.command, clean), output=kept))
    return tuple(bound)


def _clean_change(change: FileChange, clean: Callable[[str], str]) -> FileChange:
    """Return the change with each side's lines cleaned together: a key spans several."""

    def clean_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(clean("\n".join(lines)).split("\n")) if lines else ()

    return replace(
        change,
        path=clean(change.path),
        previous_path=clean(change.previous_path) if change.previous_path is not None else None,
        removed_lines=clean_lines(change.removed_lines),
        added_lines=clean_lines(change.added_lines),
    )


def _clean_ends(text: str, clean: Callable[[str], str]) -> str:
    if len(text) <= MOST_TEXT + 2 * _MARGIN:
        return cut_middle(clean(text), MOST_TEXT) if text else text
    half = MOST_TEXT // 2
    # What was cut before it was searched may end, or begin, with half a secret.
    head, tail = clean(text[: half + _MARGIN])[:half], clean(text[-half - _MARGIN :])[-half:]
    return f"{head}\n{_describe_gap(len(text) - len(head) - len(tail))}\n{tail}"


def cut_middle(text: str, most: int) -> str:
    """Return the text, or its two ends with a line that says how much is left out between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{_describe_gap(len(text) - 2 * half)}\n{text[-half:]}"


def _describe_gap(characters: int) -> str:
    return f"[… {characters} characters left out …]"


def number_facts(facts: Facts, *, turns: int, lines: int) -> Facts:
    """Return facts of the end of a record with turns and lines counted from its beginning.

    There were `turns` prompts and `lines` lines before it.
    """
    return _number_turns(facts, lambda turn: turns + turn, lines=lines)


def _number_turns(facts: Facts, number: Callable[[int], int], *, lines: int = 0) -> Facts:
    def move(one: _Fact) -> _Fact:
        return replace(one, turn=number(one.turn), place=_shift_line(one.place, lines))

    waiting = facts.unprocessed_prompt
    return replace(
        facts,
        conversation=tuple(map(move, facts.conversation)),
        commands=tuple(map(move, facts.commands)),
        files=tuple(map(move, facts.files)),
        plan=tuple(replace(step, turn=number(step.turn)) for step in facts.plan),
        errors=tuple(map(move, facts.errors)),
        interrupted_turns=tuple(map(number, facts.interrupted_turns)),
        unprocessed_prompt=move(waiting) if waiting is not None else None,
        summary_turn=number(facts.summary_turn) if facts.summary_turn is not None else None,
    )


def _shift_line(place: str, lines: int) -> str:
    """Return the place with its line counted from the beginning of the file, if it names a line."""
    file, colon, number = place.rpartition(":")
    return f"{file}:{int(number) + lines}" if lines and colon and number.isdecimal() else place


def join_checkpoints(kept: Sequence[CheckpointFacts]) -> Facts:
    """Join what the checkpoints of one conversation keep, in their order. There must be at least one."""
    joined = kept[0].facts
    for one in kept[1:]:
        joined = _join(joined, one.facts)
    return joined


def _join(earlier: Facts, later: Facts) -> Facts:
    """Return the facts of a conversation of which `later` continues `earlier`; what both have counts once."""
    has_summary = bool(later.summary)
    return replace(
        later,
        cwd=later.cwd or earlier.cwd,
        native_id=later.native_id or earlier.native_id,
        model=later.model or earlier.model,
        started_at=earlier.started_at or later.started_at,
        ended_at=later.ended_at or earlier.ended_at,
        conversation=_add_new(earlier.conversation, later.conversation, _key_message),
        commands=_add_new(earlier.commands, later.commands, lambda run: (run.command, run.at)),
        files=_add_new(
            earlier.files, later.files, lambda one: (one.path, one.action, one.added, one.removed, one.at)
        ),
        plan=later.plan or earlier.plan,
        errors=_add_new(earlier.errors, later.errors, lambda one: (one.tool, one.text, one.at)),
        interrupted_turns=tuple(dict.fromkeys((*earlier.interrupted_turns, *later.interrupted_turns))),
        unprocessed_prompt=_find_waiting(earlier, later),
        summary=later.summary if has_summary else earlier.summary,
        summary_turn=later.summary_turn if has_summary else earlier.summary_turn,
        summary_at=later.summary_at if has_summary else earlier.summary_at,
        tokens=_add_tokens(earlier.tokens, later.tokens),
        lines=earlier.lines + later.lines,
        skipped_lines=earlier.skipped_lines + later.skipped_lines,
    )


def _key_message(said: Message) -> object:
    return (said.role, said.text, said.at)


def _add_new(
    earlier: tuple[_Fact, ...], later: Iterable[_Fact], key: Callable[[_Fact], object]
) -> tuple[_Fact, ...]:
    """Add the facts that are not there yet; one without a time may be another one of the same words."""
    known = {key(one) for one in earlier if one.at is not None}
    return earlier + tuple(one for one in later if one.at is None or key(one) not in known)


def _find_waiting(earlier: Facts, later: Facts) -> Message | None:
    """Return the prompt that waits for an answer after both."""
    before, waiting = earlier.unprocessed_prompt, later.unprocessed_prompt
    if waiting is None:
        did_nothing = not (later.conversation or later.commands or later.files)
        return before if did_nothing else None
    is_answered = any(said.role == "assistant" for said in later.conversation)
    if before is None or is_answered or before.text in waiting.text:
        return waiting
    return replace(waiting, text=f"{before.text}\n\n{waiting.text}")


def _add_tokens(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(
        one.input + other.input,
        one.cached + other.cached,
        one.cache_write + other.cache_write,
        one.output + other.output,
        one.reasoning + other.reasoning,
    )


def restore_facts(now: Facts, kept: Sequence[CheckpointFacts], *, why: str) -> Facts:
    """Return the facts of a record that has lost what its checkpoints kept: theirs, and what is newer in it.

    `why` says what became of the record. One that an agent wrote anew, with all that was in it, has lost
    nothing, and its own facts are returned.
    """
    joined, last = join_checkpoints(kept), kept[-1]
    if _holds_all(now, joined):
        return now
    newer = _select_newer(now, joined.ended_at or last.at)
    facts = _join(joined, _count_on(newer, last.turns)) if newer is not None else joined
    until = f"{last.at:%Y-%m-%d %H:%M %Z}"
    held = f"turn {last.turns}" if last.turns else "what is in here"
    return replace(
        facts,
        agent=now.agent,
        unread="",
        lines=now.lines if now.strange_lines else facts.lines,
        strange_lines=now.strange_lines,
        last_lines=now.last_lines if now.strange_lines else (),
        restored=f"{why}; {held} and before is from relay's checkpoints, the last of {until}",
    )


def _holds_all(now: Facts, kept: Facts) -> bool:
    """Tell whether the record has every prompt that was kept of it; those without a time cannot be told."""
    asked = {said.at for said in now.conversation if said.role == "user"}
    wanted = [said.at for said in kept.conversation if said.role == "user"]
    return bool(wanted) and all(at is not None and at in asked for at in wanted)


def _count_on(newer: Facts, turns: int) -> Facts:
    """Return the facts with their turns counted on from the last one kept, whatever number they had."""
    asked = dict.fromkeys(said.turn for said in newer.conversation if said.role == "user")
    numbers = {turn: turns + index for index, turn in enumerate(asked, 1)}
    return _number_turns(newer, lambda turn: numbers.get(turn, turns))


def _select_newer(now: Facts, than: datetime) -> Facts | None:
    """Return the facts newer than a moment; `None` if there are none."""

    def is_newer(one: Message | CommandRun | FileChange | ToolError) -> bool:
        return one.at is not None and one.at > than

    newer = replace(
        now,
        conversation=tuple(filter(is_newer, now.conversation)),
        commands=tuple(filter(is_newer, now.commands)),
        files=tuple(filter(is_newer, now.files)),
        errors=tuple(filter(is_newer, now.errors)),
        tokens=Tokens(),
        lines=0,
        skipped_lines=0,
    )
    return newer if newer.conversation or newer.commands or newer.files else None


def thin_checkpoint(kept: CheckpointFacts, level: int) -> CheckpointFacts:
    """Return an old checkpoint with the ends of its messages and the names of files and commands only.

    `level` counts from 0; below it, more is left.
    """
    most, facts = _THIN_TEXT[level], kept.facts

    def cut(said: Message) -> Message:
        return replace(said, text=cut_middle(said.text, most))

    last = max(
        (index for index, said in enumerate(facts.conversation) if said.role == "assistant"), default=-1
    )
    waiting = facts.unprocessed_prompt
    thinned = replace(
        facts,
        conversation=tuple(
            cut(said)
            for index, said in enumerate(facts.conversation)
            if not level or said.role == "user" or index == last
        ),
        commands=tuple(replace(run, output="") for run in facts.commands if not level),
        files=tuple(
            replace(change, removed_lines=(), added_lines=())
            for change in facts.files
            if not level or change.action != "read"
        ),
        errors=(),
        unprocessed_prompt=cut(waiting) if waiting is not None else None,
        summary=cut_middle(facts.summary, most),
        background=(),
    )
    return replace(kept, facts=thinned)
