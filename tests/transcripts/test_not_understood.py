"""A transcript that is not written as it used to be is read as far as it goes, and the rest is counted."""

import glob
import json
import os

import pytest

from agent_relay.domain.facts import Facts
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource

SAMPLES = os.path.join(os.path.dirname(__file__), "samples")
EPOCH = 1_795_170_256_982
Row = dict[str, object]


def claude(kind: str, text: str, **more: object) -> Row:
    """A row of a conversation."""
    content = [{"type": "text", "text": text}]
    message = {
        "role": kind,
        "content": content,
        "id": f"m-{text}",
        "model": "opus",
        "stop_reason": "end_turn",
    }
    row = {"type": kind, "uuid": f"u-{text}", "parentUuid": None, "sessionId": "s", "cwd": "/p"}
    return {**row, "timestamp": EPOCH, "message": message, **more}


def codex(kind: str, text: str, **more: object) -> Row:
    """A message on the wire."""
    content = [{"type": "input_text" if kind == "user" else "output_text", "text": text}]
    payload = {"type": "message", "role": kind, "content": content}
    return {"timestamp": EPOCH, "type": "response_item", "payload": payload, **more}


def gemini(kind: str, text: str, **more: object) -> Row:
    """A message."""
    kind = "gemini" if kind == "assistant" else kind
    return {"id": f"m-{text}", "timestamp": EPOCH, "type": kind, "content": text, **more}


def demo(kind: str, text: str, **more: object) -> Row:
    """A row of the demo's."""
    return {"type": "prompt" if kind == "user" else "say", "at": EPOCH, "text": text, **more}


BUILDERS = {"claude-jsonl": claude, "codex-rollout": codex, "gemini-jsonl": gemini, "demo-jsonl": demo}
CHANGED: dict[str, list[Row]] = {
    "claude-jsonl": [
        claude("human", "three"),
        claude("user", "four", message={"body": "four"}),
        {"kind": "x"},
    ],
    "codex-rollout": [codex("user", "three", type="thread_item"), {"type": "response_item"}, {"kind": "x"}],
    "gemini-jsonl": [gemini("person", "three"), {"kind": "user", "msg": {"text": "four"}}, {"words": "five"}],
    "demo-jsonl": [demo("user", "three", type="asked"), {"kind": "prompt"}, {"words": "five"}],
}


def read(name: str, *rows: Row | bytes) -> Facts:
    """The facts of a transcript with these lines."""
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows]
    return READERS[name].read(TranscriptSource(place="t", lines=lines))


@pytest.mark.parametrize("name", BUILDERS)
def test_times_in_milliseconds_are_times(name: str) -> None:
    """A number where a text used to be must not cost the whole line."""
    build = BUILDERS[name]
    facts = read(name, build("user", "one"), build("assistant", "two"))
    assert [(said.role, said.text) for said in facts.conversation] == [("user", "one"), ("assistant", "two")]
    assert [said.at.isoformat() for said in facts.conversation if said.at] == [
        "2026-11-20T10:24:16.982000+00:00"
    ] * 2
    assert (facts.strange_lines, facts.lines, facts.last_lines) == (0, 2, ())


@pytest.mark.parametrize("name", BUILDERS)
def test_lines_that_tell_something_in_another_way_are_counted_and_kept(name: str) -> None:
    """What nobody understands is still there to be read, by a successor for example."""
    build = BUILDERS[name]
    facts = read(name, build("user", "one"), build("assistant", "two"), *CHANGED[name])
    assert [said.text for said in facts.conversation] == ["one", "two"]
    assert (facts.strange_lines, facts.lines) == (3, 5)
    assert [json.loads(line) for line in facts.last_lines] == CHANGED[name]


@pytest.mark.parametrize("name", BUILDERS)
def test_a_last_line_that_is_being_written_is_nothing_strange(name: str) -> None:
    """Who reads a living transcript meets half a line: no newer version is behind that."""
    build = BUILDERS[name]
    whole = json.dumps(build("user", "one")).encode() + b"\n"
    facts = read(name, whole, whole[:-9])
    assert (facts.strange_lines, facts.skipped_lines, len(facts.conversation)) == (0, 1, 1)
    assert read(name, whole, whole[:-9] + b"\n").strange_lines == 1


@pytest.mark.parametrize("name", ["claude-jsonl", "codex-rollout"])
def test_one_field_of_another_kind_costs_no_more_than_itself(name: str) -> None:
    """The prompt of a row is not lost because its folder is an object now."""
    odd: dict[str, object] = {"cwd": {"path": "/p"}, "isMeta": "no", "ordinal": "one"}
    facts = read(name, BUILDERS[name]("user", "one", **odd))
    assert [said.text for said in facts.conversation] == ["one"]
    assert facts.strange_lines == 0


@pytest.mark.parametrize("name", BUILDERS)
def test_of_a_transcript_without_a_word_the_last_lines_are_kept(name: str) -> None:
    """There is nothing else to hand over of it."""
    lines = [f'{{"type":"unheard-of","n":{number}}}\n'.encode() for number in range(20)]
    facts = read(name, *lines)
    assert facts.conversation == ()
    assert facts.last_lines[-1] == '{"type":"unheard-of","n":19}'
    assert len(facts.last_lines) == 6


def test_rows_of_a_database_that_are_no_messages_are_counted_and_kept() -> None:
    """The same for an agent that keeps its sessions in tables."""
    good = {"id": "m1", "data": json.dumps({"role": "user", "time": {"created": EPOCH}})}
    odd = {"id": "m2", "data": json.dumps({"kind": "user", "words": "three"})}
    part = {"id": "p1", "message_id": "m1", "data": json.dumps({"type": "text", "text": "one"})}
    source = TranscriptSource(session={"id": "s"}, messages=(good, odd), parts=(part,))
    facts = READERS["opencode-db"].read(source)
    assert [said.text for said in facts.conversation] == ["one"]
    assert (facts.strange_lines, facts.lines) == (1, 2)
    assert facts.last_lines == ('{"kind": "user", "words": "three"}',)


def test_an_overlong_line_is_told_by_its_length() -> None:
    """Half of it could hold half a key, which nobody would recognise."""
    facts = read("demo-jsonl", b'{"type":"asked","text":"' + b"x" * 100_000 + b'"}\n')
    assert facts.last_lines == ("[a line of 100027 bytes]",)


@pytest.mark.parametrize("path", sorted(glob.glob(f"{SAMPLES}/[!o]*.jsonl")), ids=os.path.basename)
def test_in_recorded_transcripts_nothing_is_strange(path: str) -> None:
    """A warning with every handoff would be none."""
    prefix = os.path.basename(path).partition("-")[0]
    name = next(name for name in BUILDERS if name.startswith(prefix))
    with open(path, "rb") as file:
        facts = READERS[name].read(TranscriptSource(place=path, lines=list(file)))
    assert (facts.strange_lines, facts.last_lines) == (0, ())
    assert facts.conversation
