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


@pytest.mark.parametrize("note", [None, "submitted H"])
def test_a_leg_that_took_a_prompt_before_is_left_alone(note: str | None) -> None:
    """A daemon that crashed after delivering must not have it delivered again."""
    agent = Agent()
    agent.note = note
    agent.own.hear_prompt(RECORDED)
    deliver(agent)
    assert agent.typed == []
    assert agent.says_working == 1


def test_a_text_that_stands_there_since_a_daemon_died_is_submitted() -> None:
    """Pasted again it would stand there twice; left alone it would stand there for ever."""
    agent = Agent()
    agent.note, agent.input = "pasted H", "typed"
    deliver(agent)
    assert agent.typed == [b"\r"]
    assert agent.note == "submitted H"


def test_a_paste_that_was_lost_while_no_daemon_lived_is_made_again() -> None:
    """A question took it along, or the agent started itself anew: nothing stands there."""
    agent = Agent()
    agent.note = "pasted H"
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_a_text_somebody_submitted_while_no_daemon_lived_is_left_alone() -> None:
    """They saw it stand there and pressed the return."""
    agent = Agent()
    agent.note = "pasted H"
    agent.own.hear_prompt(RECORDED)
    deliver(agent)
    assert agent.typed == []


def test_a_text_whose_return_was_pressed_is_not_pasted_again_before_its_record_is_there() -> None:
    """Records are written a moment later than a new daemon looks."""
    agent = Agent()
    agent.note = "submitted H"

    def record() -> None:
        agent.own.hear_prompt(RECORDED)

    deliver(agent, lambda: None, record)
    assert agent.typed == []


def test_a_return_that_was_swallowed_while_no_daemon_lived_is_pressed_again() -> None:
    """The text stands there still."""
    agent = Agent()
    agent.note, agent.input = "submitted H", "typed"
    deliver(agent)
    assert agent.typed == [b"\r"]


def test_an_agent_that_tells_no_prompts_and_worked_is_not_asked_twice() -> None:
    """The return was pressed, the line is clear, and it worked since: nothing else will ever tell."""
    agent = Agent()
    agent.note, agent.hears_prompts, agent.hears_old_prompts = "submitted H", False, False
    agent.leg = replace(agent.leg, was_busy=True)
    deliver(agent)
    assert agent.typed == []


def test_what_a_leg_was_given_before_does_not_stand_for_what_it_is_given_now() -> None:
    """The notes are of one text each."""
    agent = Agent()
    agent.note = "submitted of another"
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


@pytest.mark.parametrize("note", ["", "pasted H"])
def test_a_person_who_was_first_does_not_keep_the_text_from_being_sent(note: str) -> None:
    """The record of their prompt says nothing of a text that stands in the line."""
    agent = Agent()
    agent.note = note
    agent.own.hear_prompt("wait a moment")
    agent.input = "typed" if note else "empty"
    deliver(agent)
    assert agent.typed == [*([] if note else [PASTED]), b"\r"]


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

    def ask(data: bytes) -> None:
        agent.take(data)
        if data != b"\r":
            agent.state, agent.input = "asking", "hidden"

    def settle() -> None:
        assert agent.typed == [PASTED]
        agent.state, agent.input = "ready", "typed"

    agent.reacts = ask
    deliver(agent, lambda: None, lambda: None, lambda: None, settle)
    assert agent.typed == [PASTED, b"\r"]


def test_a_paste_that_a_question_took_along_is_made_again() -> None:
    """An agent that is told to trust a folder starts itself again, its input line empty."""
    agent = Agent()

    def ask(_data: bytes) -> None:
        agent.state, agent.input, agent.reacts = "asking", "hidden", agent.take

    def answer() -> None:
        assert agent.typed == [PASTED]
        agent.state, agent.input = "ready", "empty"

    agent.reacts = ask
    deliver(agent, lambda: None, answer)
    assert agent.typed == [PASTED, PASTED, b"\r"]


def test_a_prompt_that_is_announced_before_it_is_painted_is_waited_for() -> None:
    """A question may be painted in its place, and must not get the packet."""
    agent = Agent()
    agent.input = "hidden"

    def ask() -> None:
        assert agent.typed == []
        agent.state = "asking"

    def answer() -> None:
        assert agent.typed == []
        agent.state, agent.input = "ready", "empty"

    deliver(agent, ask, lambda: None, answer)
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

    def wait() -> None:
        agent.state, agent.input = "ready", "empty"

    deliver(agent, *[lambda: None] * 4, wait)
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

    deliver(agent, *[lambda: None] * 5, draw)
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
        deliver(agent, agent.gone.set if when == "before" else lambda: None)


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

    deliver(agent, *[lambda: None] * 6, send)
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
    deliver(agent, *[lambda: None] * 4, lambda: setattr(agent, "input", "empty"))
    assert agent.typed == [PASTED, b"\r"]
    assert agent.stages.count(DeliveryStage.GIVING) == 2
