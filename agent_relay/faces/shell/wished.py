"""An agent chosen while another one was taking over: asked for again when that is through."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.shell.aside import run_aside
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.faces.shell.jobs import Ask

_AGAIN_S = 0.5

Say = Callable[[str, str], None]
"""Shows a sentence and a hint."""


class Wished:
    """At most one choice that could not be had at once; `agent` is empty where there is none."""

    def __init__(self, conversation: Conversation, ask: Ask, say: Say) -> None:
        self._conversation = conversation
        self._ask = ask
        self._say = say
        self._unwanted = threading.Event()
        self._asking: asyncio.Task[None] | None = None
        self._message = ""
        self.agent = ""

    def keep(self, agent: str, message: str) -> None:
        """The running turn is `agent`'s once nobody takes over; `message` is what it is told first."""
        self.forget()
        self.agent, self._message, self._unwanted = agent, message, threading.Event()
        self._asking = asyncio.create_task(self._pass_on(self._unwanted), name="wished")

    def forget(self) -> None:
        """Nobody is wished any more."""
        self._unwanted.set()
        self.agent = self._message = ""

    def settle(self) -> str:
        """The turn is over: who was wished has the next message. The one to send first, empty for none."""
        agent, message = self.agent, self._message
        self.forget()
        if not agent:
            return ""
        self._conversation.agent = agent
        if not message:
            self._say(f"→ {agent} has the next message, as you chose.", "")
        return message

    async def _pass_on(self, unwanted: threading.Event) -> None:
        agent, session = self.agent, self._conversation.session
        wish = partial(ask_when_free, self._ask, session, agent, self._message, unwanted)
        try:
            is_passed = await run_aside(wish)
        except RelayError as error:
            if not unwanted.is_set():
                self.forget()
                self._say(f"agent-relay: {agent} has not taken over: {error.sentence}", error.hint)
            return
        if is_passed and not unwanted.is_set():
            self.forget()


def ask_when_free(ask: Ask, session: str, agent: str, message: str, unwanted: threading.Event) -> bool:
    """Whether the session's turn is `agent`'s, asked for when nobody is taking over; for a thread.

    False where the turn is over, or `unwanted` was set first. Raises RelayError where it cannot be had.
    """
    while not unwanted.is_set():
        if not _find_handoff(ask, session):
            try:
                return ask("use", session=session, agent=agent, focus=message, turn=True)["passed"] is True
            except WrongUseError:
                # Another handoff may have begun between the two questions.
                if not _find_handoff(ask, session):
                    raise
        unwanted.wait(_AGAIN_S)
    return False


def _find_handoff(ask: Ask, session: str) -> str:
    """How far the session's handoff is; empty where none is under way."""
    return str(ask("where", session=session).get("handoff", ""))
