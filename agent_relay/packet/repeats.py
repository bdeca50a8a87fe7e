"""Drop from a packet's text whatever it says elsewhere, and what its target said itself.

The document keeps everything. In the text, the words of the task and of the waiting prompt appear only there,
all other words of the user in their exchange, and rules that hold throughout in the list of rules.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from agent_relay.domain.documents.packet import (
    Blocker,
    Exchange,
    Provenance,
    Quote,
    ResumePacket,
    TurnExcerpt,
)
from agent_relay.packet.extract.ledger import BEGINNING, GAP
from agent_relay.packet.extract.requests import is_rule, weigh_rule

_EndingT = TypeVar("_EndingT", Exchange, Quote)
_SHORT = 12
_ENDING_LENGTH = 58
# Marks the middle of a text that was cut out.
_LEFT_OUT = "\n[… "
_STANDING = 2
_TASK_LENGTH = 300


def leave_out_repeated(packet: ResumePacket) -> ResumePacket:
    """Return the packet with only what its text shows."""
    packet = _drop_own(packet)
    told = [_flatten(text) for text in (packet.task, _get_text(packet.unprocessed_prompt)) if text]
    pastes = [_flatten(text) for text in (packet.task_pasted, _get_pasted(packet.unprocessed_prompt)) if text]
    exchanges = _list_user_words(packet)
    ledgers = {one.source.agent for one in packet.exchanges if one.source}
    # The task is quoted as it was given: what was taken back of it is said beside it.
    marked = [words for words in exchanges if not _is_contained(words.rstrip("…"), told)]
    rules = tuple(
        rule
        for rule in packet.constraints
        if not _is_contained(rule.text, marked if rule.ended_in else [*told, *exchanges])
        and (_has_no_exchange(rule, ledgers) or _is_standing(rule.text))
    )
    recent = tuple(_list_recent(packet, [*told, *exchanges, *(_flatten(rule.text) for rule in rules)]))
    quoted = [_flatten(one.text) for one in recent]
    obstacles = [_flatten(one.summary) for one in packet.blockers]
    words = [*told, *exchanges]
    shortened = (
        _shorten(_drop_repeated_words(one, told, pastes), quoted, obstacles) for one in packet.exchanges
    )
    ledger = _list_failures_once(shortened)
    return packet.model_copy(
        update={
            "next_task": _drop_failing_line(packet.next_task, obstacles),
            "constraints": tuple(_shorten_ending(_shorten_rule(rule, told), words) for rule in rules),
            "exchanges": tuple(_shorten_ending(one, words) for one in ledger if _has_content(one)),
            "decisions": tuple(one for one in packet.decisions if not one.in_ledger),
            "recent_turns": recent,
            "blockers": tuple(map(_drop_known_evidence, packet.blockers)),
            "validation_runs": tuple(_list_runs(packet)),
        }
    )


def list_rules_told(packet: ResumePacket) -> tuple[str, ...]:
    """List where the text quotes rules in force that hold throughout, besides in the list of rules."""
    packet = _drop_own(packet)
    parts = [("the task above", _flatten(packet.task or ""))]
    parts.append(("the waiting prompt below", _flatten(_get_text(packet.unprocessed_prompt))))
    parts += [(_name_turn(one.source, packet), _flatten(one.said)) for one in packet.exchanges if one.said]
    rules = [rule.text for rule in packet.constraints if not rule.ended_in and _is_standing(rule.text)]
    places = (next((name for name, text in parts if _is_contained(rule, [text])), "") for rule in rules)
    return tuple(dict.fromkeys(place for place in places if place))


def _name_turn(source: Provenance | None, packet: ResumePacket) -> str:
    if source is None or not source.turn:
        return ""
    is_last = source.agent == packet.previous_agent
    return f"turn {source.turn}" if is_last else f"{source.agent}, turn {source.turn}"


def _is_standing(text: str) -> bool:
    """Check whether a rule holds throughout and is more than a passing remark."""
    return weigh_rule(text) >= _STANDING and is_rule(text) and len(_flatten(text)) > _SHORT


def _has_no_exchange(rule: Quote, ledgers: set[str]) -> bool:
    """Check whether no exchange can hold the rule's words, as in packets from before there were exchanges."""
    return rule.source is None or rule.source.agent not in ledgers


def _drop_own(packet: ResumePacket) -> ResumePacket:
    """Drop what the packet's target decided, tried, read, checked and said in the conversation it resumes.

    The user's rules and the beginning of the task stay: they are short, and an agent may have forgotten parts
    of a long conversation. So do files it changed and what stands in the way: that is how things are now.
    """
    own = packet.resumes
    if not own:
        return packet
    # Readers add the line or the message's id to the transcript's path.
    inside = (f"{own}:", f"{own}#")

    def is_new(source: Provenance | None) -> bool:
        return source is None or not (source.transcript == own or source.transcript.startswith(inside))

    return packet.model_copy(
        update={
            "exchanges": tuple(one for one in packet.exchanges if is_new(one.source)),
            "decisions": tuple(one for one in packet.decisions if is_new(one.source)),
            "attempts": tuple(one for one in packet.attempts if is_new(one.source)),
            "recent_turns": tuple(one for one in packet.recent_turns if is_new(one.source)),
            "remarks": tuple(one for one in packet.remarks if is_new(one.source)),
            "validation_runs": tuple(one for one in packet.validation_runs if is_new(one.source)),
            "touched_files": tuple(
                one for one in packet.touched_files if one.status != "read" or is_new(one.source)
            ),
            **({} if packet.task_source is None or is_new(packet.task_source) else _shorten_task(packet)),
        }
    )


def _shorten_task(packet: ResumePacket) -> dict[str, object]:
    """Return the task as its reader is reminded of it, without what was pasted with it."""
    task = packet.task or ""
    if len(task) > _TASK_LENGTH:
        task = f"{task[:_TASK_LENGTH].rstrip()}\n[… the whole task is in this conversation]"
    return {"task": task or None, "task_pasted": None}


def _list_user_words(packet: ResumePacket) -> list[str]:
    return [_flatten(one.said) for one in packet.exchanges if one.said]


def _drop_failing_line(next_task: str | None, obstacles: list[str]) -> str | None:
    """Drop from the next step the output line of a failing check that is listed as a blocker below."""
    head, mark, line = (next_task or "").partition("` pass: ")
    return f"{head}` pass" if mark and _is_contained(line, obstacles) else next_task


def _shorten_ending(one: _EndingT, words: list[str]) -> _EndingT:
    """Shorten the words by which something was taken back to their beginning, if they appear elsewhere."""
    if len(one.ended_by) <= _ENDING_LENGTH or not _is_contained(one.ended_by.rstrip("…"), words):
        return one
    return one.model_copy(update={"ended_by": _begin(one.ended_by)})


def _shorten_rule(rule: Quote, told: list[str]) -> Quote:
    """Shorten a rule that the task or the waiting prompt quotes to its beginning."""
    if len(rule.text) <= _ENDING_LENGTH or not _is_contained(rule.text, told):
        return rule
    return rule.model_copy(update={"text": _begin(rule.text)})


def _begin(text: str) -> str:
    return f"{text[:_ENDING_LENGTH].rpartition(' ')[0] or text[: _ENDING_LENGTH - 1]}…"


def _list_recent(packet: ResumePacket, words: list[str]) -> Iterator[TurnExcerpt]:
    for one in packet.recent_turns:
        if one.role != "user" or not _is_contained(one.text.partition(_LEFT_OUT)[0], words):
            yield one


def _drop_repeated_words(one: Exchange, said: list[str], pastes: list[str]) -> Exchange:
    """Drop the user's words that the task or the waiting prompt repeats, and what was pasted with them."""
    if not one.said or not _is_contained(one.said.rstrip("…"), said):
        return one
    # Without the user's words, the mark would seem to be about the agent's.
    update: dict[str, object] = {"said": "", "is_settled": False}
    if _is_contained(one.pasted.partition(BEGINNING)[2].rstrip("…"), pastes):
        update["pasted"] = ""
    return one.model_copy(update=update)


def _shorten(one: Exchange, quoted: list[str], obstacles: list[str]) -> Exchange:
    update: dict[str, object] = {}
    failed = [line for line in one.failed.split("\n") if not _is_obstacle(line, obstacles)]
    update["failed"] = "\n".join(failed)
    if one.told and _is_contained(one.told.rpartition("\n")[2].rstrip("…"), quoted):
        update["told"] = one.told.rpartition("\n")[0]
    return one.model_copy(update=update)


def _is_obstacle(line: str, obstacles: list[str]) -> bool:
    """Check whether a failed run, perhaps with its command or its line cut, is one of the obstacles."""
    told, _, why = line.partition("`: ")
    command = told.strip("`")
    begun = f"`{command.rstrip(' …')}" if command.endswith("…") else f"`{command}`"
    begun, why = _flatten(begun.replace(";", " ")), why.removesuffix(" …")
    return _is_contained(why, obstacles) or any(
        why in one and _flatten(one.replace(";", " ")).startswith(begun) for one in obstacles
    )


def _list_failures_once(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield the exchanges, each failed run only where it first failed with that line."""
    seen: set[str] = set()
    for one in exchanges:
        lines = one.failed.split("\n")
        yield one.model_copy(update={"failed": "\n".join(line for line in lines if line not in seen)})
        seen.update(lines)


def _has_content(one: Exchange) -> bool:
    return bool(one.said or one.failed or one.measured or one.told)


def _list_runs(packet: ResumePacket) -> Iterator[object]:
    """Yield the last run of each kind that is no blocker, without the output of those that passed."""
    places = {one.source.transcript for one in packet.blockers if one.source}
    last = {run.kind: run for run in packet.validation_runs}
    for run in last.values():
        if run.source and run.source.transcript in places:
            continue
        yield run.model_copy(update={"output_tail": ""}) if run.verdict == "passed" else run


def _drop_known_evidence(blocker: Blocker) -> Blocker:
    """Drop from the evidence its place, which has its own line, and the lines the summary quotes."""
    place = blocker.source.transcript if blocker.source else ""
    lines = blocker.evidence.split("\n")
    left = [
        line
        for line in lines
        if line.strip() and line.strip() != place and line.strip() not in blocker.summary
    ]
    return blocker.model_copy(update={"evidence": "\n".join(left)})


def _get_text(quote: Quote | None) -> str:
    return quote.text if quote else ""


def _get_pasted(quote: Quote | None) -> str:
    return quote.pasted if quote else ""


def _is_contained(text: str, others: list[str]) -> bool:
    """Check whether one of `others` contains `text`; a text of a few letters must equal one of them."""
    flat = _flatten(text)
    return any(flat == other or (len(flat) > _SHORT and flat in other) for other in others)


def _flatten(text: str) -> str:
    """Return the bare words of `text`, without the mark for a paste that was taken out."""
    return " ".join(text.replace(GAP, " ").split())
