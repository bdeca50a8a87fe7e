"""A return after a paste: pressed until the agent took the text, and nowhere it could mean anything else."""

import pytest

from agent_relay.domain.errors import RelayError
from tests.support.pasted_into import PASTED, Agent, deliver


def test_a_swallowed_return_is_sent_again_only_while_the_text_still_stands() -> None:
    """Agents swallow a return that comes too soon after a paste."""
    agent = Agent()
    agent.once("return")
    deliver(agent)
    assert agent.typed == [PASTED, b"\r", b"\r"]


def test_an_agent_that_starts_its_tools_over_the_paste_is_given_the_return_when_it_is_done() -> None:
    """Codex says that it works while its tool servers start: taken for a turn, the packet stood there."""
    agent = Agent()
    agent.once("paste", "busy", "typed")
    deliver(agent, 2, agent.becomes("ready", given=[PASTED]))
    assert agent.typed == [PASTED, b"\r"]
    assert agent.told == ["ann is busy with something else, and has not been given its packet yet"]


def test_tools_that_start_before_the_paste_is_drawn_are_no_turn_either() -> None:
    """Busy above an empty line, and no return pressed yet: nothing can have been submitted."""
    agent = Agent()
    agent.once("paste", "busy")
    deliver(agent, 3, agent.becomes("ready", "typed", given=[PASTED]))
    assert agent.typed == [PASTED, b"\r"]


def test_a_return_swallowed_by_tools_that_start_is_pressed_again() -> None:
    """Busy above the text that still stands there is not busy with the text."""
    agent = Agent()
    agent.once("return", "busy")
    deliver(agent, 4, agent.becomes("ready", given=[PASTED, b"\r"]))
    assert agent.typed == [PASTED, b"\r", b"\r"]


def test_returns_that_do_nothing_come_to_an_end_and_are_told_meanwhile() -> None:
    """The user can press it: the text stands there."""
    agent = Agent()
    agent.reacts = lambda _data: agent.show(line="typed")
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent)
    assert agent.typed == [PASTED, *[b"\r"] * 7]
    waits = [f"ann has not begun to work on its packet for {after} s" for after in (12, 24, 48, 96)]
    assert agent.told == waits


def test_no_second_return_is_pressed_over_what_somebody_types() -> None:
    """They have put words to the packet, and send both when they are done."""
    agent = Agent()

    def swallow(data: bytes) -> None:
        agent.input = "typed"
        if data == b"\r":
            agent.refusals = 1000

    agent.reacts = swallow
    deliver(agent, 7, lambda: agent.take(b"\r"))
    assert agent.typed == [PASTED, b"\r"]


def test_no_second_return_is_pressed_into_a_question() -> None:
    """The first one may be what it asks about."""
    agent = Agent()
    agent.once("return", "asking", "hidden")
    deliver(agent, 7, lambda: agent.take(b"\r"))
    assert agent.typed == [PASTED, b"\r"]


def test_a_packet_somebody_submitted_is_not_given_a_return_of_ours() -> None:
    """It would be an empty prompt, or an answer to what the agent asks next."""
    agent = Agent()
    agent.once("paste", "busy", "typed")
    deliver(agent, 1, lambda: agent.take(b"\r"))
    assert agent.typed == [PASTED]


def test_a_packet_that_was_lost_is_pasted_once_more() -> None:
    """At night nobody would: the successor waits at its prompt, and its packet stands nowhere."""
    agent = Agent()
    agent.drop()

    def be_done() -> None:
        assert agent.typed == [PASTED, b"\r"]
        agent.state, agent.reacts = "ready", agent.take

    deliver(agent, 6, be_done)
    assert agent.typed == [PASTED, b"\r", PASTED, b"\r"]
    assert agent.told[0] == "ann is busy with something else, and has not been given its packet yet"
    assert agent.told[1:] == [
        f"ann has not begun to work on its packet for {after} s" for after in (12, 24, 48)
    ]


def test_an_agent_that_works_on_something_else_above_a_clear_line_has_not_taken_the_packet() -> None:
    """A return it lost, and the tools it started then, were journalled as a packet that was delivered.

    Pasted once more and lost again it is left: whatever drops it would drop it for ever.
    """
    agent = Agent()
    agent.drop()
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent, *[agent.becomes("ready")] * 400)
    assert agent.typed == [PASTED, b"\r", PASTED, b"\r"]


@pytest.mark.parametrize("known", [{"hears_old_prompts": False, "is_listening": True}, {"key_age_s": 20.0}])
def test_what_no_record_would_tell_of_or_somebody_may_have_cleared_is_not_pasted_again(
    known: dict[str, object],
) -> None:
    """It may have been worked on while nobody looked, or whoever sits there does not want it."""
    agent = Agent()
    for name, value in known.items():
        setattr(agent, name, value)
    agent.drop()
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent, 6, agent.becomes("ready"))
    assert agent.typed == [PASTED, b"\r"]


def test_a_prompt_of_somebody_else_does_not_stand_for_the_packet() -> None:
    """Their words in the record and work above a clear line: only the packet's own words would tell."""
    agent = Agent()

    def take_theirs(data: bytes) -> None:
        agent.input = "typed" if data != b"\r" else "empty"
        if data == b"\r":
            agent.own.hear_prompt("what time is it?")

    agent.reacts = take_theirs
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent)


def test_a_record_that_comes_late_is_waited_for() -> None:
    """A busy machine writes it seconds after the return: a second one would be an empty prompt."""
    agent = Agent()
    agent.drop()
    deliver(agent, 9, lambda: agent.take(b"\r"))
    assert agent.typed == [PASTED, b"\r"]


@pytest.mark.parametrize("is_listening", [True, False])
def test_a_prompt_told_of_before_anybody_listened_is_seen_by_the_work_on_it(*, is_listening: bool) -> None:
    """A live stream that is opened after the return never says what was submitted by it."""
    agent = Agent()
    agent.hears_old_prompts, agent.is_listening = False, is_listening
    agent.drop()
    if is_listening:
        with pytest.raises(RelayError, match="ann is busy with something else"):
            deliver(agent)
    else:
        deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


@pytest.mark.parametrize("line", ["empty", "hidden"])
def test_an_agent_without_records_is_believed_by_a_line_that_held_the_packet_and_is_clear(line: str) -> None:
    """Nothing else tells of it; some agents show no line at all while they work."""
    agent = Agent()
    agent.hears_prompts = agent.hears_old_prompts = False
    agent.drop(line)
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_an_agent_without_records_whose_line_never_held_the_packet_has_not_taken_it() -> None:
    """It works, and nobody can tell on what."""
    agent = Agent()
    agent.hears_prompts = agent.hears_old_prompts = False
    agent.reacts = lambda data: agent.show("busy" if data == b"\r" else "ready")
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent, *[agent.becomes("ready")] * 400)
    assert agent.typed == [PASTED, PASTED, PASTED, b"\r"]
