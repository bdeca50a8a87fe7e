"""By what signs of speech a choice, a rejection and a correction are known, and how much each is missed."""

import pytest

from agent_relay.domain.facts import Facts, Message
from agent_relay.packet.extract.requests import find_constraints, weigh_rule
from agent_relay.packet.extract.sentences import weigh
from agent_relay.packet.extract.statements import sort_statements


def _talk(*turns: str) -> Facts:
    """A conversation: user and assistant by turns."""
    said = [
        Message("user" if index % 2 == 0 else "assistant", text, index // 2 + 1, place=f"t:{index}")
        for index, text in enumerate(turns)
    ]
    return Facts(agent="a", conversation=tuple(said))


def test_a_sentence_that_decides_by_its_words_alone_is_quoted_alone() -> None:
    """What stands beside it is told with the agent's answer."""
    rows = [
        ("Decision: one file per day. Bigger ones take minutes.", "Decision: one file per day."),
        ("We settled on TOML. I'll write the reader now.", "We settled on TOML."),
        ("YAML over JSON was my choice.", "YAML over JSON was my choice."),
        (
            "The key goes into the header, so that proxies see it.",
            "The key goes into the header, so that proxies see it.",
        ),
    ]
    assert [
        (words, decision)
        for words, decision in rows
        if [one.text for one in sort_statements(_talk("go", words)).decisions] != [decision]
    ] == []


@pytest.mark.parametrize(
    "words",
    [
        "Ruled out threads, they share the cursor.",
        "Polling is no good: it wakes the disk.",
        "At first I kept it in memory, which took four gigabytes.",
        "A global lock won't scale past two workers.",
        "Rejected: a second table. It doubles the writes.",
        "I tried to cache it, but the key changes.",
    ],
)
def test_what_was_given_up_is_an_attempt(words: str) -> None:
    """Whoever does not know it walks the same way again."""
    facts = _talk("go", words)
    assert len(sort_statements(facts).attempts) == 1
    assert sort_statements(facts).decisions == []


def test_a_choice_that_names_what_it_rules_out_is_a_decision() -> None:
    """Its label says what it is."""
    facts = _talk("go", "Decision: no good reason for a queue was found, so none.")
    assert [one.text for one in sort_statements(facts).decisions] == [
        "Decision: no good reason for a queue was found, so none."
    ]
    assert sort_statements(facts).attempts == []


def test_what_the_user_states_later_is_kept() -> None:
    """People at work give orders; a statement tells what the agent did not know."""
    rows = ["the sign is the other way round", "indices go from 0 here", "Paths are given with slashes"]
    assert [
        words
        for words in rows
        if [one.text for one in find_constraints(_talk("go", "Done.", words))] != [words]
    ] == []


def test_praise_and_orders_are_no_statements() -> None:
    """Kept, they would bury what was stated."""
    rows = ["the new one is fine", "add it to the page", "show me what is left there"]
    assert [words for words in rows if find_constraints(_talk("go", "Done.", words)) != []] == []


def test_a_question_is_no_correction() -> None:
    """It asks, and its answer is in what follows."""
    assert find_constraints(_talk("go", "Done.", "not the parser?")) == []


def test_what_holds_throughout_weighs_more_than_what_passes() -> None:
    """When there are too many rules, the wishes of one turn go first."""
    stated = ("the key is in line 2", "the key is not a name")
    assert [weigh_rule(text) for text in stated] == [1, 2]
    assert [weigh_rule(text) for text in ("Never push.", "No, the other one.", "use the short name")] == [
        2,
        2,
        0,
    ]
    assert [weigh(text) for text in ("We chose A.", "Goes in, so it settles.", "It is red.")] == [4, 2, 0]
