"""What a chain of packets carries from leg to leg."""

from dataclasses import replace

from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, TodoItem
from agent_relay.packet.build import build_packet
from tests.session.first_leg import OCCASION, SECOND, build_first, say


def test_a_chain_carries_what_the_first_agent_knew() -> None:
    """The second agent's transcript holds the packet, not the conversation behind it."""
    facts = Facts(
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
    packet = build_packet(facts, replace(SECOND, relay_texts=("Continue.",)), previous=build_first())
    assert packet.task == "Add a cache to the parser. Don't use redis."
    assert [one.text for one in packet.constraints] == [
        "Don't use redis.",
        "actually, make the size configurable",
    ]
    assert [(one.id, one.source.agent if one.source else "") for one in packet.decisions] == [
        ("D1", "alpha"),
        ("D2", "alpha"),
        ("D3", "beta"),
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
    assert packet.next_task == "add the option"
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
