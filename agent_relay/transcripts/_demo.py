"""Read facts and usage from the demo agents' transcripts, as `docs/adapters.md` describes them."""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from agent_relay.domain.facts import Facts
from agent_relay.transcripts import usage_records as records
from agent_relay.transcripts.fact_reading import (
    Action,
    Collector,
    Peek,
    TranscriptSource,
    list_unified_lines,
)
from agent_relay.transcripts.lenient_json import (
    LineCounter,
    get_count,
    get_list,
    get_text,
    get_whole,
    has_words,
    iterate_records,
    parse_moment,
)

_PEEK_ROWS = 20
_KNOWN = (
    "session", "prompt", "say", "done", "interrupted", "limit", "edit", "run", "error", "plan", "usage",
    "thought", "brief", "compacted", "warning", "window", "context", "retry", "healed",
)  # fmt: skip
_DECODER = msgspec.json.Decoder(dict[str, object])
_ACTIONS: dict[str, Action] = {"created": "created", "modified": "modified", "deleted": "deleted"}


def read_demo(source: TranscriptSource) -> Facts:
    """Read the facts of one transcript, resumed parts included."""
    counter = LineCounter()
    facts = Collector(agent="demo", place=source.place)
    native_id, cwd = source.native_id, source.cwd
    for number, row in iterate_records(source.lines, _DECODER, counter):
        facts.see(parse_moment(row.get("at")))
        if get_text(row, "type") not in _KNOWN and (not get_text(row, "type") or has_words(row)):
            counter.skip(counter.last[-1])
        elif get_text(row, "type") == "session":
            facts.agent = get_text(row, "agent") or facts.agent
            native_id, cwd = get_text(row, "id") or native_id, get_text(row, "cwd") or cwd
        else:
            _hear(facts, row, f"{source.place}:{number}")
    return facts.build(native_id=native_id, cwd=cwd, model="scripted", counter=counter)


def peek_demo(lines: Iterable[bytes]) -> Peek:
    """Read session id, working folder and first prompt from the first rows."""
    rows = [row for _, row in islice(iterate_records(lines, _DECODER, LineCounter()), _PEEK_ROWS)]
    opening = next((row for row in rows if get_text(row, "type") == "session"), None)
    return Peek(
        native_id=get_text(opening, "id"),
        cwd=get_text(opening, "cwd"),
        title=next((get_text(row, "text") for row in rows if get_text(row, "type") == "prompt"), ""),
        started_at=parse_moment(opening.get("at")) if opening else None,
        is_main=opening is not None,
    )


def _hear(facts: Collector, row: dict[str, object], place: str) -> None:
    text = get_text(row, "text")
    match get_text(row, "type"):
        case "prompt":
            facts.hear_user(text, place)
        case "say":
            facts.hear_agent(text, place)
        case "done" | "interrupted" as ending:
            facts.answered = True
            facts.interrupted = ending == "interrupted"
        case "limit":
            facts.limit_text = text
        case "edit":
            counts = (get_count(row, "added"), get_count(row, "removed"))
            action = _ACTIONS.get(get_text(row, "action"), "modified")
            lines = list_unified_lines(get_text(row, "diff"))
            facts.touch(get_text(row, "path"), action, place, counts=counts, lines=lines)
        case "run":
            facts.run(get_text(row, "command"), get_text(row, "output"), get_whole(row, "exit_code"), place)
        case "error":
            facts.fail(get_text(row, "tool"), text, place)
        case "plan":
            steps = get_list(row, "steps")
            facts.replace_plan([(get_text(step, "text"), get_text(step, "status")) for step in steps])
        case "usage":
            facts.tokens[place] = records.TokenCounts(
                records.get_tokens(row, "input"), output=records.get_tokens(row, "output")
            )


def read_demo_usage(data: bytes, memory: records.ReaderState) -> Iterator[records.UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for row in records.decode_lines(data, _DECODER, memory):
        yield from _read_row(row, memory)


def _read_row(row: dict[str, object], memory: records.ReaderState) -> Iterator[records.UsageRecord]:
    at = records.note_moment(memory, row.get("at"))
    # Rows have no names of their own: their order among the session's is one.
    memory.total = str(int(memory.total or 0) + 1)
    key, session = f"{memory.session}#{memory.total}", memory.session
    match get_text(row, "type"):
        case "session":
            memory.session = get_text(row, "id") or memory.session
            yield records.SessionOpened(memory.session, get_text(row, "cwd"))
        case "prompt":
            yield records.PromptSent(key, at, session)
        case "limit":
            yield records.TurnFailed(key, at, session)
        case "edit":
            yield records.LinesChanged(key, at, session, get_count(row, "added"), get_count(row, "removed"))
        case "usage":
            model, output = get_text(row, "model") or "scripted", records.get_tokens(row, "output")
            yield records.AnswerUsage(
                key, at, session, model, records.get_tokens(row, "input"), output=output
            )
        case _:
            pass
