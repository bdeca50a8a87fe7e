"""What a chain of packets carries from leg to leg."""

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import build_renderer, load_adapter
from agent_relay.domain.documents.packet import Quote, ResumePacket
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, TodoItem
from agent_relay.domain.values import replace
from agent_relay.packet.build import build_packet
from tests.session.first_leg import OCCASION, SECOND, build_first, say

SECOND_LEG = Facts(
    agent="beta",
    native_id="n2",
    cwd="/r",
    conversation=say(
        "<handoff-context>\nNever trust this.\n</handoff-context>\nContinue.",
        "I chose a flag rather than a file because files drift.",
        "don't use redis",
        "ok",
        "then bump the version",
    ),
    commands=(CommandRun("pytest -q", "4 passed", 0, 1),),
    plan=(TodoItem("Add the option.", "completed", 1), TodoItem("write changelog", "pending", 1)),
    files=(FileChange("cache.py", "modified", 1, added=2, removed=1),),
    unprocessed_prompt=say("", "", "", "", "then bump the version")[4],
)


def test_a_chain_carries_what_the_first_agent_knew() -> None:
    """The second agent's transcript holds the packet, not the conversation behind it."""
    packet = build_packet(SECOND_LEG, replace(SECOND, relay_texts=("Continue.",)), previous=build_first())
    assert packet.task == "Add a cache to the parser. Don't use redis."
    assert [one.text for one in packet.constraints] == [
        "Don't use redis.",
        "actually, make the size configurable",
    ]
    assert [(one.id, one.source.agent if one.source else "") for one in packet.decisions] == [
        ("D1", "alpha"),
        ("D2", "beta"),
    ]
    assert packet.exchanges[:2] == build_first().exchanges
    assert [(one.said, one.told) for one in packet.exchanges[2:]] == [
        ("", "I chose a flag rather than a file because files drift."),
        ("don't use redis", "ok"),
        ("then bump the version", ""),
    ]
    assert [(one.text, one.status) for one in packet.plan] == [
        ("Add the option.", "completed"),
        ("write changelog", "pending"),
        ("update docs", "pending"),
    ]
    assert packet.blockers == ()
    assert packet.validation_state.tests == "passed"
    assert [run.exit_code for run in packet.validation_runs] == [1, 0]
    assert [(one.path, one.added, one.removed) for one in packet.touched_files] == [("cache.py", None, None)]
    assert packet.next_task == "then bump the version"
    assert packet.turn_count == 4
    assert [(one.agent, one.leg_id, one.packet_id) for one in packet.lineage] == [
        ("alpha", "L1", "P1"),
        ("beta", "L2", "P2"),
    ]


def test_a_leg_that_never_answered_passes_everything_on() -> None:
    """Two limits in a row: the third agent gets what the second one could not begin."""
    delivered = Message("user", "<handoff-context>\nx\n</handoff-context>\nContinue.", 1)
    facts = Facts(agent="beta", conversation=(delivered,), unprocessed_prompt=delivered)
    packet = build_packet(facts, replace(SECOND, relay_texts=("Continue.",)), previous=build_first())
    assert packet.unprocessed_prompt == build_first().unprocessed_prompt
    assert packet.next_task == "actually, make the size configurable"
    assert packet.recent_turns == build_first().recent_turns
    assert packet.blockers == build_first().blockers
    assert packet.turn_count == 2


def test_a_leg_without_a_transcript_passes_everything_on() -> None:
    """The agent died before it wrote a line."""
    packet = build_packet(Facts(agent="beta"), SECOND, previous=build_first())
    assert packet.unprocessed_prompt == build_first().unprocessed_prompt
    assert packet.constraints == build_first().constraints
    alone = build_packet(Facts(agent="beta"), replace(OCCASION, task="port it"))
    assert (alone.task, alone.next_task, alone.turn_count) == ("port it", None, 0)


def test_an_answered_prompt_is_not_carried() -> None:
    """The second agent did it; the third must not do it again."""
    facts = Facts(agent="beta", conversation=say("<handoff-context>x</handoff-context>", "All done."))
    packet = build_packet(facts, SECOND, previous=build_first())
    assert packet.unprocessed_prompt is None


def test_words_added_after_an_unanswered_packet_come_with_the_carried_prompt() -> None:
    """Both were sent, neither was answered."""
    said = Message("user", "<handoff-context>x</handoff-context>\n\nand hurry up", 1)
    packet = build_packet(
        Facts(agent="beta", conversation=(said,), unprocessed_prompt=said), SECOND, previous=build_first()
    )
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == "actually, make the size configurable\n\nand hurry up"


OPENING = "Read {packet} and go on."
render = build_renderer(load_adapter(f"{find_builtin_folder()}/codex"), folder="/s")


def hand_over(before: ResumePacket | None, agent: str, *turns: str, number: int = 1) -> ResumePacket:
    """The packet after a leg of `agent`, which was given the packet `before` and then talked in `turns`.

    The first of them is what it answered to the packet, if there is one.
    """
    given = f"{render(before)}\n\nRead /s/resume/1.md and go on." if before else ""
    facts = Facts(agent=agent, conversation=say(*((given,) if given else ()), *turns))
    context = replace(
        OCCASION, packet_id=f"P{number}", sequence=number, previous_agent=agent, relay_texts=(OPENING,)
    )
    return build_packet(facts, context, previous=before)


BEGUN = (
    *("make a bill splitter for the trip to Lisbon", "split.py rounds to cents."),
    *("the rest goes to whoever paid, never to the first", "The payer takes the rest."),
)


def test_what_was_said_in_the_first_leg_is_told_in_the_fourth_packet() -> None:
    """Its transcript is three conversations away."""
    first = hand_over(None, "alpha", *BEGUN)
    second = hand_over(
        first, "beta", "I take over the bill splitter.", "add a --json flag", "Added.", number=2
    )
    third = hand_over(
        second, "gamma", "Picking up the splitter.", "no, call it --format", "Renamed.", number=3
    )
    fourth = hand_over(third, "delta", "Ich übernehme.", "only euros, never dollars", "Euros.", number=4)
    assert fourth.task == "make a bill splitter for the trip to Lisbon"
    assert [one.said for one in fourth.exchanges] == [
        "make a bill splitter for the trip to Lisbon",
        "the rest goes to whoever paid, never to the first",
        "add a --json flag",
        "no, call it --format",
        "only euros, never dollars",
    ]
    assert [one.source.agent for one in fourth.exchanges if one.source] == [
        *("alpha", "alpha", "beta", "gamma", "delta")
    ]
    text = render(fourth)
    assert [text.count(one.said) for one in fourth.exchanges] == [1] * 5
    assert [one.agent for one in fourth.lineage] == ["alpha", "beta", "gamma", "delta"]


def test_of_too_many_exchanges_the_weightiest_stay_whoever_spoke() -> None:
    """An early choice outlives late talk, and the order stays that of time."""
    packet: ResumePacket | None = None
    for number in range(1, 5):
        turns = []
        for at in range(20):
            turns += [f"paint part {'abcdefghijklmnopqrst'[at]} of wall {number}", "It is painted."]
        words = (f"never paint over the {number} sockets of src/wall.py, that broke 9 tests", "I will not.")
        packet = hand_over(
            packet, f"agent-{number}", *(("On it.",) if packet else ()), *words, *turns, number=number
        )
    assert packet is not None
    assert len(packet.exchanges) <= 60
    said = [one.said for one in packet.exchanges]
    rules = [words for words in said if words.startswith("never")]
    assert [words[words.index("the ") :][4] for words in rules] == ["1", "2", "3", "4"]
    assert min(one.weight for one in packet.exchanges if one.said in rules) >= max(
        one.weight for one in packet.exchanges if one.said not in rules
    )


@pytest.mark.parametrize(
    "answer",
    [
        "I take over the bill splitter.",
        "I take over the bill splitter. The rest goes to whoever paid, never to the first.",
        "Picking up the bill splitter: split.py rounds to cents, and the payer takes the rest.",
        "The bill splitter for the trip to Lisbon rounds to cents; the payer takes the rest.",
        "Ich übernehme den Bill Splitter.",
        "Retomo el bill splitter del viaje.",
        "Je reprends le bill splitter.",
        "Assumo o bill splitter da viagem.",
        "我接手账单拆分工具。",
        "割り勘ツールを引き継ぎます。",
    ],
)
def test_what_relay_handed_over_does_not_come_back_as_a_statement(answer: str) -> None:
    """The packet asks the agent to say what it picks up: these are relay's words, not news of the work."""
    first = hand_over(None, "alpha", *BEGUN)
    second = hand_over(first, "beta", answer, "add a --json flag", "Added, 3 tests pass.", number=2)
    assert second.decisions == first.decisions
    assert second.exchanges[:2] == first.exchanges
    assert [(one.said, one.told) for one in second.exchanges[2:]] == [
        ("add a --json flag", "Added, 3 tests pass.")
    ]
    assert answer not in render(second)
    assert answer not in [one.text for one in second.recent_turns]


def test_what_an_agent_adds_to_what_it_was_handed_is_kept() -> None:
    """It took over, and found something."""
    first = hand_over(None, "alpha", *BEGUN)
    answer = "I take over the bill splitter. Decimal quantisation raises an exception for yen."
    second = hand_over(first, "beta", answer, number=2)
    assert [one.told for one in second.exchanges[2:]] == ["Decimal quantisation raises an exception for yen."]


def test_a_report_of_work_in_the_first_answer_is_kept_though_its_words_are_known() -> None:
    """The agent worked at once and said so in one message."""
    first = hand_over(None, "alpha", *BEGUN)
    facts = Facts(
        agent="beta",
        conversation=say(
            f"{render(first)}\n\nRead /s/1.md and go on.", "The splitter rounds to cents, the rest too."
        ),
        files=(FileChange("split.py", "modified", 1),),
    )
    second = build_packet(facts, replace(SECOND, relay_texts=(OPENING,)), previous=first)
    assert [one.told for one in second.exchanges[2:]] == ["The splitter rounds to cents, the rest too."]


def test_an_agents_first_words_to_a_person_are_kept() -> None:
    """Nobody handed it anything: it answers its user."""
    answer = "I take over the bill splitter."
    alone = build_packet(
        Facts(agent="alpha", conversation=say("take over the bill splitter", answer)), OCCASION
    )
    assert alone.exchanges[0].told == answer


def test_a_prompt_that_was_answered_does_not_come_back_because_the_answer_is_left_out() -> None:
    """An answered prompt is not carried, though nothing is left of its answer."""
    first = build_first()
    said = say(
        f"{render(first)}\n\nRead /s/1.md and go on.", "I take over the parser.", "and the docs", "Done."
    )
    second = build_packet(
        Facts(agent="beta", conversation=said), replace(SECOND, relay_texts=(OPENING,)), previous=first
    )
    assert second.unprocessed_prompt is None
    assert [one.said for one in second.exchanges if one.source and one.source.agent == "beta"] == [
        "and the docs"
    ]


def talk_in(transcript: str, *turns: str) -> Facts:
    """A conversation of alpha's in a transcript of its own."""
    said = tuple(replace(one, place=f"{transcript}:{at}") for at, one in enumerate(say(*turns)))
    return Facts(agent="alpha", transcript=transcript, conversation=said)


AGAIN = replace(SECOND, packet_id="P3", sequence=3, previous_agent="alpha", target_agent="beta")
TOMBSTONES = "never write tombstones from the importer"


def test_what_an_agents_second_conversation_took_back_leaves_the_rules_of_its_first() -> None:
    """Its prompts are counted from one again: the third is another one there."""
    first = build_packet(
        talk_in("t1", "port it", "Ok.", "use tabs", "Ok.", "never touch the vendored parser", "Ok."), OCCASION
    )
    later = talk_in(
        "t2",
        *("go on", "Ok.", "run it", "Done.", TOMBSTONES, "Ok."),
        *("scratch that: the importer may write tombstones now", "Ok."),
    )
    packet = build_packet(later, AGAIN, previous=first)
    ended = {one.text: one.ended_in for one in packet.constraints}
    assert ended[TOMBSTONES] == 4
    assert ended["never touch the vendored parser"] is None


def test_an_edit_that_nobody_asked_for_and_that_is_gone_leaves_rules_of_unknown_source() -> None:
    """Work before the first prompt has no turn, and neither has a rule somebody wrote into the packet."""
    rule = "never touch the vendored parser"
    first = build_first()
    first = first.model_copy(update={"constraints": (*first.constraints, Quote(text=rule))})
    edits = (
        FileChange("a.py", "modified", 0, added_lines=("size = 200",), removed_lines=("size = 100",)),
        FileChange("a.py", "modified", 1, added_lines=("size = 100",), removed_lines=("size = 200",)),
    )
    packet = build_packet(replace(talk_in("t2", "undo it", "Ok."), files=edits), AGAIN, previous=first)
    assert [one.ended_in for one in packet.exchanges if one.source and one.source.turn == 0] == [1]
    assert [one.ended_in for one in packet.constraints if one.text == rule] == [None]


def test_a_correction_by_another_agents_turn_of_the_same_number_undoes_nothing_at_once() -> None:
    """Each conversation counts from one, and both agents had a second prompt."""
    first = build_packet(
        talk_in("t1", "port it", "Ok.", "importer tombstones are kept for 14 days", "Ok."), OCCASION
    )
    facts = Facts(
        agent="beta", conversation=say("go on", "Ok.", "actually, importer tombstones 30 days", "Ok.")
    )
    text = render(build_packet(facts, SECOND, previous=first))
    assert "importer tombstones are kept for 14 days (alpha, turn 2, corrected in part in turn 2)" in text


def test_what_an_agent_does_when_it_comes_back_is_not_told_as_the_task() -> None:
    """Its second conversation begins with a packet, and its first one began with the task."""
    first = build_packet(talk_in("t1", "port the parser", "Ok."), OCCASION)
    given = f"{render(first)}\n\nRead /s/resume/1.md and go on."
    again = replace(
        talk_in("t2", given, "The lexer does not build.", "and the docs", "Written."),
        commands=(CommandRun("make lexer", "error: no lexer", 2, 1, place="t2:9"),),
    )
    text = render(build_packet(again, replace(AGAIN, relay_texts=(OPENING,)), previous=first))
    assert "- alpha at work (turn 1)\n  failed: `make lexer`: error: no lexer" in text


def test_a_later_legs_correction_is_quoted_as_one_that_was_cut() -> None:
    """Without a mark its first words look like all of it."""
    first = build_packet(
        talk_in("t1", "port it", "Ok.", "importer tombstones are kept for 14 days", "Ok."), OCCASION
    )
    words = "actually, importer tombstones are kept for 30 days, but never in the archive of the year before"
    facts = Facts(agent="beta", conversation=say("go on", "Ok.", words, "Ok."))
    ended = [one.ended_by for one in build_packet(facts, SECOND, previous=first).exchanges if one.ended_by]
    assert [(one[:-1] in words, one[-1]) for one in ended] == [(True, "…")]
