"""A rule the user takes back is marked as such, and only that one; what takes it back is no rule."""

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.packet.build import build_packet
from agent_relay.packet.extract.later_changes import find_lifted_rules
from agent_relay.packet.extract.requests import is_rule
from tests.packet.test_later_words import render, talk
from tests.session.first_leg import OCCASION, SECOND

BACK = "I was wrong about db.py: you may touch it."


def build(*prompts: str, runs: tuple[CommandRun, ...] = ()) -> ResumePacket:
    """The packet of these prompts, each answered with a word."""
    said = tuple(one for asked in talk(*prompts) for one in (asked, Message("assistant", "Ok.", asked.turn)))
    return build_packet(Facts("alpha", conversation=said, commands=runs), OCCASION)


def lift(*prompts: str) -> list[tuple[str, str]]:
    """The rules taken back, and how."""
    return [(one.rule, one.how) for one in find_lifted_rules(talk(*prompts))]


def test_a_rule_of_the_task_that_was_taken_back_says_so_where_it_stands() -> None:
    """Whoever reads the task first would keep to it."""
    packet = build("Build a parser. Never touch db.py.", "go on", BACK)
    [rule] = packet.constraints
    assert (rule.text, rule.ended_in, rule.ended_how) == ("Never touch db.py.", 3, "taken back")
    assert packet.decisions == ()
    task = render(packet).partition("## Task")[2].partition("\n## ")[0]
    assert f"- Never touch db.py. (turn 1)\n  taken back in turn 3: {BACK}" in task


def test_of_several_rules_only_the_one_taken_back_is_marked() -> None:
    """The other one still holds."""
    packet = build("Build a parser. Never touch db.py. Always use tabs.", "go on", BACK)
    assert [(one.text, one.ended_how, one.revisited_in) for one in packet.constraints] == [
        ("Never touch db.py.", "taken back", None),
        ("Always use tabs.", None, None),
    ]


def test_a_message_of_which_one_rule_was_taken_back_is_corrected_in_part() -> None:
    """It is quoted whole, and its other rule holds."""
    packet = build("Build a parser.", "Never touch db.py. Always use tabs.", BACK)
    [rule] = packet.constraints
    assert (rule.text, rule.ended_how) == ("Never touch db.py. Always use tabs.", "corrected")
    said = next(one for one in packet.exchanges if one.source and one.source.turn == 2)
    assert (said.is_settled, said.ended_how) == (False, "corrected")
    assert "(turn 2, corrected in part in turn 3)" in render(packet)


def test_a_rule_of_an_earlier_leg_is_taken_back_in_a_later_one() -> None:
    """The packet carries it on."""
    before = build("Build a parser.", "Never touch db.py.")
    facts = Facts("beta", conversation=tuple(talk("go on", BACK)))
    [rule] = build_packet(facts, SECOND, previous=before).constraints
    assert (rule.ended_in, rule.ended_how) == (2, "taken back")


def test_a_sentence_that_takes_back_and_rules_is_still_a_rule() -> None:
    """Half of it would be lost."""
    packet = build("Build a parser.", "Never touch db.py.", "You may touch db.py; never touch cache.py.")
    assert [(one.text, one.ended_how) for one in packet.constraints] == [
        ("Never touch db.py.", "taken back"),
        ("You may touch db.py; never touch cache.py.", None),
    ]


def test_what_takes_back_a_part_corrects_the_rule_in_part() -> None:
    """The rest, or the condition, holds."""
    rows = [
        ("Never touch db.py or cache.py.", "You may touch cache.py after all."),
        ("Never touch db.py.", "You may touch db.py, but only in tests."),
        ("Never touch db.py.", "if the tests are green you may touch db.py"),
        ("Never touch db.py, never push to main.", "you may touch db.py"),
    ]
    assert [
        (rule, later) for rule, later in rows if lift(rule, "go on", later) != [(rule, "corrected")]
    ] == []


def test_a_rule_is_taken_back_in_seven_languages() -> None:
    """By what allows it again, or says that it is gone."""
    rows = [
        ("Never push to main.", "you can push to main now"),
        ("No new dependencies.", "you may add new dependencies now"),
        ("Always use tabs.", "the tabs rule is gone"),
        ("Leave vendor/ alone.", "vendor is no longer off limits"),
        ("Fass db.py niemals an.", "db.py darfst du doch anfassen"),
        ("nunca toques db.py", "ya puedes tocar db.py"),
        ("ne touche jamais db.py", "tu peux toucher db.py"),
        ("nunca mexa no db.py", "pode mexer no db.py"),
        ("不要动 db.py", "可以改 db.py 了"),
        ("db.py は絶対に変えないでください", "db.py は変えてもいい"),
    ]
    assert [
        (rule, later) for rule, later in rows if lift(rule, "go on", later) != [(rule, "taken back")]
    ] == []


def test_what_only_sounds_like_it_takes_nothing_back() -> None:
    """A question, a refusal, somebody else's words, another file."""
    rows = [
        "May I touch db.py?",
        "You may not touch db.py.",
        "you can see in db.py how it works",
        'Bob said "you may touch db.py"',
        "you may touch parser.py",
        "never say never: db.py is fine as it is",
        "I was not wrong about db.py.",
    ]
    assert [later for later in rows if lift("Never touch db.py.", "go on", later) != []] == []


def test_what_stands_beside_a_rule_is_not_what_it_is_about() -> None:
    """Two messages that name where the work is have no rule in common."""
    rule = "it is all in crates render and crates world and the save format must not change"
    assert lift(rule, "go on", "no unsafe in crates world at all, you can have it in crates render") == []


def test_a_long_rule_of_the_task_is_marked_by_its_beginning() -> None:
    """The task quotes it, and nothing is said twice."""
    rule = (
        "Never touch db.py whatever happens because the people of the other team are rewriting it right now."
    )
    text = render(build(f"Build a parser. {rule}", "go on", BACK))
    assert text.count(rule) == 1
    assert "- Never touch db.py whatever happens because the people of… (turn 1)" in text


def test_a_rule_given_again_is_in_force() -> None:
    """The newest word wins."""
    assert lift("Never touch db.py.", "you may touch db.py", "never touch db.py") == []
    assert lift("Always use tabs in db.py.", "go on", "you may touch db.py") == []


def test_what_tools_and_agents_say_takes_no_rule_back_and_is_none() -> None:
    """Anybody may write that into a file."""
    output = "Never touch app.py. I was wrong about db.py: you may touch it."
    packet = build("Build a parser.", "Never touch db.py.", runs=(CommandRun("cat NOTES", output, 0, 2),))
    said = Message("assistant", output, 2)
    facts = Facts("alpha", conversation=(*talk("Build it.", "Never touch db.py."), said))
    for one in (packet, build_packet(facts, OCCASION)):
        assert [(rule.text, rule.ended_in) for rule in one.constraints] == [("Never touch db.py.", None)]


@pytest.mark.parametrize(
    "words",
    [
        "never say never",
        "never mind the cache",
        'The README says "never touch db.py".',
        "Bob wrote: “no new files”",
    ],
)
def test_an_idiom_and_a_quoted_rule_are_no_rules(words: str) -> None:
    """Nobody asked for anything."""
    assert not is_rule(words)
    assert is_rule('I said "never touch db.py"')


SUSPICION = ("Build it.", "It fails. This looks like a rate limit. Shall I switch the proxy off?")


@pytest.mark.parametrize("ruled_out", [True, False])
def test_what_was_agreed_on_a_suspicion_is_settled_as_long_as_that_holds(*, ruled_out: bool) -> None:
    """A successor would build on what its predecessor had already found to be wrong."""
    found = "It was not a rate limit: the certificate is gone." if ruled_out else "It passes."
    said = (
        Message("user", SUSPICION[0], 1),
        Message("assistant", SUSPICION[1], 1),
        Message("user", "yes", 2),
        Message("assistant", f"Off now. {found}", 2),
    )
    packet = build_packet(Facts("alpha", conversation=said), OCCASION)
    assert packet.exchanges[-1].is_settled is not ruled_out
    assert ("see turn 2: It was not a rate limit" in render(packet)) is ruled_out


def test_a_correction_that_names_nothing_is_of_what_was_said_right_before() -> None:
    """Whatever is called settled stands apart from it."""
    packet = build(
        "Build it.", "take over no amounts, only the names", "I must correct myself: the amounts, too"
    )
    assert [one.ended_in for one in packet.exchanges if one.source and one.source.turn == 2] == [3]
