"""Nothing is said twice: each thing is where a reader looks for it, and the document keeps all of it."""

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import build_renderer, load_adapter
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.facts import CommandRun, Facts
from agent_relay.domain.values import replace
from agent_relay.packet.build import build_packet
from tests.fidelity.repeats import list_repeated
from tests.session.first_leg import OCCASION, say

render = build_renderer(load_adapter(f"{find_builtin_folder()}/demo"), folder="/s")


def build(*turns: str, waits: bool = False, **more: object) -> ResumePacket:
    """The packet of a conversation in turns; with `waits` the last prompt got no answer."""
    said = say(*turns)
    waiting = said[-1] if waits else None
    facts = Facts(agent="alpha", conversation=said, unprocessed_prompt=waiting)
    return build_packet(replace(facts, **more), OCCASION)  # type: ignore[arg-type]


def section(text: str, heading: str) -> str:
    """The part of the text below that heading."""
    return text.partition(f"\n## {heading}")[2].partition("\n## ")[0]


def test_a_waiting_prompt_that_is_the_task_is_told_once() -> None:
    """It is the next step as well."""
    text = render(build("port the parser to the new grammar", waits=True))
    assert text.count("port the parser to the new grammar") == 1
    assert "The task above, word for word." in section(text, "Waiting prompt")


def test_a_waiting_prompt_is_told_where_it_waits() -> None:
    """Not in the ledger, not in the last exchange, not as a rule and not as the next step."""
    words = "never touch the old grammar, port the lexer first"
    text = render(build("port the parser", "Ported, all green so far.", words, waits=True))
    assert text.count(words) == 1
    assert words in section(text, "Waiting prompt")


def test_a_rule_is_told_where_it_was_said() -> None:
    """The document has it among the rules as well."""
    packet = build(
        "port the parser", "Ported.", "never touch the old grammar", "I won't.", "and the docs", "ok"
    )
    text = render(packet)
    assert text.count("never touch the old grammar") == 1
    assert [one.text for one in packet.constraints] == ["never touch the old grammar"]
    assert [one.summary for one in packet.decisions] == ["never touch the old grammar"]


def test_a_rule_without_its_exchange_stands_among_the_rules() -> None:
    """What was said long ago and left out of the ledger for room is not lost."""
    packet = build("port the parser", "Ported.", "never touch the old grammar", "I won't.")
    text = render(packet.model_copy(update={"exchanges": ()}))
    assert "never touch the old grammar" in section(text, "Rules and corrections")


def test_a_rule_of_a_packet_from_before_there_were_exchanges_is_told() -> None:
    """Whoever wrote it found it worth keeping, however little its words say."""
    packet = build("port the parser", "Ported.")
    old = {"text": "grammar 2, as agreed", "source": {"agent": "before", "transcript": "/t", "turn": 9}}
    carried = ResumePacket.model_validate({**packet.model_dump(), "constraints": [old]})
    assert "- grammar 2, as agreed (before, turn 9)\n" in render(carried)


def test_a_failing_line_is_told_once() -> None:
    """It stands in the way, and not once more below its exchange or its check."""
    run = CommandRun("pytest -q", "FAILED test_lexer.py::test_long_names - assert 1 == 2\n1 failed", 1, 1)
    text = render(build("port the parser", "One test fails, I look into it now.", commands=(run,)))
    assert text.count("FAILED test_lexer.py::test_long_names") == 1
    assert "FAILED test_lexer.py::test_long_names" in section(text, "Blockers")


def test_the_last_answer_is_told_in_the_last_exchange() -> None:
    """Below its prompt in the ledger it would stand a second time."""
    told = "The lexer is ported, and long names are cut at their first dot."
    text = render(build("port the lexer of the parser", told))
    assert text.count(told) == 1
    assert told in section(text, "The latest exchange")


def test_settled_is_said_beside_the_users_own_words_only() -> None:
    """Where they stand elsewhere, the mark would be that of what the agent answered."""
    text = render(
        build("port the parser. never touch the grammar", "I chose to rewrite it.", "go on", "Done.")
    )
    assert text.count("never touch the grammar") == 1
    assert "settled" not in section(text, "What was said and done")


def test_an_excerpt_of_letters_does_not_hide_what_holds_it() -> None:
    """A few letters occur in every other word."""
    text = render(build("take a look at the tokens", "ok", "no", "ok", "book it", "fine"))
    assert [words in text for words in ("take a look at the tokens", "- user: no", "book it")] == [True] * 3


@pytest.mark.parametrize("mark", ["> ", "- user: ", "  later: ", "  alpha: ", "- "])
def test_lines_that_stand_twice_are_found(mark: str) -> None:
    """A search that finds nothing would prove nothing."""
    words = " ".join(f"word{number}" for number in range(15))
    once = f"above\n{mark}{words} (turn 3, settled)\nbelow"
    assert list(list_repeated(once)) == []
    assert list(list_repeated(f"{once}\n{words}")) == [words, words]


def test_long_messages_and_many_turns_are_told_once() -> None:
    """Sixty exchanges, rules in each of them, and a prompt that waits."""
    turns = []
    for number in range(60):
        turns += [
            f"never let part {number} of the importer write to table {number + 1}, it breaks the audit",
            f"Part {number} of the importer keeps to its own table, and the audit of it passes again.",
        ]
    waiting = turns[-2].replace("59", "99")
    packet = build(*turns, waiting, waits=True)
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == waiting
    assert list(list_repeated(render(packet))) == []


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("false", ""),
        ("make x", "boom " * 80),
        ("a" * 90 + " b", "ERROR: no"),
        ("for i in 1\ndo\n  x\ndone", "no y"),
    ],
)
def test_a_failed_command_that_stands_in_the_way_is_told_once(command: str, output: str) -> None:
    """However it was cut: below the blockers, not in the record as well."""
    text = render(build("build it", "At it.", commands=(CommandRun(command, output, 2, 1),)))
    assert command[:5] in section(text, "Blockers")
    assert "failed:" not in text


def test_rules_are_listed_or_said_to_be_in_what_is_quoted() -> None:
    """Whoever reads of the user's rules below finds where they are, and none of them twice."""
    text = render(
        build(
            "port the parser, never touch db.py", "Ok.", "never touch the old grammar", "Ok.", "go on", "ok"
        )
    )
    assert "- in the task above, turn 2" in section(text, "Rules and corrections")
    assert "The task, the user's rules and the waiting prompt below" in text
    assert "rules" not in render(build("port the parser", "Ok."))
