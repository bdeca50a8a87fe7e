"""Getting text into an agent: once, whole, and never into somebody's line or a question."""

import asyncio

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values import replace
from agent_relay.engine._idle_agent import forget_text, type_line
from agent_relay.session.views.waiting import DeliveryStage
from agent_relay.terminal.holder_client import HolderError
from tests.support.pasted_into import DELIVER, PASTED, RECORDED, Agent, deliver


def test_a_packet_and_its_prompt_are_one_paste_and_one_return() -> None:
    """Two pastes would be two turns; a mark in a packet must not act, one the user wrote must."""
    agent = Agent()
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.says_working == 1


@pytest.mark.parametrize(("opens_page", "expected"), [(True, [0]), (False, [])])
def test_keys_wait_for_the_page_on_which_an_agent_works(*, opens_page: bool, expected: list[int]) -> None:
    """Typed into the page of its first prompt, they would go with it; others are not waited for."""
    agent, seen = Agent(), []

    def take(data: bytes) -> None:
        agent.take(data)
        agent.state = "ready"

    def show() -> None:
        agent.state = "busy"
        seen.append(agent.says_working)

    agent.reacts = take
    deliver(agent, show, how=replace(DELIVER, opens_page=opens_page))
    assert (seen, agent.says_working) == (expected, 1)


def test_one_of_the_agents_own_commands_is_typed_in_one_piece() -> None:
    """Keys between it and its return would make another command of it."""
    agent = Agent()
    asyncio.run(type_line(agent, DELIVER, "/compact"))
    assert agent.typed == [b"/compact", b"\r"]
    assert agent.holds == [True, False]


def test_what_was_done_before_a_daemon_died_is_not_done_again() -> None:
    """A packet must be given once, by what its holder noted, what stands in the line and what was recorded.

    Pasted again it would stand there twice; left alone it would stand there for ever.
    """
    theirs = "wait a moment"
    wrong = []
    for note, line, heard, typed in (
        # Delivered, by a daemon that crashed after it, also where the holder keeps no notes.
        ("submitted H", "empty", RECORDED, []),
        (None, "empty", RECORDED, []),
        # Somebody saw it stand there and pressed the return.
        ("pasted H", "empty", RECORDED, []),
        # It stands there, or its return was swallowed.
        ("pasted H", "typed", "", [b"\r"]),
        ("submitted H", "typed", "", [b"\r"]),
        # A question took it along, or the agent started itself anew.
        ("pasted H", "empty", "", [PASTED, b"\r"]),
        # The notes are of one text each.
        ("submitted of another", "empty", "", [PASTED, b"\r"]),
        # A person was first: the record of their prompt says nothing of a text that stands in the line.
        ("", "empty", theirs, [PASTED, b"\r"]),
        ("pasted H", "typed", theirs, [b"\r"]),
    ):
        agent = Agent()
        agent.note, agent.input = note, line
        if heard:
            agent.own.hear_prompt(heard)
        deliver(agent)
        if (agent.typed, agent.says_working, agent.note) not in [
            (typed, 1, "submitted H"),
            (typed, 1, note),
        ]:
            wrong.append((note, line, heard, agent.typed))
    assert wrong == []


def test_a_text_whose_return_was_pressed_is_not_pasted_again_before_its_record_is_there() -> None:
    """Records are written a moment later than a new daemon looks."""
    agent = Agent()
    agent.note = "submitted H"
    deliver(agent, 1, lambda: agent.own.hear_prompt(RECORDED))
    assert agent.typed == []


def test_an_agent_that_tells_no_prompts_and_worked_is_not_asked_twice() -> None:
    """The return was pressed, the line is clear, and it worked since: nothing else will ever tell."""
    agent = Agent()
    agent.note, agent.hears_prompts, agent.hears_old_prompts = "submitted H", False, False
    agent.leg = replace(agent.leg, was_busy=True)
    deliver(agent)
    assert agent.typed == []


def test_a_text_that_was_given_up_is_begun_anew_by_who_tries_again() -> None:
    """They see that it is not there."""
    agent = Agent()
    agent.note = "submitted H"
    asyncio.run(forget_text(agent))
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


@pytest.mark.size("test")
def test_a_line_somebody_types_is_waited_for() -> None:
    """Text in the middle of a person's sentence would be sent in their name."""
    agent = Agent(refusals=2)
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.looks == 3
    assert agent.told == []


@pytest.mark.size("test")
def test_a_key_that_answered_a_question_does_not_hold_the_packet_up_for_ever() -> None:
    """`1` without a return leaves a count of one behind, and an input line that is plainly empty."""
    agent = Agent(refusals=1000)
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_no_return_is_sent_into_a_question_that_came_up_meanwhile() -> None:
    """It would say yes in the user's place."""
    agent = Agent()
    agent.once("paste", "asking", "hidden")
    deliver(agent, 3, agent.becomes("ready", "typed", given=[PASTED]))
    assert agent.typed == [PASTED, b"\r"]


def test_a_paste_that_a_question_took_along_is_made_again() -> None:
    """An agent that is told to trust a folder starts itself again, its input line empty."""
    agent = Agent()
    agent.once("paste", "asking", "hidden")
    deliver(agent, 1, agent.becomes("ready", "empty", given=[PASTED]))
    assert agent.typed == [PASTED, PASTED, b"\r"]


def test_a_prompt_that_is_announced_before_it_is_painted_is_waited_for() -> None:
    """A question may be painted in its place, and must not get the packet."""
    agent = Agent()
    agent.input = "hidden"
    deliver(agent, agent.becomes("asking", given=[]), 1, agent.becomes("ready", "empty", given=[]))
    assert agent.typed == [PASTED, b"\r"]


@pytest.mark.parametrize(
    ("state", "line", "doing"),
    [
        ("starting", "hidden", "is still starting"),
        ("ready", "typed", "has something in its input line"),
    ],
)
def test_what_an_agent_does_instead_is_told(state: str, line: str, doing: str) -> None:
    """Whoever waits can see to it: answer the question, or send what stands there."""
    agent = Agent()
    agent.state, agent.input = state, line
    deliver(agent, 4, agent.becomes("ready", "empty"))
    assert agent.told == [f"ann {doing}, and has not been given its packet yet"]
    assert agent.typed == [PASTED, b"\r"]


def test_an_input_line_that_cannot_be_told_holds_nothing_up_for_long() -> None:
    """A new version may paint it otherwise; its work must still go on."""
    agent = Agent()
    agent.input = "hidden"
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_a_paste_that_is_drawn_late_is_not_made_twice() -> None:
    """An agent that was slow to read had the packet twice in its first prompt."""
    agent = Agent()
    agent.reacts = lambda _data: None

    def draw() -> None:
        assert agent.typed == [PASTED]
        agent.input, agent.reacts = "typed", agent.take

    deliver(agent, 5, draw)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.told == ["ann is slow to read, and has not been given its packet yet"]


def test_a_paste_that_is_never_seen_is_made_three_times_at_most() -> None:
    """Its line cannot be read right, then: a return is still pressed once, and no more."""
    agent = Agent()
    agent.reacts = lambda _data: None
    with pytest.raises(RelayError, match="ann did not begin to work on its packet"):
        deliver(agent)
    assert agent.typed == [PASTED, PASTED, PASTED, b"\r"]


@pytest.mark.parametrize(
    ("when", "why"), [("before", "before it was given"), ("after", "while it was given")]
)
def test_an_agent_that_ends_meanwhile_is_said_to_have_ended(when: str, why: str) -> None:
    """The next one is asked, and the user reads which one left."""
    agent = Agent()
    if when == "before":
        agent.state = "busy"
    agent.reacts = lambda data: agent.gone.set() if data == b"\r" else None
    with pytest.raises(RelayError, match=f"ann ended {why} its packet"):
        deliver(agent, agent.gone.set if when == "before" else 1)


def test_a_holder_that_breaks_is_not_mistaken_for_a_person_typing() -> None:
    """Only one refusal means: wait."""
    agent = Agent()

    def refuse(_data: bytes) -> None:
        raise HolderError("the program does not read its input", why="full")

    agent.reacts = refuse
    with pytest.raises(HolderError, match="does not read"):
        deliver(agent)


def test_an_agent_that_never_becomes_ready_is_given_up() -> None:
    """Every wait has an end, and says what was waited for."""
    agent = Agent()
    agent.state = "asking"
    with pytest.raises(RelayError, match="was not ready for its packet within 600 s"):
        deliver(agent)
    assert agent.told[0] == "ann is asking something, and has not been given its packet yet"


def test_no_key_somebody_typed_before_keeps_a_packet_while_keys_wait() -> None:
    """What they type now is given to the agent after its packet: there is nothing to be polite about."""
    agent = Agent(refusals=1000)
    agent.can_hold = True
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.refusals == 1000
    assert agent.stages == [DeliveryStage.GIVING, DeliveryStage.SUBMITTED]


def test_who_has_typed_into_the_agents_line_has_their_keys_to_finish_it() -> None:
    """A trust question was answered in a hurry: with waiting keys, what they typed would stay."""
    agent = Agent()
    agent.can_hold, agent.input = True, "typed"

    def send() -> None:
        assert agent.stages == [DeliveryStage.WAITS_FOR_LINE]
        assert agent.typed == []
        agent.input = "empty"

    deliver(agent, 6, send)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.stages[-2:] == [DeliveryStage.GIVING, DeliveryStage.SUBMITTED]


def test_a_key_on_its_way_when_keys_began_to_wait_is_seen_before_the_paste() -> None:
    """The agent had it already: the packet would stand in the middle of their line."""
    agent = Agent()
    agent.can_hold = True
    looks = agent.settle_evidence

    async def paint() -> None:
        await looks()
        if agent.stages and not agent.typed:
            agent.input = "typed" if agent.looks == 2 else "empty"

    agent.settle_evidence = paint  # type: ignore[method-assign]  # the scripted agent's own
    deliver(agent, 4, agent.becomes(line="empty"))
    assert agent.typed == [PASTED, b"\r"]
    assert agent.stages.count(DeliveryStage.GIVING) == 2
