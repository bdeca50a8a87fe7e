"""Which words in Claude Code's session files are the user's, and which of them nobody answered."""

import pytest

from tests.transcripts.rows import Claude, join_lines, read_lines

CONTINUATION = (
    "Your claude.ai usage limit has reset. Continue the task you were working on when the limit was reached;"
    " do not repeat work that is already complete."
)


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


def test_the_dialog_that_it_opens_at_a_limit_is_no_prompt_of_the_user_s() -> None:
    """It queues the command among what the user queued, and the successor was told to do it."""
    claude = Claude()
    claude.user("fix the bug")
    claude.raw(type="queue-operation", operation="enqueue", content="/rate-limit-options")
    claude.raw(type="queue-operation", operation="enqueue", content="and the docs")
    claude.agent("You've hit your session limit", isApiErrorMessage=True, model="<synthetic>")
    facts = claude.read()
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "fix the bug\n\nand the docs"


def test_a_prompt_delivered_in_the_middle_of_a_turn_is_the_users() -> None:
    """The CLI hands queued prompts over as attachments; they often hold the correction that matters."""
    claude = Claude()
    claude.user("write it")
    attachment = {"type": "queued_command", "prompt": "no tabs please"}
    claude.add("attachment", "", attachment=attachment)
    claude.agent("Understood.")
    assert [one.text for one in claude.read().conversation] == ["write it", "no tabs please", "Understood."]


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


def test_what_it_tells_itself_after_a_reset_is_no_prompt_of_the_user_s() -> None:
    """Neither where it waits in its queue, nor where it was sent: then the limit is history."""
    claude = Claude()
    claude.user("fix the bug")
    claude.agent("You've hit your 5-hour limit", isApiErrorMessage=True, model="<synthetic>")
    claude.raw(type="queue-operation", operation="enqueue", content=CONTINUATION)
    facts = claude.read()
    assert [said.text for said in facts.conversation] == ["fix the bug"]
    assert facts.limit_text == "You've hit your 5-hour limit"
    claude.user(CONTINUATION, isMeta=True, origin={"kind": "auto-continuation"})
    facts = claude.read()
    assert [said.text for said in facts.conversation] == ["fix the bug"]
    assert facts.limit_text == ""
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "fix the bug"
