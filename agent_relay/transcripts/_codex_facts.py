"""Read facts from Codex rollouts: JSON lines in turns, forks that name their parent."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from agent_relay.domain.facts import Facts
from agent_relay.transcripts import lenient_json as lenient
from agent_relay.transcripts._codex_items import clean_words, hear_item, hear_wire_call
from agent_relay.transcripts._codex_usage import TURN_ENDS, TURN_STARTS, is_subagent, parse_tokens
from agent_relay.transcripts.fact_reading import Collector, ForkPoint, Peek, TranscriptSource

_SUMMARY_INTRO = re.compile(r"\AAnother language model started to solve this problem.*?:\n", re.DOTALL)
_PEEK_LINES = 40
_KNOWN = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_SCRIPT_FAILED = "Script failed"


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | float | None = None
    ordinal: int | None = None
    payload: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_lines = msgspec.json.Decoder(_Line)


class _Entry(NamedTuple):
    """One record of a turn: its line's type, payload, time and place."""

    type: str
    payload: Mapping[str, object]
    at: str | float | None
    place: str


class _Turn(msgspec.Struct):
    """The records of one turn; `own` is false where a parent of the fork made it."""

    own: bool
    entries: list[_Entry] = msgspec.field(default_factory=list)

    def has(self, kind: str) -> bool:
        return any(kind in (entry.type, lenient.get_text(entry.payload, "type")) for entry in self.entries)


class _Reading(msgspec.Struct):
    """The state while a rollout is read: the facts, and what is known besides."""

    facts: Collector
    cwd: str = ""
    model: str = ""
    window: int | None = None


def read_codex(source: TranscriptSource) -> Facts:
    """Read the facts of one rollout, beginning with the turns of those it was forked from."""
    counter = lenient.LineCounter()
    reading = _Reading(Collector(agent="codex", place=source.place))
    turns: list[_Turn] = []
    for parent in source.ancestors:
        _collect_turns(turns, parent.lines, counter, place=parent.place, before=parent.before, own=False)
    meta = _collect_turns(turns, source.lines, counter, place=source.place)
    for turn in turns:
        _hear_turn(reading, turn)
    return reading.facts.build(
        native_id=lenient.get_text(meta, "id") or source.native_id,
        cwd=reading.cwd or source.cwd,
        model=reading.model,
        counter=counter,
        context_window=reading.window,
    )


def peek_codex(lines: Iterable[bytes]) -> Peek:
    """Read thread id, working folder, parent and first prompt from the first lines."""
    meta: Mapping[str, object] = {}
    title, at = "", None
    for _, line in lenient.iterate_records(islice(lines, _PEEK_LINES), _lines, lenient.LineCounter()):
        payload = lenient.get_map(lenient.decode_raw(line.payload))
        at = at or lenient.parse_moment(line.timestamp)
        if line.type == "session_meta" and not meta:
            meta = payload
        elif not title:
            title = _find_words(line.type, payload)
    parent = lenient.get_text(meta, "forked_from_id")
    return Peek(
        native_id=lenient.get_text(meta, "id"),
        cwd=lenient.get_text(meta, "cwd"),
        title=title,
        started_at=lenient.parse_moment(meta.get("timestamp")) or at,
        is_main=bool(meta) and not is_subagent(meta),
        fork=ForkPoint(parent, lenient.get_whole(meta, "forked_from_ordinal_exclusive")) if parent else None,
    )


def _find_words(kind: str, payload: Mapping[str, object]) -> str:
    item = lenient.get_map(payload, "item")
    if kind == "event_msg" and lenient.get_text(item, "type") == "UserMessage":
        return clean_words(lenient.join_text(item.get("content"), kinds=("text", "Text")))
    if kind == "response_item" and payload.get("role") == "user":
        return clean_words(lenient.join_text(payload.get("content"), kinds=("input_text", "text")))
    return ""


def _collect_turns(
    turns: list[_Turn],
    lines: Iterable[bytes],
    counter: lenient.LineCounter,
    *,
    place: str,
    before: int | None = None,
    own: bool = True,
) -> Mapping[str, object]:
    """Cut `lines` into turns, and return the payload of the file's own `session_meta`."""
    meta: Mapping[str, object] = {}
    turns.append(_Turn(own))
    for number, line in lenient.iterate_records(lines, _lines, counter):
        if before is not None and line.ordinal is not None and line.ordinal >= before:
            break
        if line.type == "world_state":
            continue  # the bulk of many rollouts, and nothing a person said
        payload = lenient.get_map(lenient.decode_raw(line.payload))
        kind = lenient.get_text(payload, "type")
        if _is_strange(line.type, payload):
            counter.skip(counter.last[-1])
            continue
        if line.type == "session_meta":
            meta = meta or payload
            payload = {"cwd": lenient.get_text(payload, "cwd")}
        elif kind == "thread_rolled_back":
            _roll_back(turns, lenient.get_whole(payload, "num_turns") or 0)
            turns.append(_Turn(own))
        elif kind in TURN_STARTS:
            _prune(turns[-1])
            turns.append(_Turn(own))
        turns[-1].entries.append(_Entry(line.type, payload, line.timestamp, f"{place}:{number}"))
    return meta


def _is_strange(kind: str, payload: Mapping[str, object]) -> bool:
    """Check whether a line has no type, an unknown one with words, or a known one without payload."""
    if kind in _KNOWN:
        return not payload
    return not kind or lenient.has_words({"payload": payload})


def _roll_back(turns: list[_Turn], number: int) -> None:
    """Drop the last `number` turns that hold a prompt, which the user took back."""
    while number > 0 and turns:
        dropped = turns.pop()
        number -= any(_find_words(entry.type, entry.payload) for entry in dropped.entries)


def _prune(turn: _Turn) -> None:
    """Drop the wire form of a finished turn that has items: it repeats them at greater length."""
    if turn.has("item_completed"):
        outputs = dict(_iterate_outputs(turn))
        turn.entries = [entry for entry in turn.entries if not _is_repeated(entry, outputs)]


def _is_repeated(entry: _Entry, outputs: Mapping[str, str]) -> bool:
    if entry.type != "response_item" or lenient.get_text(entry.payload, "name") == "update_plan":
        return False
    return not outputs.get(lenient.get_text(entry.payload, "call_id"), "").startswith(_SCRIPT_FAILED)


def _hear_turn(reading: _Reading, turn: _Turn) -> None:
    """Add a turn's facts from its items, or from its wire records if a version recorded no items."""
    has_items = turn.has("item_completed")
    counts_totals = turn.own and not turn.has("token_usage_record")
    outputs = dict(_iterate_outputs(turn))
    for entry in turn.entries:
        reading.facts.see(lenient.parse_moment(entry.at))
        match entry.type:
            case "turn_context" | "session_meta":
                reading.cwd = lenient.get_text(entry.payload, "cwd") or reading.cwd
                reading.model = lenient.get_text(entry.payload, "model") or reading.model
            case "token_usage_record" if turn.own:
                key = lenient.get_text(entry.payload, "response_id") or entry.place
                reading.facts.tokens[key] = parse_tokens(lenient.get_map(entry.payload, "usage"))
            case "compacted":
                text = lenient.get_text(entry.payload, "message")
                reading.facts.summarize(_SUMMARY_INTRO.sub("", text).strip())
            case "response_item":
                _hear_wire(reading.facts, entry, outputs, has_items=has_items)
            case "event_msg":
                _hear_event(reading, entry, has_items=has_items, counts_totals=counts_totals)
            case _:
                pass


def _iterate_outputs(turn: _Turn) -> Iterator[tuple[str, str]]:
    for entry in turn.entries:
        if lenient.get_text(entry.payload, "type") in ("function_call_output", "custom_tool_call_output"):
            output = entry.payload.get("output")
            text = (
                output if isinstance(output, str) else lenient.join_text(output, kinds=("input_text", "text"))
            )
            yield lenient.get_text(entry.payload, "call_id"), text


def _hear_wire(facts: Collector, entry: _Entry, outputs: Mapping[str, str], *, has_items: bool) -> None:
    payload, place = entry.payload, entry.place
    kind = lenient.get_text(payload, "type")
    if kind in ("function_call", "custom_tool_call"):
        output = outputs.get(lenient.get_text(payload, "call_id"))
        if lenient.get_text(payload, "name") == "update_plan":
            _take_plan(facts, payload)
        elif not has_items:
            hear_wire_call(facts, payload, output, place)
        elif output and output.startswith(_SCRIPT_FAILED):
            facts.fail(lenient.get_text(payload, "name"), output, place)
    elif kind == "message" and not has_items:
        text = lenient.join_text(payload.get("content"), kinds=("input_text", "output_text", "text")).strip()
        role = lenient.get_text(payload, "role")
        if role == "user":
            facts.hear_user(clean_words(text), place)
        elif role == "assistant" and text:
            facts.hear_agent(text, place)
            facts.answered = True


def _take_plan(facts: Collector, payload: Mapping[str, object]) -> None:
    arguments = lenient.decode_text(lenient.get_text(payload, "arguments"))
    steps = lenient.get_list(arguments, "plan")
    facts.replace_plan([(lenient.get_text(step, "step"), lenient.get_text(step, "status")) for step in steps])


def _hear_event(reading: _Reading, entry: _Entry, *, has_items: bool, counts_totals: bool) -> None:
    facts, payload = reading.facts, entry.payload
    match lenient.get_text(payload, "type"):
        case "item_completed" if has_items:
            hear_item(facts, lenient.get_map(payload, "item"), entry.place)
        case kind if kind in TURN_STARTS:
            reading.window = lenient.get_whole(payload, "model_context_window") or reading.window
        case kind if kind in TURN_ENDS:
            error = lenient.get_map(payload, "error")
            facts.answered = not error
            facts.limit_text = lenient.get_text(error, "message")
        case "turn_aborted":
            facts.answered = False
            facts.interrupted = payload.get("reason") == "interrupted"
        case "token_count" if counts_totals:
            _count_tokens(facts, lenient.get_map(payload, "info"))
        case _:
            pass


def _count_tokens(facts: Collector, info: Mapping[str, object]) -> None:
    # Re-emitted with unchanged totals: the total is the key, so that it counts once.
    total = lenient.get_count(info.get("total_token_usage"), "total_tokens")
    if total:
        facts.tokens[f"total {total}"] = parse_tokens(lenient.get_map(info, "last_token_usage"))
