"""What Claude Code's session files say was used."""

from agent_relay.transcripts._claude_usage import read_claude_usage
from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    PromptSent,
    ReaderState,
    SessionOpened,
    UsageRecord,
)
from agent_relay.usage._dedupe import Native, dedupe_marks
from tests.transcripts.rows import join_compact, join_lines, read_sample


def _read(data: bytes) -> list[UsageRecord]:
    return list(read_claude_usage(data, ReaderState()))


def _answer(message_id: str, output: int, **row: object) -> dict[str, object]:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 5000,
        "output_tokens": output,
        "cache_creation": {"ephemeral_1h_input_tokens": 100, "ephemeral_5m_input_tokens": 200},
    }
    return {
        "sessionId": "s1",
        "message": {"id": message_id, "model": "claude-opus-4-8", "content": [], "usage": usage},
        "type": "assistant",
        "uuid": f"{message_id}-{output}",
        "timestamp": "2026-11-20T10:00:05.000Z",
        "cwd": "/w",
    } | row


def _prompt(text: object, **row: object) -> dict[str, object]:
    return {
        "type": "user",
        "uuid": f"u-{text}",
        "sessionId": "s1",
        "timestamp": "2026-11-20T10:00:00.000Z",
        "cwd": "/w",
        "message": {"role": "user", "content": text},
    } | row


def _sum(natives: list[Native]) -> tuple[int, int, int, int]:
    used = [one for native in natives for one in native.used]
    return (
        sum(one.input for one in used),
        sum(one.cached for one in used),
        sum(one.cache_write for one in used),
        sum(one.output for one in used),
    )


def test_an_answer_on_several_lines_counts_once_with_its_last_count() -> None:
    """The lines of one answer repeat its usage while it streams: the sum would be three times too high.

    10 + 10 input, 2 * 5,000 cached, 2 * 300 written; output 159 of (1, 9, 159) and 7.
    """
    data = join_compact(_answer("m1", 1), _answer("m1", 9), _answer("m1", 159), _answer("m2", 7))
    natives = dedupe_marks("claude", [_read(data)])
    assert _sum(natives) == (20, 10_000, 600, 166)
    assert [one.cache_write_long for one in natives[0].used] == [100, 100]


def test_a_fork_that_copies_its_history_adds_only_what_is_new() -> None:
    """The copy has the old message ids and times under a session id of its own.

    s1: m1 with 50. s2: m1 copied, m2 with 7. In all 2 * 10 input and 57 output, 7 of them the fork's.
    """
    parent = _read(join_compact(_prompt("first"), _answer("m1", 50)))
    later = "2026-11-20T11:00:00.000Z"
    fork = _read(
        join_compact(
            _prompt("first", sessionId="s2"),
            _answer("m1", 50, sessionId="s2"),
            _prompt("fork here", sessionId="s2", timestamp=later),
            _answer("m2", 7, sessionId="s2", timestamp=later),
        )
    )
    for files in ([parent, fork], [fork, parent]):
        natives = dedupe_marks("claude", files)
        assert _sum(natives) == (20, 10_000, 600, 57)
        assert [(one.session, len(one.prompts), one.used[0].output) for one in natives] == [
            ("s1", 1, 50),
            ("s2", 1, 7),
        ]


def test_an_answer_is_known_by_its_message_not_its_request() -> None:
    """A request that was sent again or rerouted has another id; rows without a time still count.

    m1 under two requests counts its larger 9, m2 without a time its 7.
    """
    undated = _answer("m2", 7)
    del undated["timestamp"]
    marks = _read(join_compact(undated, _answer("m1", 9, requestId="b"), _answer("m1", 5, requestId="a")))
    (native,) = dedupe_marks("claude", [marks])
    assert [(one.at, one.output) for one in native.used] == [(0, 7), (1_795_168_805_000, 9)]


def test_a_subagents_own_file_is_part_of_its_session() -> None:
    """It names the session it works for; its instructions are no prompt of the user's."""
    main = _read(join_compact(_prompt("go"), _answer("m1", 50)))
    elsewhere = _read(join_compact(_answer("m2", 7, isSidechain=True, cwd="/elsewhere")))
    assert [one.cwd for one in dedupe_marks("claude", [main, elsewhere])] == ["/w"]
    side = _read(
        join_compact(
            _prompt("look there", isSidechain=True, agentId="a"),
            _answer("m2", 7, isSidechain=True, agentId="a"),
        )
    )
    natives = dedupe_marks("claude", [side, main])
    assert [(one.session, len(one.prompts), len(one.used)) for one in natives] == [("s1", 1, 2)]
    assert _sum(natives) == (20, 10_000, 600, 57)


def test_compaction_neither_loses_nor_repeats_usage() -> None:
    """Its summary is no prompt and no answer; of the recorded file every answer counts once.

    Five answers of 1,200 + 15,000 cached + 300 written + 42 output, one of them on two lines; four prompts.
    """
    (native,) = dedupe_marks("claude", [_read(read_sample("claude-compact.jsonl"))])
    assert (len(native.used), len(native.prompts)) == (5, 4)
    assert _sum([native]) == (6000, 75_000, 1500, 210)


def test_what_the_program_writes_itself_is_no_prompt() -> None:
    """Turns are what the user asked for: not commands' output, tools' results, summaries or interruptions."""
    rows = [
        _prompt("<command-name>/exit</command-name>"),
        _prompt("<local-command-stdout>Bye!</local-command-stdout>"),
        _prompt("[Request interrupted by user]"),
        _prompt("meta", isMeta=True),
        _prompt("summary", isCompactSummary=True),
        _prompt(""),
        _prompt([]),
        _prompt([{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        _prompt([{"type": "tool_result", "content": "ok"}]),
        _prompt([{"tool_use_id": "t", "type": "tool_result", "content": "ok"}]),
        _prompt(7),
        {"type": "user", "sessionId": "s1"},
        {"type": "system", "sessionId": "s1", "usage": {"a": 1}},
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "queued_command", "isMeta": True}},
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "other", "x": '"queued_command"'}},
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "skill_listing"}},
    ]
    assert [mark for mark in _read(join_compact(*rows)) if not isinstance(mark, SessionOpened)] == []


def test_typed_pictured_and_queued_prompts_are_turns() -> None:
    """What was typed while the agent worked is handed over as an attachment."""
    queued = {"type": "queued_command", "prompt": "and this"}
    rows = [
        _prompt("typed"),
        _prompt([{"type": "image"}, {"type": "text", "text": "see"}]),
        {"type": "attachment", "uuid": "q", "sessionId": "s1", "attachment": queued},
    ]
    natives = dedupe_marks("claude", [_read(join_compact(*rows))])
    assert len(natives[0].prompts) == 3


def test_a_prompt_counts_whatever_bytes_are_in_it() -> None:
    """A byte of another encoding, or half a character, is in what a person pasted: all of it was a prompt.

    Nothing of it is raised: one such line would leave every figure of the machine unsaid.
    """
    memory = ReaderState()
    data = join_compact(_prompt("caf*"), _prompt("half")).replace(b"caf*", b"caf\xe9")
    data = data.replace(b'"content":"half"', rb'"content":"half \ud83d"')
    marks = list(read_claude_usage(data, memory))
    assert [mark.at for mark in marks if isinstance(mark, PromptSent)] == [1_795_168_800_000] * 2
    assert memory.skipped == 0


def test_a_limit_is_a_failure_and_uses_nothing() -> None:
    """The notice is written as an answer of a model called <synthetic>."""
    usage = {"input_tokens": 0, "output_tokens": 0}
    synthetic = {"model": "<synthetic>", "usage": usage}
    data = join_compact(
        _answer("m1", 0, isApiErrorMessage=True, message={"id": "m1"} | synthetic),
        _answer("m2", 0, message={"id": "m2"} | synthetic),
    )
    natives = dedupe_marks("claude", [_read(data)])
    assert (len(natives[0].used), len(natives[0].failures)) == (0, 1)


def test_changed_lines_are_those_of_patches_and_new_files() -> None:
    """+2 -1 from the patch, +3 from the new file; a result that is only text changed nothing."""
    patch = [{"lines": [" a", "+b", "+c", "-d"]}]
    result = {"tool_use_id": "t", "type": "tool_result"}
    edit = _prompt([result], toolUseResult={"structuredPatch": patch, "userModified": False})
    create = _prompt(
        [result],
        uuid="c",
        toolUseResult={"type": "create", "content": "1\n2\n3", "structuredPatch": [], "userModified": False},
    )
    text = _prompt([result], uuid="t", toolUseResult="Error: none", userModified=False)
    other = _prompt([result], uuid="o", toolUseResult={"type": "update", "userModified": False})
    natives = dedupe_marks("claude", [_read(join_compact(edit, create, text, other))])
    assert [(one.added, one.removed) for one in natives[0].changes] == [(2, 1), (3, 0)]


def test_hostile_lines_cost_nothing_but_themselves() -> None:
    """Torn, wrongly typed, absurd and negative: what is whole still counts, and nothing overflows."""
    memory = ReaderState()
    absurd = {"input_tokens": 10**30, "output_tokens": -5, "cache_read_input_tokens": True}
    data = (
        b'{"type":"assistant","message":{"usa\n'
         b'{"type":"assistant","message":{"usage":[1]}}\n'
         b'{"type":"assistant","message":"usage"}\n'
         b'{"type":"user","message":{"content":' + b"[" * 5000 + b"\n"
        + b"\xff\xfe\x00\n\n"
        + join_compact(_answer("m1", 0, message={"id": "m1", "usage": absurd}))
        + join_compact(_answer("", 4, message={"usage": {"output_tokens": 4}}, uuid=None)).rstrip()
    )  # fmt: skip
    marks = [mark for mark in read_claude_usage(data, memory) if isinstance(mark, AnswerUsage)]
    assert [(one.key, one.tokens) for one in marks] == [("m1", 0), ("s1/1795168805000", 4)]
    assert memory.skipped == 5


def test_only_the_ends_of_a_long_line_are_looked_at() -> None:
    """A tool's megabytes of output are not decoded, whatever they quote; an answer's are."""
    quoted = '\\"type\\":\\"assistant\\" "usage":{' + "x" * 100_000
    heavy = _prompt([{"tool_use_id": "t", "type": "tool_result", "content": quoted}])
    content = [{"type": "text", "text": "y" * 100_000}]
    long = _answer("m1", 5, message={"id": "m1", "content": content, "usage": {"output_tokens": 5}})
    memory = ReaderState()
    marks = list(read_claude_usage(join_compact(heavy, long), memory))
    assert [mark.output for mark in marks if isinstance(mark, AnswerUsage)] == [5]
    assert memory.skipped == 0


def test_rows_with_spaces_between_values_count_too() -> None:
    """Whoever rewrote a file, with a formatter or by hand, has still used what it says."""
    natives = dedupe_marks("claude", [_read(join_lines(_prompt("go"), _answer("m1", 5)))])
    assert (len(natives[0].prompts), natives[0].used[0].output) == (1, 5)
