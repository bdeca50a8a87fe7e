"""What Codex's rollouts say was used."""

from agent_relay.transcripts._codex_usage import read_codex_usage
from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    TurnFailed,
)
from agent_relay.usage._dedupe import dedupe_marks
from tests.transcripts.codex_records import (
    BOTH,
    FIRST,
    SECOND,
    build_count,
    build_counts,
    build_line,
    build_meta,
    build_record,
    read_records,
)
from tests.transcripts.rows import join_compact, read_sample
from tests.transcripts.totals import sum_used


def test_input_leaves_out_the_cached_and_output_includes_the_reasoning() -> None:
    """Codex counts both in both: adding them would count them twice.

    9,000 - 7,000 and 10,000 - 9,000 - 500 are 2,500 new; 16,000 cached, 500 written; 120 + 80 output of which
    64 + 16 were reasoning.
    """
    natives = dedupe_marks(
        "codex", [read_records(build_meta("t1"), build_count(FIRST, FIRST), build_count(BOTH, SECOND))]
    )
    assert sum_used(natives) == (2500, 16_000, 500, 200, 80)


def test_totals_are_not_added_and_repeats_do_not_count() -> None:
    """`token_count` is sent again with unchanged totals, and after a compaction with an empty last answer.

    Twice FIRST, once nothing new: 2,000 + 7,000 cached + 120.
    """
    empty = build_counts(0, 0, 0) | {"total_tokens": 8327}
    marks = read_records(
        build_meta("t1"),
        build_count(FIRST, FIRST),
        build_count(FIRST, FIRST),
        build_count(FIRST, empty),
        build_count(BOTH, empty),
    )
    assert sum_used(dedupe_marks("codex", [marks])) == (2000, 7000, 0, 120, 64)


def test_totals_alone_count_by_what_they_grew() -> None:
    """Old versions told no last answer. FIRST, then BOTH - FIRST, then a new start with 500 and 50.

    (9,000 - 7,000) + (10,000 - 9,000 - 500) + 500 new; of a fork the first total is its parent's.
    """
    start = build_counts(500, 0, 50)
    marks = read_records(
        build_meta("t1"), build_count(FIRST, None), build_count(BOTH, None), build_count(start, None)
    )
    assert sum_used(dedupe_marks("codex", [marks])) == (3000, 16_000, 500, 250, 80)
    fork = read_records(
        build_meta("t2", forked_from_id="t1"), build_count(FIRST, None), build_count(BOTH, None)
    )
    assert sum_used(dedupe_marks("codex", [fork])) == (500, 9000, 500, 80, 16)


def test_the_two_records_of_one_answer_count_once() -> None:
    """New versions write both, in either order."""
    for records in (
        (
            build_record("r1", FIRST, FIRST),
            build_count(FIRST, FIRST),
            build_record("r2", SECOND, BOTH),
            build_count(BOTH, SECOND),
        ),
        (
            build_count(FIRST, FIRST),
            build_record("r1", FIRST, FIRST),
            build_count(BOTH, SECOND),
            build_record("r2", SECOND, BOTH),
        ),
    ):
        natives = dedupe_marks("codex", [read_records(build_meta("t1"), *records)])
        assert sum_used(natives) == (2500, 16_000, 500, 200, 80)
        assert [one.key for one in natives[0].used] == ["r1", "r2"]


def test_a_recorded_fork_adds_its_own_answer_alone() -> None:
    """Parent: two answers of 9,000 in (7,000 cached) and 120 out; its fork, whose totals go on, one more.

    3 * 2,000 new, 3 * 7,000 cached, 3 * 120 output, 3 * 64 reasoning.
    """
    files = [
        list(read_codex_usage(read_sample(name), ReaderState()))
        for name in ("codex-fork.jsonl", "codex-fork-parent.jsonl")
    ]
    natives = dedupe_marks("codex", files)
    assert sum_used(natives) == (6000, 21_000, 0, 360, 192)
    assert [(len(one.used), len(one.prompts)) for one in natives] == [(2, 2), (1, 1)]
    assert {one.model for native in natives for one in native.used} == {"gpt-5.5"}


def test_a_fork_that_replays_its_parent_adds_only_what_is_new() -> None:
    """Older versions copied every record of the parent into the fork, dated anew.

    Parent FIRST, fork FIRST again and then SECOND: 2,000 + 500, not 2,000 + 2,000 + 500.
    """
    prompt = build_line("event_msg", "09:00:00", type="user_message", message="do it")
    copied = build_line("event_msg", "10:00:00", type="user_message", message="do it")
    failed = build_line("event_msg", "10:00:00", type="task_complete", error={"message": "limit"})
    parent = read_records(build_meta("t1", "09:00:00"), prompt, build_count(FIRST, FIRST, "09:00:05"))
    fork = read_records(
        build_meta("t2", forked_from_id="t1"),
        build_meta("t1"),
        copied,
        failed,
        build_count(FIRST, FIRST, "10:00:00"),
        build_line("event_msg", "10:03:00", type="user_message", message="and more"),
        build_count(BOTH, SECOND, "10:04:00"),
    )
    for files in ([parent, fork], [fork, parent]):
        natives = dedupe_marks("codex", files)
        assert sum_used(natives) == (2500, 16_000, 500, 200, 80)
        assert [(one.session, one.parent, len(one.prompts)) for one in natives] == [
            ("t1", "", 1),
            ("t2", "t1", 1),
        ]
    alone = dedupe_marks(
        "codex", [fork, read_records(build_meta("t3", forked_from_id="t1"), build_count(FIRST, FIRST))]
    )
    assert sum_used(alone) == (2500, 16_000, 500, 200, 80)


def test_a_session_that_was_opened_only_has_used_nothing() -> None:
    """Its file has a first line, and no answer yet; the one beside it counts."""
    natives = dedupe_marks(
        "codex", [read_records(build_meta("t1")), read_records(build_meta("t2"), build_count(FIRST, FIRST))]
    )
    assert [(one.session, len(one.used)) for one in natives] == [("t2", 1)]


def test_unrelated_sessions_with_the_same_totals_both_count() -> None:
    """The same prompt in two new sessions can cost the same to the token. 2 * 2,000 new, 2 * 7,000 cached."""
    files = [
        read_records(build_meta("t1"), build_count(FIRST, FIRST)),
        read_records(build_meta("t2"), build_count(FIRST, FIRST)),
    ]
    assert sum_used(dedupe_marks("codex", files)) == (4000, 14_000, 0, 240, 128)


def test_a_subagents_rollout_is_part_of_the_session_that_spawned_it() -> None:
    """It has a file and a thread of its own, totals from zero, and prompts nobody typed."""
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "t1"}}}
    side = read_records(
        build_meta("t2") | {"payload": {"id": "t2", "cwd": "/w", "source": spawned}},
        build_line("event_msg", type="item_completed", item={"type": "UserMessage", "id": "i"}),
        build_count(SECOND, SECOND),
    )
    natives = dedupe_marks("codex", [side, read_records(build_meta("t1"), build_count(FIRST, FIRST))])
    assert [(one.session, len(one.used), len(one.prompts)) for one in natives] == [("t1", 2, 0)]
    assert sum_used(natives) == (2500, 16_000, 500, 200, 80)
    orphan = dedupe_marks("codex", [side])
    assert [one.session for one in orphan] == ["t1"]
    review = {"payload": {"id": "t9", "source": {"subagent": "review"}}}
    nobodys = dedupe_marks("codex", [read_records(build_meta("t9") | review, build_count(FIRST, FIRST))])
    assert [(one.session, len(one.used)) for one in nobodys] == [("t9", 1)]


def test_turns_limits_and_changed_lines_are_told() -> None:
    """+1 of a new file, -2 of a deleted one, +1 -1 of an edit; a declined patch changed nothing."""
    changes = {
        "a": {"type": "add", "content": "1\n"},
        "b": {"type": "delete", "content": "1\n2\n"},
        "c": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y\n"},
    }
    marks = read_records(
        build_meta("t1"),
        build_line("event_msg", type="item_completed", item={"type": "UserMessage", "id": "i1"}),
        build_line(
            "event_msg", type="item_completed", item={"type": "FileChange", "id": "c1", "changes": changes}
        ),
        build_line("event_msg", type="item_completed", item={"type": "FileChange", "status": "declined"}),
        build_line(
            "event_msg", type="item_completed", item={"type": "CommandExecution", "aggregated_output": "x"}
        ),
        build_line("event_msg", type="user_message", message="the same prompt, told again"),
        build_line("event_msg", type="task_complete", turn_id="u1", error={"message": "limit"}),
        build_line("event_msg", type="task_complete", turn_id="u2"),
        build_line("response_item", type="message"),
        build_line("compacted", message="x"),
    )
    assert [mark.key for mark in marks if isinstance(mark, PromptSent)] == ["i1"]
    assert [(mark.added, mark.removed) for mark in marks if isinstance(mark, LinesChanged)] == [(2, 3)]
    assert [mark.key for mark in marks if isinstance(mark, TurnFailed)] == ["u1"]


def test_an_odd_answer_counts_like_an_ordinary_one() -> None:
    """A line may leave a count out, or say it in a way nobody can read: the others are told all the same.

    Without its input the first is told by its output; 120 + 80 are BOTH's, whose total is known by then.
    """
    odd = {name: count for name, count in FIRST.items() if name != "input_tokens"}
    for told in (odd, odd | {"input_tokens": 9000.0}, odd | {"input_tokens": None}):
        marks = read_records(
            build_meta("t1"),
            build_count(told, told),
            build_record("r1", told, told),
            build_count(BOTH, SECOND),
        )
        used = [mark for mark in marks if isinstance(mark, AnswerUsage)]
        assert [(one.key, one.input, one.cached, one.output) for one in used] == [
            ("", 0, 7000, 120),
            ("r1", 0, 7000, 120),
            ("", 500, 9000, 80),
        ]
        assert used[0].chain == used[1].chain == "0/7000/0/120/64/9120"
        assert used[2].chain == "19000/16000/500/200/80/19200"
    nothing = read_records(
        build_meta("t1"), build_record("r1", {"output_tokens": 0}, FIRST), build_count(FIRST, SECOND)
    )
    assert not [mark for mark in nothing if isinstance(mark, AnswerUsage)]


def test_a_count_that_cannot_be_read_is_told_of_and_the_next_one_counts() -> None:
    """A program that was killed leaves half a line; the next one begins another behind it."""
    memory = ReaderState()
    whole = join_compact(build_count(FIRST, FIRST))
    marks = list(read_codex_usage(join_compact(build_meta("t1")) + whole[:-9] + b"\n" + whole, memory))
    assert [mark.output for mark in marks if isinstance(mark, AnswerUsage)] == [120]
    assert memory.skipped == 1


def test_hostile_records_cost_nothing_but_themselves() -> None:
    """Torn, wrongly typed, absurd: the whole ones count, and circles of parents end."""
    memory = ReaderState()
    data = (
        b'{"timestamp":"2026-11-20T10:00:00Z","type":"token_usage_record","pay\n'
        b'{"timestamp":7,"type":"token_usage_record","payload":{}}\n'
        b'{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":[1]}}}\n'
        b'{"type":"event_msg","payload":{"type":"token_count","info":null}}\n'
        b'{"type":"event_msg"}\n'
        b'{"a":1}\n'
    )
    assert list(read_codex_usage(data, memory)) == []
    assert memory.skipped == 2
    wild = build_counts(10**30, -4, 5)
    natives = dedupe_marks(
        "codex",
        [
            read_records(build_meta("t1", forked_from_id="t2"), build_count(wild, wild)),
            read_records(build_meta("t2", forked_from_id="t1"), build_count(FIRST, FIRST)),
        ],
    )
    assert sum_used(natives) == (2000, 7000, 0, 125, 64)


def test_a_file_read_in_two_halves_says_the_same() -> None:
    """It grows while it is read: what the reader keeps is all it needs to go on."""
    whole = join_compact(
        build_meta("t1"), build_line("turn_context", model="m"), build_count(FIRST, FIRST),
        build_count(FIRST, FIRST),
        build_record("r2", SECOND, BOTH), build_count(BOTH, SECOND),
    )  # fmt: skip
    cut = whole.index(b"\n", 700) + 1
    memory = ReaderState()
    halves = [*read_codex_usage(whole[:cut], memory), *read_codex_usage(whole[cut:], memory)]
    assert halves == list(read_codex_usage(whole, ReaderState()))
    assert [mark.model for mark in halves if isinstance(mark, AnswerUsage)] == ["m", "m"]
