"""Texts made to keep the sorting of statements busy: its time grows with their length alone."""

import pytest

from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.packet.build import build_packet
from agent_relay.packet.extract.outcomes import find_checks, has_failed
from agent_relay.packet.extract.sentences import iterate_blocks
from agent_relay.packet.extract.statements import sort_statements
from tests.session.first_leg import OCCASION

LOCK = "We use the lock because it is simple."


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "asked",
    [
        ("?" * 588 + "?! \n\n") * 300,
        "Hi. Should we use it? " + "? " * 400_000 + "x",
    ],
    ids=["marks without end", "an end that is none"],
)
def test_a_hostile_question_is_read_in_bounded_time(asked: str) -> None:
    """A packet is written while nobody is in charge: one forged message must not hold it up for minutes."""
    found = sort_statements(
        Facts("alpha", conversation=(Message("user", asked, 1), Message("assistant", LOCK, 1)))
    )
    assert [spoken.text for spoken in found.decisions] == [LOCK]


@pytest.mark.size("test")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "command",
    [
        "git commit " + ' -m "$(cat <<EOF\n' * 30_000,
        'git commit -m "x\n' + "\n" * 300_000 + 'y"',
        "commit " + "git " * 200_000,
    ],
    ids=["forged here-documents", "blank lines", "no commit"],
)
def test_a_hostile_command_is_read_in_bounded_time(command: str) -> None:
    """Agents run what files tell them to: a command is as foreign as any text."""
    found = sort_statements(Facts("alpha", commands=(CommandRun(command, "", 0, 1),)))
    assert max((len(spoken.text) for spoken in found.decisions), default=0) <= 320


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "command", ["x" * 2_000_000, "pytest " + "x" * 2_000_000 + "; true"], ids=["word", "check"]
)
def test_a_command_of_one_long_word_is_read_in_bounded_time(command: str) -> None:
    """Whether it failed, and what it checked, is asked of each command several times."""
    run = CommandRun(command, "", 1, 1)
    assert has_failed(run)
    assert not any(check.is_certain for check in find_checks(command))


@pytest.mark.timeout(60)
def test_an_answer_that_restates_itself_is_read_in_bounded_time() -> None:
    """Each sentence that says nothing new was looked for from the beginning of the text."""
    prompt = Message("user", "<handoff-context>\nMend the valve.\n</handoff-context>", 1)
    said = Message("assistant", f"{'x' * 2_000_000}. {'I take over the valve. ' * 30_000}Done.", 1)
    facts = Facts("beta", conversation=(prompt, said))
    packet = build_packet(facts, OCCASION)
    assert "take over" not in packet.model_dump_json()


def test_a_commit_behind_much_else_on_its_line_is_found() -> None:
    """What is read of a command begins where it commits."""
    command = f"cat > notes <<EOF\n{'word ' * 4000}\nEOF\ngit add . && git commit -m 'Keep it: {LOCK}'"
    found = sort_statements(Facts("alpha", commands=(CommandRun(command, "", 0, 1),)))
    assert [spoken.text for spoken in found.decisions] == [f"Keep it: {LOCK}"]


@pytest.mark.timeout(60)
def test_lines_that_belong_together_are_joined_in_bounded_time() -> None:
    """A pasted list of words is one paragraph of a megabyte."""
    text = f"{'a long line that was wrapped by an editor, ' * 2}\n" + "word\n" * 400_000
    blocks = list(iterate_blocks(text))
    assert [block.kind for block in blocks] == ["text"]
    assert blocks[0].text.count(" word") == 400_000
