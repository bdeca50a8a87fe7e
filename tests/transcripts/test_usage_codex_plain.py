"""Codex's ordinary lines, and what only looks like one of them."""

from agent_relay.transcripts._codex_usage import read_codex_usage
from agent_relay.transcripts.usage_records import AnswerUsage, PromptSent, ReaderState
from tests.transcripts.codex_records import (
    BOTH,
    FIRST,
    SECOND,
    build_count,
    build_line,
    build_meta,
    build_record,
    read_records,
)
from tests.transcripts.rows import join_compact


def test_a_count_that_only_begins_like_what_is_known_is_read() -> None:
    """A torn line does not repeat a record, nor does a total that goes on differently."""
    memory, record = ReaderState(), join_compact(build_meta("t1"), build_record("r1", FIRST, FIRST))
    torn = join_compact(build_count(FIRST, FIRST))[:-9] + b"\n"
    assert [
        mark.key for mark in read_codex_usage(record + torn, memory) if isinstance(mark, AnswerUsage)
    ] == ["r1"]
    assert memory.skipped == 1
    first, both = ({"details": {"images": 0}} | one for one in (FIRST, BOTH))
    marks = read_records(build_meta("t1"), build_record("r1", FIRST, first), build_count(both, SECOND))
    assert [mark.output for mark in marks if isinstance(mark, AnswerUsage)] == [120, 80]


def test_lines_with_nothing_in_them_are_no_damage() -> None:
    """Wherever they stand: at the ends, and between a record and the count that repeats it."""
    lines = [
        join_compact(one)
        for one in (build_meta("t1"), build_record("r1", FIRST, FIRST), build_count(FIRST, FIRST))
    ]
    memory, whole = ReaderState(), ReaderState()
    marks = list(read_codex_usage(b"\n" + b"\n\n".join(lines) + b"\n\n", memory))
    assert marks == list(read_codex_usage(b"".join(lines), whole))
    assert (memory.skipped, memory) == (0, whole)


def test_a_prompt_is_told_by_its_turn_or_its_moment() -> None:
    """Old versions named no turn; a subagent is prompted by its parent, and no user."""
    plain = build_line("event_msg", type="user_message", message="go on")
    named = build_line("event_msg", "10:00:06", type="user_message", message="go on", turn_id="u1")
    odd = build_line("event_msg", "10:00:07", type="user_message", message="go on", turn_id=1)
    marks = read_records(build_meta("t1"), plain, named, odd)
    keys = [mark.key for mark in marks if isinstance(mark, PromptSent)]
    assert keys == ["t1/1795168805000", "u1", "t1/1795168807000"]
    side = read_records(build_line("session_meta", id="t2", source={"subagent": "review"}), plain)
    assert not [mark for mark in side if isinstance(mark, PromptSent)]


def test_a_model_is_at_work_from_when_it_is_named() -> None:
    """Also where nothing dates that."""
    undated = build_line("turn_context", model="m2") | {"timestamp": None}
    named = build_line("turn_context", model="m1")
    marks = read_records(
        build_meta("t1"), named, build_count(FIRST, FIRST), undated, build_count(BOTH, SECOND)
    )
    assert [mark.model for mark in marks if isinstance(mark, AnswerUsage)] == ["m1", "m2"]
