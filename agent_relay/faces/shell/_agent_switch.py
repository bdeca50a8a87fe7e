"""Choice of the agent for the next turn: document handoffs, pending switches, and an agent's return.

`PendingSwitch` is an agent chosen while another one was taking over; it is requested again when that is done.
`PreferredReturn` offers an agent that gave way to a limit once its window has reset, or gives it the next
turn.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol

from agent_relay.client.connection import Connection
from agent_relay.client.pending_answers import STARTED, WRITING_LIMIT_S
from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.errors import NobodyAvailableError, RelayError, WrongUseError
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._terminal import run_in_background
from agent_relay.store.session_index import find_ledger_trouble, read_resting
from agent_relay.system.clock import Clock, LocalZone, SystemClock

GO_ON = "Go on with the next step of the handoff."
"""The successor's first message if the person named nothing to look at first."""


class Ask(Protocol):
    """Sends one request to the daemon."""

    def __call__(self, op: str, /, *, limit_s: float = ..., **fields: object) -> dict[str, object]:
        """Return the answer; raise RelayError as the daemon did."""
        ...


class Job(Protocol):
    """Something an agent does between two turns; `run` and `cancel` are for threads."""

    @property
    def label(self) -> str:
        """The text the person is shown meanwhile."""
        ...

    def run(self, ask: Ask) -> str:
        """Do the job and return the line to show at its end. Raise RelayError if it fails."""
        ...

    def cancel(self, ask: Ask) -> None:
        """Ask for an early end; harmless when it is over."""
        ...


class DocumentJob:
    """Has the agent write a handoff document, then gives the conversation to the next agent of the order.

    `run` is for a thread; `send_first` is called with the successor's first message.
    """

    label = "the agent writes a handoff document"

    def __init__(self, conversation: Conversation, focus: str, send_first: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._focus = focus
        self._send_first = send_first

    def run(self, ask: Ask) -> str:
        """Hand over with a document; return the line to show.

        Raises RelayError if no agent can take over; nothing has changed then.
        """
        session, env = self._conversation.session, dict(os.environ)
        answer = ask("narrate", limit_s=WRITING_LIMIT_S, session=session, focus=self._focus, env=env)
        if answer.get("outcome") not in {"written", "unable"}:
            return str(answer.get("message", ""))
        self._conversation.agent = find_next(ask, session)
        self._send_first(self._focus or GO_ON)
        return STARTED if answer.get("outcome") == "written" else str(answer.get("message", ""))

    def cancel(self, ask: Ask) -> None:
        """Cancel the writing of the document."""
        try:
            ask("narrate.cancel", session=self._conversation.session)
        except RelayError:
            # It has ended meanwhile.
            return


def find_next(ask: Ask, session: str) -> str:
    """Return the agent a handoff would go to now. Raise NobodyAvailableError if there is none."""
    plan = ask("handoff.plan", session=session, needs=["headless"], env=dict(os.environ))
    if not plan.get("successor"):
        raise NobodyAvailableError("no agent is available now", hint="See: /handoff plan")
    return str(plan["successor"])


_AGAIN_S = 0.5

Say = Callable[[str, str], None]
"""Shows a sentence and a hint."""


class PendingSwitch:
    """At most one choice of an agent that could not take over at once; `agent` is empty if there is none."""

    def __init__(self, conversation: Conversation, ask: Ask, say: Say) -> None:
        self._conversation = conversation
        self._ask = ask
        self._say = say
        self._cancelled = threading.Event()
        self._asking: asyncio.Task[None] | None = None
        self._message = ""
        self.agent = ""

    def keep(self, agent: str, message: str) -> None:
        """Give the running turn to `agent` once no handoff is under way; `message` is its first message."""
        self.forget()
        self.agent, self._message, self._cancelled = agent, message, threading.Event()
        self._asking = asyncio.create_task(self._pass_on(self._cancelled), name="pending-switch")

    def forget(self) -> None:
        """Cancel the pending switch."""
        self._cancelled.set()
        self.agent = self._message = ""

    def settle(self) -> str:
        """Give the next message to the chosen agent, because the turn is over.

        Returns the message to send first; empty for none.
        """
        agent, message = self.agent, self._message
        self.forget()
        if not agent:
            return ""
        self._conversation.agent = agent
        if not message:
            self._say(f"→ Your next message goes to {agent}, as you chose.", "")
        return message

    async def _pass_on(self, cancelled: threading.Event) -> None:
        agent, session = self.agent, self._conversation.session
        work = partial(ask_when_free, self._ask, session, agent, self._message, cancelled)
        try:
            is_passed = await run_in_background(work)
        except RelayError as error:
            if not cancelled.is_set():
                self.forget()
                self._say(f"agent-relay: {agent} has not taken over: {error.sentence}", error.hint)
            return
        if is_passed and not cancelled.is_set():
            self.forget()


def ask_when_free(ask: Ask, session: str, agent: str, message: str, cancelled: threading.Event) -> bool:
    """Give the session's turn to `agent` once no handoff is under way; return whether it has it.

    For a thread. False if the turn is over, or `cancelled` was set first. Raises RelayError if the daemon
    refuses.
    """
    while not cancelled.is_set():
        if not _find_handoff(ask, session):
            try:
                return ask("use", session=session, agent=agent, focus=message, turn=True)["passed"] is True
            except WrongUseError:
                # Another handoff may have begun between the two questions.
                if not _find_handoff(ask, session):
                    raise
        cancelled.wait(_AGAIN_S)
    return False


def _find_handoff(ask: Ask, session: str) -> str:
    """Return how far the session's handoff is; empty if none is under way."""
    return str(ask("where", session=session).get("handoff", ""))


_AFTER_S = 1.0


class PreferredReturn:
    """Remembers an agent that gave way to a limit, to return to it after its reset.

    `read_config` gives the user's configuration as it is now; `ledger` is the file of who rests until when.
    `clock` is the machine's if none is given.
    """

    def __init__(
        self,
        conversation: Conversation,
        read_config: Callable[[], UserConfig],
        ledger: str,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._conversation = conversation
        self._read_config = read_config
        self._ledger = ledger
        self._left = ""

    def note_limit(self, agent: str) -> None:
        """Note that `agent` gave way to a limit; the first of several is the one to return to."""
        self._left = self._left or agent

    def forget(self) -> None:
        """Return to no agent, because the person chose one."""
        self._left = ""

    @property
    def goes_on(self) -> bool:
        """True if the user wants work to go on by itself at the first reset."""
        config = self._read_config()
        return config.resume_at_reset is True and not config.build_quiet_hours().always

    def count_wait(self, moment: str) -> float | None:
        """Return the seconds until a moment (ISO 8601) has passed; `None` if it is none or has no zone."""
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return None
        return max(0.0, (at - self._clock.now()).total_seconds() + _AFTER_S) if at.tzinfo else None

    def put_off(self, moment: str) -> str:
        """Return the moment (ISO 8601), or the end of its quiet hours if work goes on by itself."""
        if self.count_wait(moment) is None or not self.goes_on:
            return moment
        at = datetime.fromisoformat(moment)
        opens = self._read_config().build_quiet_hours().find_next_allowed(at, LocalZone())
        return moment if opens is None or opens == at else opens.isoformat()

    def check(self) -> str:
        """Return the line to show about an agent that is available again; empty for none.

        With `return = "auto"` that agent has the next turn.
        """
        agent, wish = self._left, self._read_config().return_
        if not agent or wish == "off" or find_ledger_trouble(self._ledger):
            return ""
        if agent in {str(rest["agent"]) for rest in read_resting(self._ledger)}:
            return ""
        self._left = ""
        if agent == self._conversation.agent:
            return ""
        if wish == "offer":
            return f"→ {agent} is available again: /use {agent}"
        self._conversation.agent = agent
        return f"→ {agent} is available again; your next message goes to it."


_ENDING_LIMIT_S = 60.0
_LOOK_S = 1.0
_DOES = (("on its own screen", "/attach"), ("on another turn of this session", "/resume"))
_OVER = frozenset(("ended", "gone", ""))
_WAITS = frozenset(("ready", "resting", "stopping"))


def free_session(
    conversation: Conversation,
    connect: Callable[[], Connection],
    tell: Callable[[str], None],
    cancelled: threading.Event,
) -> None:
    """Wait until no agent works in the session; end an agent that waits at its own screen politely.

    An agent that works there is waited for, and so is a turn another shell has begun; `tell` is called with
    what is waited for. The agent that has the session then has the next turn, unless one was chosen here. For
    a thread. Raises WrongUseError when `cancelled` is set meanwhile.
    """
    view = conversation.refresh()
    if not view or view["state"] in _OVER:
        conversation.follow(view)
        return
    with connect() as connection:
        connection.subscribe()
        place = _find_place(connection, conversation.session)
        while place["headless"] is True or (place["leg"] and place["state"] not in _WAITS):
            what, see = _DOES[place["headless"] is True]
            tell(f"{place['agent']} works {what} ({see} shows it)")
            if cancelled.is_set():
                raise WrongUseError(f"{place['agent']} is at work {what}", hint=f"See it: {see}")
            _listen(connection)
            place = _find_place(connection, conversation.session)
        conversation.follow(conversation.refresh())
        if place["leg"] or place["state"] == "stopping":
            _end(connection, conversation.session)


def _end(connection: Connection, session: str) -> None:
    connection.request("session.stop", session=session)
    deadline = time.monotonic() + _ENDING_LIMIT_S
    while _find_place(connection, session)["state"] not in _OVER:
        if time.monotonic() > deadline:
            raise RelayError("the agent has not left its screen yet", hint="Enter tries again")
        _listen(connection)


def _listen(connection: Connection) -> None:
    """Wait until something has changed, at most `_LOOK_S`."""
    for _ in connection.notices(limit_s=_LOOK_S):
        return


def _find_place(connection: Connection, session: str) -> dict[str, object]:
    try:
        return connection.request("where", session=session)
    except WrongUseError:
        # No daemon has it at work.
        return {"state": "ended", "agent": "", "leg": "", "headless": False}
