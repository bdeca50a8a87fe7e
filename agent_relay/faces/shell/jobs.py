"""What an agent does between two turns: a handoff document, and the handoff that takes it along."""

import os
from collections.abc import Callable
from typing import Protocol

from agent_relay.client.narration import STARTED, WRITING_LIMIT_S
from agent_relay.domain.errors import NobodyAvailableError, RelayError
from agent_relay.faces.shell.conversation import Conversation

GO_ON = "Go on with the next step of the handoff."
"""What a successor is asked where the person named nothing to look at first."""


class Ask(Protocol):
    """One question to the daemon."""

    def __call__(self, op: str, /, *, limit_s: float = ..., **fields: object) -> dict[str, object]:
        """The answer. Raises RelayError."""
        ...


class Job(Protocol):
    """Something an agent does between two turns; both for threads."""

    @property
    def label(self) -> str:
        """What the person is told meanwhile."""
        ...

    def run(self, ask: Ask) -> str:
        """The line to show at its end. Raises RelayError."""
        ...

    def cancel(self, ask: Ask) -> None:
        """It should end soon; harmless when it has."""
        ...


class DocumentJob:
    """The agent writes a handoff document, then the next agent of the order has the conversation.

    `run` is for a thread; `send_first` is called with what the successor is asked.
    """

    label = "the agent writes a handoff document"

    def __init__(self, conversation: Conversation, focus: str, send_first: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._focus = focus
        self._send_first = send_first

    def run(self, ask: Ask) -> str:
        """The line to show. Raises RelayError where nobody can take over; nothing has changed then."""
        session, env = self._conversation.session, dict(os.environ)
        told = ask("narrate", limit_s=WRITING_LIMIT_S, session=session, focus=self._focus, env=env)
        if told.get("outcome") not in {"written", "unable"}:
            return str(told.get("message", ""))
        self._conversation.agent = find_next(ask, session)
        self._send_first(self._focus or GO_ON)
        return STARTED if told.get("outcome") == "written" else str(told.get("message", ""))

    def cancel(self, ask: Ask) -> None:
        """No document is written any more."""
        try:
            ask("narrate.cancel", session=self._conversation.session)
        except RelayError:
            # It has ended meanwhile.
            return


def find_next(ask: Ask, session: str) -> str:
    """The agent a handoff would go to now. Raises NobodyAvailableError."""
    plan = ask("handoff.plan", session=session, needs=["headless"], env=dict(os.environ))
    if not plan.get("successor"):
        raise NobodyAvailableError("nobody can take over now", hint="See: /handoff plan")
    return str(plan["successor"])
