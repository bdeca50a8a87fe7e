"""What Claude Code's tool calls say: commands, changed files, plans and work in the background."""

import pytest

from agent_relay.domain.facts import TodoItem
from agent_relay.transcripts._claude_facts import parse_steps
from tests.transcripts.rows import Claude


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
        TodoItem("Read the code", "pending", 1),
        TodoItem("Ask", "completed", 1),
        TodoItem("detail", "pending", 1),
    )
    claude.call("TodoWrite", "c2", todos=[{"content": "Read", "status": "in_progress"}])
    claude.answer("c2", "ok")
    assert claude.read().plan == (TodoItem("Read", "in_progress", 1),)


def test_a_plan_without_a_list_is_its_first_line() -> None:
    """A plan in prose is still a plan."""
    assert parse_steps("## Do it\n\nslowly") == [("Do it", "pending")]
    assert parse_steps("") == []


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
    assert facts.plan == (TodoItem("Renamed", "in_progress", 1), TodoItem("Unnumbered", "pending", 1))
    assert [(one.path, one.added) for one in facts.files] == [("/p/n.ipynb", None)]
