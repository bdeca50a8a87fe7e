"""What the records of Gemini CLI, opencode and the demo agents say was used."""

import json

import pytest

from agent_relay.transcripts._demo import read_demo_usage
from agent_relay.transcripts._gemini import read_gemini_usage
from agent_relay.transcripts._opencode import read_opencode_message, read_opencode_session
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.usage_readers import USAGE_READERS
from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
)
from agent_relay.usage._dedupe import dedupe_marks
from tests.transcripts.rows import join_compact, read_sample

AT = "2026-11-20T10:00:00.000Z"


def test_every_transcript_reader_has_one_for_usage() -> None:
    """An adapter names one reader; an agent whose usage is left out would look free."""
    assert set(USAGE_READERS) == set(READERS)


def test_gemini_messages_written_again_count_once() -> None:
    """Each of the six answers but the last stands there twice, first without its tool calls.

    Input 8,400 + 8,800 + 9,200 + 9,600 + 10,000 + 10,400 = 56,400 of which 6 * 4,096 = 24,576 cached, so
    31,824 new; output 2 + 1 + 1 + 1 + 1 + 4 = 10 and 6 * 57 = 342 thoughts.
    """
    natives = dedupe_marks(
        "gemini", [list(read_gemini_usage(read_sample("gemini-edit.jsonl"), ReaderState(cwd="/p")))]
    )
    (native,) = natives
    assert sum(one.input for one in native.used) == 31_824
    assert sum(one.cached for one in native.used) == 24_576
    assert sum(one.output for one in native.used) == 352
    assert sum(one.reasoning for one in native.used) == 342
    assert (len(native.used), len(native.prompts), native.cwd) == (6, 1, "/p")


def _gemini(*records: dict[str, object], memory: ReaderState | None = None) -> list[UsageRecord]:
    header = {"sessionId": "g1", "startTime": AT, "kind": "main"}
    return list(read_gemini_usage(join_compact(header, *records), memory or ReaderState()))


def test_gemini_counts_each_message_by_its_own_line() -> None:
    """Rewritten lists repeat old answers under new ids; what was rewound was used all the same."""
    tokens = {"input": 100, "cached": 40, "output": 5, "thoughts": 2, "tool": 3, "total": 110}
    answer = {"id": "a", "type": "gemini", "timestamp": AT, "model": "m", "tokens": tokens}
    call = {
        "id": "c", "name": "write_file", "status": "success",
        "resultDisplay": {"diffStat": {"model_added_lines": 4, "model_removed_lines": 1}},
    }  # fmt: skip
    marks = _gemini(
        {"id": "u", "type": "user", "timestamp": AT, "content": [{"text": "go"}]},
        {"id": "s", "type": "user", "timestamp": AT, "content": "[System: You successfully executed a tool"},
        answer,
        answer | {"toolCalls": [call, call | {"id": "d", "status": "error"}, {"name": "read_file"}]},
        {"$set": {"messages": [answer | {"id": "b"}]}},
        {"$rewindTo": "a"},
        {"id": "i", "type": "info", "content": ""},
        {"id": "g", "type": "gemini", "content": "no tokens yet"},
        {"id": "e", "type": "error", "timestamp": AT, "content": "[API Error: quota]"},
        {"sessionId": "g1", "startTime": AT, "kind": "main"},
        {"type": "user", "content": 7},
    )
    (native,) = dedupe_marks("gemini", [marks])
    # 100 - 40 and the 3 of tools are 63 new; 5 + 2 output.
    assert [(one.input, one.cached, one.output, one.reasoning) for one in native.used] == [(63, 40, 7, 2)]
    assert (len(native.prompts), len(native.failures)) == (1, 1)
    assert [(one.added, one.removed) for one in native.changes] == [(4, 1)]


def test_geminis_subagents_belong_to_the_session_whose_folder_they_lie_in() -> None:
    """Their headers say what they are; the file's place says whose."""
    record = {"id": "a", "type": "gemini", "tokens": {"input": 5}}
    prompt = {"id": "u", "type": "user", "content": "instructions"}
    header = {"sessionId": "g2", "startTime": AT, "kind": "subagent"}
    side = list(read_gemini_usage(join_compact(header, prompt, record), ReaderState(parent="g1")))
    natives = dedupe_marks("gemini", [side, _gemini(record | {"id": "b"})])
    assert [(one.session, len(one.used), len(one.prompts)) for one in natives] == [("g1", 2, 0)]


def test_hostile_gemini_lines_are_skipped() -> None:
    """Torn and wrongly typed lines cost themselves alone."""
    memory = ReaderState()
    assert list(read_gemini_usage(b'{"id":"a","type":"gem\n{"id":7}\n[1]\n{"tokens":[]}\n\n', memory)) == []
    assert memory.skipped == 4


def _message(key: str, session: str = "s1", **data: object) -> list[UsageRecord]:
    row = {"id": key, "session_id": session, "data": json.dumps(data)}
    return list(read_opencode_message(row, ReaderState()))


TOKENS = {"input": 100, "output": 10, "reasoning": 4, "cache": {"read": 50, "write": 20}}


def test_opencode_counts_complete_answers_and_reasoning_beside_the_output() -> None:
    """100 new, 50 cached, 20 written, 10 + 4 output of which 4 reasoning; an answer in the making not yet."""
    done = {"created": 1_795_171_000_000, "completed": 1_795_171_005_000}
    marks = _message("m1", role="assistant", time=done, tokens=TOKENS, modelID="m")
    assert [
        (one.input, one.cached, one.cache_write, one.output, one.reasoning, one.model)
        for one in marks
        if isinstance(one, AnswerUsage)
    ] == [(100, 50, 20, 14, 4, "m")]
    assert _message("m2", role="assistant", time={"created": 1_795_171_000_000}, tokens=TOKENS) == []


def test_an_opencode_fork_counts_its_copies_once_and_a_subagent_with_its_parent() -> None:
    """Copies keep their times and counts under new ids. 2 answers: one copied, one of the subagent."""
    done = {"created": 1_795_171_000_000, "completed": 1_795_171_005_000}
    later = {"created": 1_795_171_010_000, "completed": 1_795_171_015_000}
    marks = [
        *read_opencode_session({"id": "s1", "directory": "/w", "parent_id": None}),
        *read_opencode_session({"id": "s2", "directory": "/w", "parent_id": None}),
        *read_opencode_session({"id": "s3", "directory": "/w", "parent_id": "s1"}),
        *read_opencode_session({"id": None}),
        *_message("m0", role="user", time={"created": 1_795_170_000_000}),
        *_message("m1", role="assistant", time=done, tokens=TOKENS),
        *_message("m1b", "s2", role="assistant", time=done, tokens=TOKENS),
        *_message("m2", "s3", role="user", time={"created": 1_795_171_009_000}),
        *_message("m3", "s3", role="assistant", time=later, tokens=TOKENS),
    ]
    natives = dedupe_marks("opencode", [marks])
    assert [(one.session, len(one.used), len(one.prompts)) for one in natives] == [("s1", 2, 1)]


def test_opencode_turns_fail_by_errors_of_the_provider_only() -> None:
    """The user's own break is none. Changed lines are those of the prompt's summary."""
    done = {"created": 1_795_171_000_000, "completed": 1_795_171_005_000}
    failed = _message("m1", role="assistant", time=done, error={"name": "APIError"})
    broken = _message("m2", role="assistant", time=done, error={"name": "MessageAbortedError"})
    assert [type(mark) for mark in failed + broken] == [TurnFailed]
    diffs = [{"additions": 3, "deletions": 1}, {"additions": 2}, "x"]
    asked = _message("m3", role="user", time={"created": 1_795_171_000_000}, summary={"diffs": diffs})
    assert [type(mark) for mark in asked] == [PromptSent, LinesChanged]
    again = _message("m3", role="user", time={"created": 1_795_171_000_000}, summary={"diffs": diffs[:1]})
    (native,) = dedupe_marks("opencode", [[*again, *asked]])
    assert [(one.added, one.removed) for one in native.changes] == [(5, 1)]


@pytest.mark.parametrize("data", ["{", "[1]", None, 7])
def test_rows_that_are_no_messages_are_skipped(data: object) -> None:
    """A database of another version, or a damaged one, is not a bug of ours."""
    memory = ReaderState()
    assert list(read_opencode_message({"id": "m", "session_id": "s", "data": data}, memory)) == []
    assert memory.skipped == 1


def test_the_demo_agents_usage_counts_line_by_line() -> None:
    """The demo is the one place where everybody can see the figures come true: 10 + 5 in, 2 + 1 out."""
    memory = ReaderState()
    data = join_compact(
        {"type": "session", "at": AT, "id": "d1", "cwd": "/w"},
        {"type": "prompt", "at": AT},
        {"type": "usage", "input": 10, "output": 2},
        {"type": "usage", "input": 5, "output": 1},
        {"type": "edit", "added": 1, "removed": 1},
        {"type": "limit", "at": AT},
        {"type": "say"},
    )
    marks = [*read_demo_usage(data + b"{\n", memory)]
    (native,) = dedupe_marks("demo", [marks])
    assert [(one.input, one.output) for one in native.used] == [(10, 2), (5, 1)]
    assert (len(native.prompts), len(native.failures), len(native.changes)) == (1, 1, 1)
    assert memory.skipped == 1
    assert [mark for mark in marks if isinstance(mark, SessionOpened)] == [SessionOpened("d1", "/w")]
