"""Where a statement stands says what it is: an answer, a list of choices, a commit, the end of a turn."""

import pytest

from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.domain.values import replace
from agent_relay.packet.extract.requests import find_constraints, find_request, weigh_rule
from agent_relay.packet.extract.sentences import Passage, is_decision, split_passages, weigh
from agent_relay.packet.extract.statements import sort_statements


def _talk(*turns: str) -> Facts:
    """A conversation: user and assistant by turns."""
    said = [
        Message("user" if index % 2 == 0 else "assistant", text, index // 2 + 1, place=f"t:{index}")
        for index, text in enumerate(turns)
    ]
    return Facts(agent="a", conversation=tuple(one for one in said if one.text))


def _commit(message: str, *, code: int | None = 0) -> Facts:
    return replace(
        _talk("go", "ok"), commands=(CommandRun(f"git add . && git commit {message}", "", code, 1),)
    )


def _decided(facts: Facts) -> list[str]:
    return [one.text for one in sort_statements(facts).decisions]


def test_a_short_answer_to_a_question_of_design_is_a_decision_with_its_question() -> None:
    """Nothing in the words of the answer gives it away; the question does."""
    facts = _talk("go", "ok", "shall we sort by name?", "By age. Names repeat.")
    assert _decided(facts) == ["shall we sort by name? → By age. Names repeat."]


def test_an_answer_about_how_things_are_is_none() -> None:
    """A packet full of explanations hides what was settled."""
    rows = [
        "where is it read?",
        "where are we?",
        "show me the diff",
        "can you explain the key?",
        "ok",
        "never push",
    ]
    assert [asked for asked in rows if _decided(_talk("go", "ok", asked, "In the loader.")) != []] == []


def test_a_long_answer_says_its_own_question_once_at_its_beginning() -> None:
    """Of a long answer only the beginning is surely about what was asked."""
    answer = (
        "Every file is written to two places.\n\n"
        + "The sky is blue today. " * 40
        + "\n\nIt is one of three."
    )
    found = sort_statements(_talk("go", "ok", "how should we store it?", answer))
    assert [one.text for one in found.decisions] == [
        "how should we store it? → Every file is written to two places."
    ]


def test_what_is_only_named_is_a_proposal() -> None:
    """People at work propose in a word, without a question mark."""
    facts = _talk("go", "ok", "zstd", "Each frame is cut once, so the archive is one file.")
    assert _decided(facts) == ["zstd → Each frame is cut once, so the archive is one file."]


def test_a_proposal_answered_with_harm_was_tried_in_vain() -> None:
    """The successor proposes it again otherwise."""
    facts = _talk("go", "ok", "redis?", "Measured: it doubles the latency and needs a server. Back to files.")
    found = sort_statements(facts)
    assert [one.text for one in found.attempts] == [
        "redis? → Measured: it doubles the latency and needs a server. Back to files."
    ]
    assert found.decisions == []


def test_what_failed_and_was_helped_at_once_was_not_given_up() -> None:
    """A red test that is green again keeps nobody from anything."""
    found = sort_statements(_talk("go", "The second attempt broke the parser, but it passes now."))
    assert (found.decisions, found.attempts) == ([], [])


def test_work_that_was_taken_back_makes_what_is_said_beside_it_an_attempt() -> None:
    """Nobody says "rejected" about an edit that was undone."""
    facts = _talk("go", "The page was blank for a second. We stay on the old hook.")
    undone = replace(facts, commands=(CommandRun("git checkout -- src/hook.ts", "", 0, 1),))
    assert sort_statements(facts).attempts == []
    assert [one.text for one in sort_statements(undone).attempts] == [
        "The page was blank for a second. We stay on the old hook."
    ]


def test_a_commit_that_explains_itself_is_a_decision() -> None:
    """Who commits well says nowhere else why."""
    rows = {
        "-m 'Share one socket\n\nA clone bought nothing.'": ["Share one socket. A clone bought nothing."],
        '-am "Share it." -m "It is cheaper."': ["Share it. It is cheaper."],
        "-m \"$(cat <<'EOF'\nShare it\n\nIt is cheaper.\n\nCo-authored-by: A <a@b>\nEOF\n)\"": [
            "Share it. It is cheaper."
        ],
        "-m 'Use one socket instead of two'": ["Use one socket instead of two"],
        "-m 'Fix typo'": [],
        "--amend": [],
    }
    assert {message: _decided(_commit(message)) for message in rows} == rows


def test_a_commit_that_failed_and_other_words_are_none() -> None:
    """What a hook refused is not settled."""
    assert _decided(_commit("-m 'Share it\n\nIt is cheaper.'", code=1)) == []
    assert _decided(replace(_talk("go", "ok"), commands=(CommandRun("echo commit", "", 0, 1),))) == []


def test_passages_keep_what_stands_above_them() -> None:
    """A list below "Decisions" is one of decisions, a table by the names of its columns."""
    text = (
        "## Decisions\n\nThis is what I'd do:\n- One file per day. Let me check it. Bigger ones are slow.\n"
        "- Is it fast?\n\n| what | why |\n|---|---|\n| gzip | everybody has it |\n\n"
        "| file | lines |\n|---|---|\n| a.py | 12 |\n\nA paragraph of text."
    )
    assert list(split_passages(text)) == [
        Passage("One file per day.", "Decisions This is what I'd do:"),
        Passage("Bigger ones are slow.", "Decisions This is what I'd do:"),
        Passage("gzip | everybody has it", "Decisions what | why"),
        Passage("A paragraph of text.", "Decisions"),
    ]


def test_an_overlong_row_of_a_table_is_no_passage() -> None:
    """Sentences have a longest length, and so have rows: one forged row must not fill the packet."""
    table = f"| choice | why |\n|---|---|\n| {'a lock ' * 100}| simple |\n| a lock | simple |"
    assert [passage.text for passage in split_passages(table)] == ["a lock | simple"]


def test_long_paragraphs_are_cut_at_sentences_and_stops_left_out() -> None:
    """A quotation nobody reads to its end keeps nothing."""
    one, two, three = "a" * 200 + ".", "b" * 200 + ".", "c" * 20 + "."
    assert [passage.text for passage in split_passages(f"{one} {two} {three}", [three])] == [one, two]
    assert list(split_passages("Short.")) == []


def test_lists_of_findings_weigh_less_than_lists_of_choices() -> None:
    """The same words say less below "Next steps"."""
    words = "- Every key is written once\n"
    assert _decided(_talk("go", f"My approach:\n{words}")) == ["Every key is written once"]
    assert _decided(_talk("go", f"Next steps:\n{words}")) == []


def test_what_is_open_or_reported_weighs_less() -> None:
    """An option is no decision, and neither is a count of failures."""
    assert is_decision("every key is written once, because it may change")
    assert not is_decision("every key could be written once, because it may change")
    assert not is_decision("every test failed once, because the key is written late")
    assert weigh("Let me use one key instead of two.") == 0


def test_wishes_with_a_reason_are_kept_and_repeated_ones_once() -> None:
    """Nobody explains what does not matter; a wish said again replaces the one before."""
    facts = _talk(
        *("go", "ok", "bigger, people wear gloves", "ok", "use the short name in line 3", "ok"),
        *(
            "use the short name in line 9",
            "ok",
            "looks good, go on",
            "ok",
            "the token is [redacted: pin], keep it",
        ),
    )
    assert [one.text for one in find_constraints(facts)] == [
        "bigger, people wear gloves",
        "use the short name in line 9",
        "the token is [redacted: pin], keep it",
    ]


def test_a_question_explains_nothing() -> None:
    """It asks, whatever its commas."""
    assert weigh_rule("is it small, or is it large?") == 0


@pytest.mark.parametrize(
    "text",
    [
        "now go on", "Now go on.", "ok continue", "weiter", "keep going", "please keep going", "back to work",
        "let us go on", "The limit is over, go on", "I am back, carry on where you left off",
        "mach bitte weiter", "are you still there?", "now go on and finish it",
    ],
)  # fmt: skip
def test_leave_to_go_on_is_neither_a_rule_nor_a_request(text: str) -> None:
    """Sent at a limit it waits for its answer; as a rule it would be told until the session ends."""
    facts = _talk("add a parser", "I begin.", text)
    assert find_constraints(facts) == []
    assert find_request(facts) == facts.conversation[0]


def test_a_rule_that_comes_with_leave_to_go_on_stays_one() -> None:
    """What the user said beside it would be lost."""
    rows = ["Now go on, but never touch vendor/", "ok, keep the old name", "Use tabs and go on"]
    assert [
        text
        for text in rows
        if [one.text for one in find_constraints(_talk("add a parser", "I begin.", text))] != [text]
    ] == []
