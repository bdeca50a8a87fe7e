"""An agent's leg as delivery sees it: it shows what it is told to, and keeps what was typed into it."""

import asyncio
from collections.abc import Callable

from agent_relay.domain.documents.adapter import Deliver
from agent_relay.domain.session import Leg
from agent_relay.engine.text_delivery import TurnInput, deliver_text
from agent_relay.session.views.waiting import DeliveryStage
from agent_relay.terminal.holder_client import HolderError
from tests.support.monitored import RelayPrompt
from tests.support.scripted_host import NOW

DELIVER = Deliver(packet_by="paste", opening="Go on.", submit_delay_ms=1, packet_escapes={"@": "(at)"})
RECORDED = "see (at)home\n\nGo on @once."
"""The same as the agent's records have it."""
PASTED = b"\x1b[200~see (at)home\n\nGo on @once.\x1b[201~"


class Agent:
    """The leg: what it shows, and what was typed into it.

    `reacts` is called with everything typed; `refusals` is how often somebody is in the middle of a line,
    `key_age_s` how long ago a key was pressed.
    """

    def __init__(self, *, refusals: int = 0) -> None:
        self.leg = Leg("L", "ann", 1, NOW)
        self.gone = asyncio.Event()
        self.state = "ready"
        self.input = "empty"
        self.sees_input = True
        self.own = RelayPrompt(tells_words=True)
        self.typed: list[bytes] = []
        self.note: str | None = ""
        self.hears_prompts = True
        self.hears_old_prompts = True
        self.is_listening = False
        self.holds: list[bool] = []
        self.refusals = refusals
        self.key_age_s: float | None = None
        self.reacts: Callable[[bytes], None] = self.take
        self.says_working = 0
        self.looks = 0
        self.told: list[str] = []
        self.can_hold = False
        self.stages: list[DeliveryStage] = []
        self.meanwhile: list[Callable[[], None]] = []
        self._waited = 0

    @property
    def holder(self) -> "Agent":
        return self

    async def request(self, op: str) -> dict[str, object]:
        assert op == "status"
        return {"key_age_s": self.key_age_s}

    async def read_note(self) -> str | None:
        return self.note

    async def type(
        self, data: bytes, *, unless_typed: bool = False, goes_on: bool = False, note: str | None = None
    ) -> None:
        if unless_typed and self.refusals:
            self.refusals -= 1
            raise HolderError("somebody is in the middle of a line", why="typed")
        if data:
            self.typed.append(data)
        self.note = self.note if note is None or self.note is None else note
        self.holds.append(goes_on)
        if data:
            self.reacts(data)

    def take(self, data: bytes) -> None:
        if data == b"\r":
            self.state, self.input = "busy", "empty"
            self.own.hear_prompt(RECORDED)
        else:
            self.input = "typed"

    def show(self, state: str = "", line: str = "") -> None:
        """It shows this from now on; what is not named stays."""
        self.state, self.input = state or self.state, line or self.input

    def once(self, key: str, state: str = "", line: str = "") -> None:
        """It shows this at its first `paste` or `return` instead of taking it, and takes what comes then."""

        def react(data: bytes) -> None:
            if (data == b"\r") is (key == "return"):
                self.reacts = self.take
                self.show(state, line)
            else:
                self.take(data)

        self.reacts = react

    def drop(self, line: str = "empty") -> None:
        """From now on it drops what is submitted, and works on something else above that line."""

        def react(data: bytes) -> None:
            self.show(*(("busy", line) if data == b"\r" else ("ready", "typed")))

        self.reacts = react

    def becomes(
        self, state: str = "", line: str = "", *, given: list[bytes] | None = None
    ) -> Callable[[], None]:
        """What happens meanwhile: it shows this, having been given no more than that by then."""

        def happen() -> None:
            assert given is None or self.typed == given
            self.show(state, line)

        return happen

    async def settle_evidence(self) -> None:
        self.looks += 1

    async def announce(self, stage: DeliveryStage) -> bool:
        """Whether keys wait, as the holder of this agent can have them do."""
        self.stages.append(stage)
        return self.can_hold and stage in {DeliveryStage.GIVING, DeliveryStage.SUBMITTED}

    async def hear(self, text: str) -> None:
        """What people are told of the wait."""
        self.told.append(text)

    def say_working(self) -> None:
        self.says_working += 1

    async def wait_until(self, is_so: Callable[[], bool], *, limit_s: float) -> bool:
        """Time passes by looks, so that a busy machine changes nothing; at each tenth something happens."""
        for _ in range(200 if limit_s > 10 else 20):
            if is_so():
                return True
            await asyncio.sleep(0)
            self._waited += 1
            if self._waited % 10 == 0 and self.meanwhile:
                self.meanwhile.pop(0)()
        return is_so()


def deliver(agent: Agent, *meanwhile: Callable[[], None] | int, how: Deliver = DELIVER) -> None:
    """The text is delivered while things happen; a number is so many moments in which nothing does."""
    agent.meanwhile = []
    for one in meanwhile:
        agent.meanwhile += [lambda: None] * one if isinstance(one, int) else [one]
    text = TurnInput("H", "see @home", "Go on @once.")
    asyncio.run(deliver_text(agent, how, text, tell=agent.hear, announce=agent.announce))
