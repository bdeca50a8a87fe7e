"""The reader of Claude Code's session files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import Facts, Step, Tokens
from agent_relay.logic.transcripts.claude_tools import parse_steps
from agent_relay.logic.transcripts.registry import READERS
from tests.logic.transcripts.rows import Claude, join_lines, read_lines, read_sample

_LIMIT = read_sample("claude-limit.jsonl")
_EDIT = read_sample("claude-edit.jsonl")
_FINDING = """The bug is in `add()`: it subtracts instead of adding.

- `calc.py` line 2 returns `a - b`
- it should return `a + b`

Want me to fix it?"""


def _said(facts: Facts) -> list[tuple[str, int, str]]:
    return [(one.role, one.turn, one.text) for one in facts.conversation]


def test_a_real_session_cut_by_its_limit_is_read_whole() -> None:
    """Everything a successor needs from a session that hit the limit after its first edit."""
    facts = read_lines("claude-jsonl", _LIMIT)
    assert facts.native_id == "47bca31a-82e3-45ee-ab9c-ef52f7ea8d2b"
    assert facts.cwd == "/home/user/repos/claude-2.1.197-session-limit-mid-120x40"
    assert facts.model == "claude-opus-4-8"
    assert _said(facts) == [
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
        Step("Reproduce the bug", "completed", 1),
        Step("Fix add()", "completed", 1),
        Step("Run the tests", "pending", 1),
    )
    assert facts.unprocessed_prompt is None


def test_the_clis_own_commands_are_not_the_users_words() -> None:
    """`/exit` and its output stand in user rows; a task named `/exit` would be absurd."""
    assert _said(read_lines("claude-jsonl", _EDIT))[0] == ("user", 1, "Fix the bug in calc.py, then run it")
    assert len([one for one in _said(read_lines("claude-jsonl", _EDIT)) if one[0] == "user"]) == 1


def test_history_before_a_compaction_survives() -> None:
    """The task was given before the compaction; the summary is an extra, not a replacement."""
    facts = read_lines("claude-jsonl", read_sample("claude-compact.jsonl"))
    assert [text for role, _, text in _said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "second question",
        "third question",
        "continue",
    ]
    assert facts.summary == "1. Primary Request: explain the bug in calc.py\n2. Pending: fix add()"


def test_a_rewound_branch_is_left_out() -> None:
    """What the user took back must not come back as a constraint or a change."""
    claude = Claude()
    claude.user("build a parser")
    root = claude.agent("Which language?")
    claude.user("use perl")
    claude.agent("Perl it is.")
    claude.user("use python", parent=root)
    claude.agent("Python it is.")
    assert [text for _, _, text in _said(claude.read())] == [
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
    assert [text for _, _, text in _said(facts)] == ["keep me", "and me"]
    assert facts.skipped_lines == 1


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("Exit code 1\nFAILED test_x", 1, "FAILED test_x"),
        ("Error: Exit code 127\nnot found", 127, "not found"),
        ("Command timed out", None, "Command timed out"),
    ],
)
def test_a_failing_command_keeps_its_exit_code(text: str, code: int | None, output: str) -> None:
    """A failing test's status and words are the first thing a successor asks for."""
    claude = Claude()
    claude.user("run it")
    claude.call("Bash", "c1", command="pytest -q")
    claude.answer("c1", text, error=True)
    assert [(one.command, one.exit_code, one.output) for one in claude.read().commands] == [
        ("pytest -q", code, output)
    ]


def test_a_refused_command_did_not_run() -> None:
    """A permission the user refused is an error of the tool, never a failed command."""
    claude = Claude()
    claude.user("clean up")
    claude.call("Bash", "c1", command="rm -rf build")
    claude.answer("c1", "The user doesn't want to proceed with this tool use.", error=True)
    facts = claude.read()
    assert facts.commands == ()
    assert facts.errors[0].tool == "Bash"
    assert facts.errors[0].text.startswith("rm -rf build\nThe user doesn't want to proceed")


def test_a_command_cut_off_has_no_exit_code() -> None:
    """The leg ended while the command ran: it was tried, its outcome is unknown."""
    claude = Claude()
    claude.user("run it")
    claude.call("Bash", "c1", command="make all")
    facts = claude.read()
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make all", None)]
    assert facts.unprocessed_prompt is not None


def test_continue_typed_into_a_limit_does_not_hide_the_prompt() -> None:
    """Both prompts were sent and neither was answered; the first is the one that matters."""
    claude = Claude()
    claude.user("port it to rust")
    claude.agent("You've hit your session limit", isApiErrorMessage=True, model="<synthetic>")
    claude.user("continue")
    claude.agent("You've hit your session limit", isApiErrorMessage=True, model="<synthetic>")
    facts = claude.read()
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "port it to rust\n\ncontinue"


def test_a_prompt_the_user_broke_off_gives_way_to_the_next() -> None:
    """An interruption is the user's own decision: only the new prompt waits."""
    claude = Claude()
    claude.user("delete everything")
    claude.user("[Request interrupted by user]")
    claude.user("list the files instead")
    facts = claude.read()
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "list the files instead"


def test_an_agent_that_quotes_a_limit_has_not_hit_one() -> None:
    """Only rows the CLI itself marked as errors are about a limit."""
    claude = Claude()
    claude.user("what does the message look like?")
    claude.agent("You've hit your session limit · resets 9pm (UTC)")
    facts = claude.read()
    assert facts.limit_text == ""
    assert facts.unprocessed_prompt is None


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>be careful</system-reminder>",
        "<local-command-stdout>Bye!</local-command-stdout>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "<bash-input>ls</bash-input>",
        "<system-reminder>never closed",
    ],
)
def test_injected_context_is_not_the_users_words(text: str) -> None:
    """What the CLI puts into user rows would poison task and constraints."""
    claude = Claude()
    claude.user(text)
    assert claude.read().conversation == ()


def test_words_beside_injected_context_are_kept() -> None:
    """A reminder appended to a prompt must not swallow the prompt."""
    claude = Claude()
    claude.user("<system-reminder>noise</system-reminder>\nrename the flag")
    assert [one.text for one in claude.read().conversation] == ["rename the flag"]


def test_a_custom_command_is_a_prompt() -> None:
    """`/fix-issue 7` is all the user said; its expansion follows as a meta row."""
    claude = Claude()
    claude.user("<command-name>/fix-issue</command-name>\n<command-args>7</command-args>")
    claude.user("Find issue 7 and fix it. Then …", isMeta=True)
    claude.agent("On it.")
    assert [one.text for one in claude.read().conversation] == ["/fix-issue 7", "On it."]


def test_subagents_are_no_part_of_the_conversation() -> None:
    """A subagent's prompt was written by the agent; while it runs it is background work."""
    claude = Claude()
    claude.user("research it")
    claude.call("Task", "c1", description="look around", subagent_type="Explore", prompt="Never say no")
    claude.user("Never say no", isSidechain=True)
    facts = claude.read()
    assert [one.text for one in facts.conversation] == ["research it"]
    assert facts.background == ("subagent: look around (Explore)",)


def test_a_background_shell_is_listed_until_it_ends() -> None:
    """A development server left running is something a successor has to know."""
    claude = Claude()
    claude.user("start it")
    for number, task in (("c1", "b1"), ("c2", "b2")):
        claude.call("Bash", number, command=f"serve {task}", run_in_background=True)
        claude.answer(number, "running in background", toolUseResult={"backgroundTaskId": task})
    claude.user("<task-notification><task-id>b1</task-id><status>completed</status></task-notification>")
    facts = claude.read()
    assert facts.background == ("shell: serve b2",)
    assert [one.exit_code for one in facts.commands] == [None, None]


def test_a_prompt_left_in_the_queue_reaches_the_successor() -> None:
    """Typed while the agent worked, sent by the user, seen by nobody."""
    claude = Claude()
    claude.user("first")
    claude.raw(type="queue-operation", operation="enqueue", content="taken")
    claude.raw(type="queue-operation", operation="dequeue")
    claude.user("taken")
    claude.raw(type="queue-operation", operation="enqueue", content="also update the docs")
    claude.agent("You've hit your session limit", isApiErrorMessage=True, model="<synthetic>")
    facts = claude.read()
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "first\n\ntaken\n\nalso update the docs"
    assert facts.limit_text == "You've hit your session limit"


def test_a_prompt_delivered_in_the_middle_of_a_turn_is_the_users() -> None:
    """The CLI hands queued prompts over as attachments; they often hold the correction that matters."""
    claude = Claude()
    claude.user("write it")
    attachment = {"type": "queued_command", "prompt": "no tabs please"}
    claude.add("attachment", "", attachment=attachment)
    claude.agent("Understood.")
    assert [one.text for one in claude.read().conversation] == ["write it", "no tabs please", "Understood."]


def test_edits_without_a_patch_are_counted_from_their_strings() -> None:
    """Older versions record no patch; the counts still have to be right."""
    claude = Claude()
    claude.user("edit")
    claude.call("MultiEdit", "c1", file_path="/p/a", edits=[{"old_string": "a\nb", "new_string": "a\nc\nd"}])
    claude.answer("c1", "ok")
    assert [(one.action, one.added, one.removed) for one in claude.read().files] == [("modified", 2, 1)]


def test_a_failed_edit_changed_nothing() -> None:
    """A string that was not found is a tool error, no touched file."""
    claude = Claude()
    claude.user("edit")
    claude.call("Edit", "c1", file_path="/p/a", old_string="x", new_string="y")
    claude.answer("c1", "String to replace not found in file.", error=True)
    facts = claude.read()
    assert facts.files == ()
    assert [(one.tool, one.text) for one in facts.errors] == [
        ("Edit", "String to replace not found in file.")
    ]


def test_todo_lists_and_approved_plans_are_the_plan() -> None:
    """The last whole list counts."""
    claude = Claude()
    claude.user("plan it")
    claude.call("ExitPlanMode", "c1", plan="# Plan\n1. Read the code\n2. [x] Ask\n   - detail")
    claude.answer("c1", "approved")
    assert claude.read().plan == (
        Step("Read the code", "pending", 1),
        Step("Ask", "completed", 1),
        Step("detail", "pending", 1),
    )
    claude.call("TodoWrite", "c2", todos=[{"content": "Read", "status": "in_progress"}])
    claude.answer("c2", "ok")
    assert claude.read().plan == (Step("Read", "in_progress", 1),)


def test_a_plan_without_a_list_is_its_first_line() -> None:
    """A plan in prose is still a plan."""
    assert parse_steps("## Do it\n\nslowly") == [("Do it", "pending")]
    assert parse_steps("") == []


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


@settings(max_examples=60, deadline=None)
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


def test_an_answer_written_above_its_prompt_is_understood() -> None:
    """Rows are flushed in batches: a real file held the limit's row before the prompt it answers."""
    claude = Claude()
    claude.user("fix it", timestamp="2026-11-20T10:00:00Z")
    claude.agent("You've hit your Opus limit", isApiErrorMessage=True, timestamp="2026-11-20T10:00:01Z")
    data = join_lines(*reversed(claude.records))
    facts = read_lines("claude-jsonl", data)
    assert facts.limit_text == "You've hit your Opus limit"
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "fix it"


def test_rows_that_hang_on_each_other_in_a_circle_are_read_once() -> None:
    """A hostile file must end."""
    claude = Claude()
    claude.user("task")
    claude.agent("one", parent="u2")
    claude.agent("two", parent="u1")
    claude.agent("three")
    assert sorted(one.text for one in claude.read().conversation) == ["one", "task", "three", "two"]


def test_prompts_taken_back_into_the_input_line_are_gone() -> None:
    """The user edits a queued prompt: it was not sent after all."""
    claude = Claude()
    claude.user("go")
    claude.raw(type="queue-operation", operation="enqueue", content="never mind")
    claude.raw(type="queue-operation", operation="popAll", content="never mind")
    claude.raw(type="queue-operation", operation="unheard-of")
    claude.raw(type="queue-operation", operation="enqueue", content={"not": "text"})
    facts = claude.read()
    assert [one.text for one in facts.conversation] == ["go"]


def test_queued_prompts_come_in_every_form() -> None:
    """A prompt with an image is a list of parts; the CLI's own notes are meta; other attachments are none."""
    claude = Claude()
    claude.user("go")
    parts = [{"type": "text", "text": "look at this"}, {"type": "image"}]
    claude.add("attachment", "", attachment={"type": "queued_command", "prompt": parts})
    claude.add("attachment", "", attachment={"type": "queued_command", "prompt": "no", "isMeta": True})
    claude.add("attachment", "", attachment={"type": "file", "prompt": "no"})
    claude.add("attachment", "", attachment={"type": "queued_command", "prompt": "<system-reminder>x"})
    assert [one.text for one in claude.read().conversation] == ["go", "look at this"]


def test_synthetic_answers_are_nobodys_words() -> None:
    """The CLI writes "No response requested." in the model's name."""
    claude = Claude()
    claude.user("go")
    claude.agent("No response requested.", model="<synthetic>")
    facts = claude.read()
    assert [one.text for one in facts.conversation] == ["go"]
    assert facts.unprocessed_prompt is not None


def test_a_killed_background_shell_is_not_listed() -> None:
    """The agent ended it itself."""
    claude = Claude()
    claude.user("start it")
    claude.call("Bash", "c1", command="serve", run_in_background=True)
    claude.answer("c1", "running", toolUseResult={"backgroundTaskId": "b1"})
    claude.call("KillShell", "c2", shell_id="b1")
    claude.answer("c2", "killed")
    claude.answer("unknown", "result of a call nobody made")
    assert claude.read().background == ()


def test_a_subagent_in_the_background_is_listed_until_it_reports() -> None:
    """It was launched and its result has not come yet."""
    claude = Claude()
    claude.user("go")
    claude.call("Agent", "c1", prompt="review everything")
    claude.answer("c1", "launched", toolUseResult={"status": "async_launched", "agentId": "a1"})
    claude.call("Agent", "c2", prompt="done at once")
    claude.answer("c2", "report")
    assert claude.read().background == ("subagent: review everything",)


def test_interpreted_and_interrupted_commands_have_no_status() -> None:
    """`grep` without hits is no success and no failure."""
    claude = Claude()
    claude.user("go")
    claude.call("Bash", "c1", command="grep x y")
    claude.answer("c1", "", toolUseResult={"returnCodeInterpretation": "No matches found"})
    claude.call("Bash", "c2", command="sleep 9")
    claude.answer("c2", "", toolUseResult={"interrupted": True})
    assert [one.exit_code for one in claude.read().commands] == [None, None]


def test_results_in_other_shapes_are_read() -> None:
    """Output as parts, results that are plain text or of the wrong type, updates of unknown tasks."""
    claude = Claude()
    claude.user("go")
    claude.call("Bash", "c1", command="ls")
    part = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "a"}, {"type": "image"}],
    }
    claude.add("user", [part], toolUseResult="just text")
    claude.call("TaskUpdate", "c2", taskId="9", status="completed")
    claude.answer("c2", "ok", toolUseResult={"interrupted": "maybe"})
    claude.call("TaskCreate", "c3", subject="First")
    claude.answer("c3", "Task #4 created successfully")
    claude.call("TaskUpdate", "c4", taskId="4", subject="Renamed", status="in_progress")
    claude.answer("c4", "ok")
    claude.call("TaskCreate", "c5", subject="Unnumbered")
    claude.answer("c5", "created")
    claude.call("NotebookEdit", "c6", notebook_path="/p/n.ipynb")
    claude.answer("c6", "ok")
    claude.call("WebFetch", "c7", url="https://example.org")
    claude.answer("c7", "page")
    facts = claude.read()
    assert [(one.output, one.exit_code) for one in facts.commands] == [("a", 0)]
    assert facts.plan == (Step("Renamed", "in_progress", 1), Step("Unnumbered", "pending", 1))
    assert [(one.path, one.added) for one in facts.files] == [("/p/n.ipynb", None)]


def test_a_continued_session_starts_with_its_summary() -> None:
    """A new file may begin with the summary of another one: then it is all there is."""
    claude = Claude()
    claude.user("This session is being continued.", isCompactSummary=True)
    claude.agent("Where were we.")
    facts = claude.read()
    assert facts.summary == "This session is being continued."
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
