"""The reader of Claude Code's session files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import TodoItem, Tokens
from agent_relay.transcripts.fact_readers import READERS
from tests.transcripts.rows import Claude, join_lines, list_said, read_lines, read_sample

_LIMIT = read_sample("claude-limit.jsonl")
_EDIT = read_sample("claude-edit.jsonl")
_FINDING = """The bug is in `add()`: it subtracts instead of adding.

- `calc.py` line 2 returns `a - b`
- it should return `a + b`

Want me to fix it?"""


def test_a_real_session_cut_by_its_limit_is_read_whole() -> None:
    """Everything a successor needs from a session that hit the limit after its first edit."""
    facts = read_lines("claude-jsonl", _LIMIT)
    assert facts.native_id == "47bca31a-82e3-45ee-ab9c-ef52f7ea8d2b"
    assert facts.cwd == "/home/user/repos/claude-2.1.197-session-limit-mid-120x40"
    assert facts.model == "claude-opus-4-8"
    assert list_said(facts) == [
        ("user", 1, "What is wrong with calc.py?"),
        ("assistant", 1, "Looking."),
        ("assistant", 1, _FINDING),
        ("user", 2, "yes please fix it"),
        ("assistant", 2, "Fixing it now."),
        ("assistant", 2, "Done: it prints 5 now."),
        ("user", 3, "now add a test"),
        ("assistant", 3, "Let me add a test."),
    ]
    assert [(one.command, one.output, one.exit_code) for one in facts.commands] == [
        ("python3 calc.py", "5", 0)
    ]
    folder = "/home/user/repos/claude-2.1.197-session-limit-mid-120x40"
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        (f"{folder}/calc.py", "read", None, None),
        (f"{folder}/calc.py", "modified", 1, 1),
        (f"{folder}/test_calc.py", "created", 4, 0),
    ]
    assert facts.limit_text == "You've hit your session limit · resets 12:31pm (UTC)"
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "now add a test"
    assert facts.unprocessed_prompt.place == "t:24"


def test_usage_is_counted_once_for_each_answer() -> None:
    """One answer spans several rows that repeat its usage; six answers were really paid for."""
    facts = read_lines("claude-jsonl", _LIMIT)
    assert facts.tokens == Tokens(input=7200, cached=90000, cache_write=1800, output=252)


def test_parallel_task_updates_beside_the_chain_are_seen() -> None:
    """Results of parallel calls are siblings: following parents alone would lose half of the plan."""
    facts = read_lines("claude-jsonl", _EDIT)
    assert facts.plan == (
        TodoItem("Reproduce the bug", "completed", 1),
        TodoItem("Fix add()", "completed", 1),
        TodoItem("Run the tests", "pending", 1),
    )
    assert facts.unprocessed_prompt is None


def test_the_clis_own_commands_are_not_the_users_words() -> None:
    """`/exit` and its output stand in user rows; a task named `/exit` would be absurd."""
    assert list_said(read_lines("claude-jsonl", _EDIT))[0] == (
        "user",
        1,
        "Fix the bug in calc.py, then run it",
    )
    assert len([one for one in list_said(read_lines("claude-jsonl", _EDIT)) if one[0] == "user"]) == 1


def test_history_before_a_compaction_survives() -> None:
    """The task was given before the compaction; the summary is an extra, not a replacement."""
    facts = read_lines("claude-jsonl", read_sample("claude-compact.jsonl"))
    assert [text for role, _, text in list_said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "second question",
        "third question",
        "continue",
    ]
    assert facts.summary == "1. Primary Request: explain the bug in calc.py\n2. Pending: fix add()"
    assert (facts.summary_turn, facts.summary_at is not None) == (3, True)


def test_a_rewound_branch_is_left_out() -> None:
    """What the user took back must not come back as a constraint or a change."""
    claude = Claude()
    claude.user("build a parser")
    root = claude.agent("Which language?")
    claude.user("use perl")
    claude.agent("Perl it is.")
    claude.user("use python", parent=root)
    claude.agent("Python it is.")
    assert [text for _, _, text in list_said(claude.read())] == [
        "build a parser",
        "Which language?",
        "use python",
        "Python it is.",
    ]


def test_a_torn_line_in_the_middle_does_not_cut_off_the_history() -> None:
    """The parent of the next row is gone, yet the task before it must be kept."""
    claude = Claude()
    claude.user("keep me")
    claude.agent("lost answer")
    claude.user("and me")
    data = join_lines(claude.records[0]) + b'{"type":"assistant","uu\n' + join_lines(claude.records[2])
    facts = read_lines("claude-jsonl", data)
    assert [text for _, _, text in list_said(facts)] == ["keep me", "and me"]
    assert facts.skipped_lines == 1


def test_an_agent_that_quotes_a_limit_has_not_hit_one() -> None:
    """Only rows the CLI itself marked as errors are about a limit."""
    claude = Claude()
    claude.user("what does the message look like?")
    claude.agent("You've hit your session limit · resets 9pm (UTC)")
    facts = claude.read()
    assert facts.limit_text == ""
    assert facts.unprocessed_prompt is None


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00garbage",
        b'{"type":"user","uuid":5}',
        b"[]",
        b'"text"',
        b"null",
        b'{"type":"user","uuid":"x","message":{"content":[1,null,{"type":"text","text":7}]}}',
        b'{"type":"from-the-future","uuid":"x","parentUuid":"nowhere"}',
        b'{"type":"assistant","uuid":"x","parentUuid":"x","message":{"usage":{"input_tokens":"many"}}}',
        b"[" * 100_000,
    ],
)
def test_a_hostile_line_harms_nothing_else(line: bytes) -> None:
    """Whatever one line holds, the prompt before it is still found."""
    data = _LIMIT.split(b"\n")[5] + b"\n" + line + b"\n"
    facts = read_lines("claude-jsonl", data)
    assert facts.conversation[0].text == "What is wrong with calc.py?"


def test_a_giant_line_is_skipped() -> None:
    """A pasted image of many megabytes costs no memory and no error."""
    claude = Claude()
    claude.user("look")
    giant = json.dumps({"type": "user", "uuid": "g", "message": {"content": "x" * (9 << 20)}}).encode()
    facts = read_lines("claude-jsonl", join_lines(*claude.records) + giant)
    assert [one.text for one in facts.conversation] == ["look"]
    assert facts.skipped_lines == 1


@settings(max_examples=60)
@given(st.integers(min_value=0, max_value=len(_LIMIT)), st.binary(max_size=20))
def test_a_file_torn_anywhere_keeps_what_came_before(cut: int, rest: bytes) -> None:
    """A growing or torn file never raises and never loses an earlier fact."""
    whole = read_lines("claude-jsonl", _LIMIT)
    torn = read_lines("claude-jsonl", _LIMIT[:cut] + rest.replace(b"\n", b" "))
    complete = _LIMIT[:cut].count(b"\n")
    kept = [one for one in whole.conversation if int(one.place[2:]) <= complete]
    assert list(torn.conversation)[: len(kept)] == kept
    files = [one for one in whole.files if int(one.place[2:]) <= complete]
    assert list(torn.files)[: len(files)] == files


def test_a_peek_finds_the_folder_and_the_first_prompt() -> None:
    """Adoption lists sessions by what the user asked, without reading them whole."""
    peek = READERS["claude-jsonl"].peek(_EDIT.split(b"\n"))
    assert peek.native_id == "05557255-04d1-42ee-9ba3-1ca8576b8041"
    assert peek.cwd == "/home/user/repos/claude-2.1.197-edit-shell-120x40"
    assert peek.title == "Fix the bug in calc.py, then run it"
    assert peek.is_main


def test_rows_that_hang_on_each_other_in_a_circle_are_read_once() -> None:
    """A hostile file must end."""
    claude = Claude()
    claude.user("task")
    claude.agent("one", parent="u2")
    claude.agent("two", parent="u1")
    claude.agent("three")
    assert sorted(one.text for one in claude.read().conversation) == ["one", "task", "three", "two"]


def test_a_continued_session_starts_with_its_summary() -> None:
    """A new file may begin with the summary of another one: then it is all there is."""
    claude = Claude()
    claude.user("This session is being continued.", isCompactSummary=True)
    claude.agent("Where were we.")
    facts = claude.read()
    assert (facts.summary, facts.summary_turn) == ("This session is being continued.", 0)
    assert [one.text for one in facts.conversation] == ["Where were we."]


def test_foreign_parts_and_empty_files_are_nothing() -> None:
    """Thinking is nobody's words; content may be missing altogether."""
    claude = Claude()
    claude.add("assistant", [{"type": "thinking", "thinking": "secret"}])
    claude.add("user", None)
    claude.add("user", [{"type": "tool_use", "id": "x", "name": "Bash", "input": {"command": "never"}}])
    claude.add("assistant", [{"type": "tool_result", "tool_use_id": "x", "content": "never"}])
    claude.add("system", "note", subtype="local_command")
    assert claude.read().conversation == ()
    assert read_lines("claude-jsonl", b"").conversation == ()
    assert not READERS["claude-jsonl"].peek([b'{"type":"mode"}']).is_main


def test_a_peek_passes_over_what_is_no_prompt() -> None:
    """The title is the first thing the user asked."""
    claude = Claude()
    claude.user("caveat", isMeta=True)
    claude.answer("x", "result")
    claude.user("[Request interrupted by user]")
    claude.user("rename it")
    assert READERS["claude-jsonl"].peek(join_lines(*claude.records).split(b"\n")).title == "rename it"
