"""Getting text into an agent: once, whole, and never into somebody's line or a question."""

import asyncio
from collections.abc import Callable

import pytest

from agent_relay.app.delivery import deliver_text, type_line
from agent_relay.domain.adapter import Deliver
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg
from agent_relay.system.holder_client import HolderError
from tests.support.scripted_host import NOW

DELIVER = Deliver(packet_by="paste", opening="Go on.", submit_delay_ms=1, packet_escapes={"@": "(at)"})
PASTED = b"\x1b[200~see (at)home\n\nGo on @once.\x1b[201~"


class Agent:
    """An agent's leg as delivery sees it: what it shows, and what was typed into it.

    `reacts` is called with everything typed; `refusals` is how often somebody is in the middle of a line.
    """

    def __init__(self, *, refusals: int = 0) -> None:
        self.leg = Leg("L", "ann", 1, NOW)
        self.gone = asyncio.Event()
        self.state = "ready"
        self.input = "empty"
        self.sees_input = True
        self.prompted = False
        self.typed: list[bytes] = []
        self.holds: list[bool] = []
        self.refusals = refusals
        self.reacts: Callable[[bytes], None] = self.take
        self.says_working = 0
        self.looks = 0

    @property
    def holder(self) -> "Agent":
        return self

    async def type(self, data: bytes, *, unless_typed: bool = False, goes_on: bool = False) -> None:
        if unless_typed and self.refusals:
            self.refusals -= 1
            raise HolderError("somebody is in the middle of a line", why="typed")
        self.typed.append(data)
        self.holds.append(goes_on)
        self.reacts(data)

    def take(self, data: bytes) -> None:
        if data == b"\r":
            self.state, self.input, self.prompted = "busy", "empty", True
        else:
            self.input = "typed"

    async def settle_evidence(self) -> None:
        self.looks += 1

    def is_working(self) -> bool:
        return self.gone.is_set() or self.prompted or self.state == "busy"

    def say_working(self) -> None:
        self.says_working += 1

    async def wait_until(self, is_so: Callable[[], bool], *, limit_s: float) -> bool:
        """Waits no longer than a test may take, whatever the limit."""
        for _ in range(200 if limit_s > 10 else 20):
            if is_so():
                return True
            await asyncio.sleep(0.005)
        return is_so()


def deliver(agent: Agent, *meanwhile: Callable[[], None]) -> None:
    """The text is delivered while things happen."""

    async def main() -> None:
        for number, happens in enumerate(meanwhile):
            asyncio.get_running_loop().call_later(0.05 * (number + 1), happens)
        await deliver_text(agent, DELIVER, packet="see @home", prompt="Go on @once.")

    asyncio.run(main())


def test_a_packet_and_its_prompt_are_one_paste_and_one_return() -> None:
    """Two pastes would be two turns; a mark in a packet must not act, one the user wrote must."""
    agent = Agent()
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.says_working == 1


def test_one_of_the_agents_own_commands_is_typed_in_one_piece() -> None:
    """Keys between it and its return would make another command of it."""
    agent = Agent()
    asyncio.run(type_line(agent, DELIVER, "/compact"))
    assert agent.typed == [b"/compact", b"\r"]
    assert agent.holds == [True, False]


def test_a_leg_that_took_a_prompt_before_is_left_alone() -> None:
    """A daemon that crashed after delivering must not have it delivered again."""
    agent = Agent()
    agent.prompted = True
    deliver(agent)
    assert agent.typed == []
    assert agent.says_working == 1


def test_a_line_somebody_types_is_waited_for() -> None:
    """Text in the middle of a person's sentence would be sent in their name."""
    agent = Agent(refusals=2)
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]
    assert agent.looks == 3


def test_a_key_that_answered_a_question_does_not_hold_the_packet_up_for_ever() -> None:
    """`1` without a return leaves a count of one behind, and an input line that is plainly empty."""
    agent = Agent(refusals=1000)
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_no_return_is_sent_into_a_question_that_came_up_meanwhile() -> None:
    """It would say yes in the user's place."""
    agent = Agent()

    def ask(data: bytes) -> None:
        agent.state = "asking" if data != b"\r" else "busy"
        agent.input = "hidden" if data != b"\r" else "empty"

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


def test_an_input_line_that_cannot_be_told_holds_nothing_up_for_long() -> None:
    """A new version may paint it otherwise; its work must still go on."""
    agent = Agent()
    agent.input = "hidden"
    deliver(agent)
    assert agent.typed == [PASTED, b"\r"]


def test_a_swallowed_return_is_sent_again_only_while_the_text_still_stands() -> None:
    """Agents swallow a return that comes too soon after a paste."""
    agent = Agent()
    returns = 0

    def swallow(data: bytes) -> None:
        nonlocal returns
        agent.input = "typed"
        returns += data == b"\r"
        if returns == 2:
            agent.state = "busy"

    agent.reacts = swallow
    deliver(agent)
    assert agent.typed == [PASTED, b"\r", b"\r"]


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
