"""Run the turns of a shell: give what waits to the agent, one message after the other.

Each turn is followed to its end on a thread, whether it is a new one or one that was begun before.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.client.connection import Connection
from agent_relay.client.turn_follower import TurnFollower
from agent_relay.domain.errors import AtWorkError, RelayError, WrongUseError
from agent_relay.faces.render.output import plain
from agent_relay.faces.render.turn_view import TurnView
from agent_relay.faces.shell._background import call_in_loop, run_in_background
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._scrollback import Scrollback
from agent_relay.faces.shell.turns.agent_switch import Job, PendingSwitch
from agent_relay.faces.shell.turns.message_queue import NO_MESSAGE, MessageQueue, QueuedMessage, QueueState
from agent_relay.redact.text import redact_text

if TYPE_CHECKING:
    from agent_relay.faces.shell.turns.agent_switch import PreferredReturn


Event = Mapping[str, object]

_HEARD = frozenset(("turn", "leg", "usage", "handoff", "end"))
"""The events that change what is shown around the prompt."""


def build_turn(
    conversation: Conversation,
    connect: Callable[[], Connection],
    view: TurnView,
    *,
    message: QueuedMessage,
    told: Mapping[str, object] | None,
    hear: Callable[[Event], None],
    is_shown: bool = False,
) -> Callable[[], Event]:
    """Build what follows the turn of `message`, or the running one from `told` on; for a thread.

    It returns the turn's last event. `hear` is called by the loop with what changes the conversation. With
    `is_shown` the message is on the terminal already.
    """
    loop = asyncio.get_running_loop()

    def show(event: Event) -> None:
        if event.get("type") in _HEARD:
            call_in_loop(loop, partial(hear, event))
        # A terminal that is gone ends the shell, not the turn.
        with suppress(OSError):
            view.show(event)

    follower = TurnFollower(connect, show, signals=())
    wish = conversation.build_wish(message.text) | {"message": message.id}
    agent, session = conversation.agent, conversation.session

    def work() -> Event:
        try:
            if told is not None:
                return follower.rejoin(session, told)
            if not is_shown:
                with suppress(OSError):
                    view.begin(agent, message.text)
            return follower.run(wish)
        finally:
            with suppress(OSError):
                view.end()

    return work


_ASK_LIMIT_S = 30.0
_AGAIN_S = 0.3
_MOST_RACES = 20
"""How often in a row another shell may be first; after that the error of the session at work is shown."""

Prepare = Callable[[Callable[[str], None], threading.Event], None]
"""Frees the session for a turn, on a thread; reports what it waits for, gives up once the event is set."""


class Turns:
    """Sends what was typed to the agents, unless it is held back.

    `held` is why what waits is not sent by itself. `label` and `since` say what else is done, and from when
    on (monotonic). `prepare` is awaited before a turn and frees the session for it, or raises RelayError.
    """

    def __init__(
        self,
        conversation: Conversation,
        typed: MessageQueue,
        *,
        connect: Callable[[], Connection],
        view: TurnView,
        paper: Scrollback,
        changed: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._typed = typed
        self._connect = connect
        self._view = view
        self._paper = paper
        self._changed = changed
        self._wake = asyncio.Event()
        self._told: Mapping[str, object] | None = None
        self.is_stopping = False
        self._giving = ""
        self._unwanted = threading.Event()
        self._idle = asyncio.Event()
        self.prepare: Prepare | None = None
        self.held = QueueState(typed, changed=changed, go_on=self.go_on, say=partial(self._note, hint=""))
        self.wished = PendingSwitch(conversation, self.ask, self._note)
        self.is_waiting = self.is_ending = self.is_working = False
        self.label = ""
        self.since = 0.0
        self._jobs: list[Job] = []
        self._job: Job | None = None

    def send(self, message: str) -> None:
        """Send `message` to the agent after everything that waits."""
        self._typed.add(message)
        self.go_on()

    def send_first(self, message: str) -> None:
        """Send `message` to the agent before everything that waits."""
        self._typed.put_first(message)
        self.go_on()

    def do(self, job: Job) -> None:
        """Do `job` once no turn is under way, before everything that waits."""
        self._jobs.append(job)
        self._wake.set()

    def awaits(self, label: str) -> bool:
        """Return whether a job of that label is to be done or under way."""
        return self.label == label or any(job.label == label for job in self._jobs)

    def go_on(self) -> None:
        """Send what waits, whatever held it back."""
        self.held.release()
        self._wake.set()

    @property
    def why_held(self) -> str:
        """Why what waits is not sent by itself; empty if it is."""
        return self.held.why

    @property
    def returning(self) -> "PreferredReturn | None":
        """What decides about the return to an agent that gave way to a limit."""
        return self.held.returning

    def rejoin(self, told: Mapping[str, object]) -> None:
        """Show the session's turn that was begun before, from `told` on."""
        self._told = told
        self._wake.set()

    def take_up(self, prompt: str, moment: str) -> None:
        """Queue the prompt of the turn that rests until `moment`, unless it waits already."""
        is_there = any(redact_text(message).text == redact_text(prompt).text for message in self._typed)
        self.held.rest("" if is_there else prompt, moment)

    def list_waiting(self) -> list[str]:
        """Return the messages no agent has been given, without the one that is being sent now."""
        waiting = list(self._typed)
        return waiting[1:] if self._giving else waiting

    @property
    def is_busy(self) -> bool:
        """Whether an agent works, or is about to."""
        return self.is_working or bool(self._jobs or (len(self._typed) and not self.why_held))

    async def stop(self) -> None:
        """Ask the running turn to end; its agent is ended politely, then firmly."""
        if not self.is_busy or self.is_stopping:
            return
        self._unwanted.set()
        self.wished.forget()
        if self.is_waiting:
            return
        if self._giving or not self.is_working:
            # Nobody knows yet which turn that is.
            return
        self.is_stopping = True
        try:
            if self._job is not None:
                await asyncio.to_thread(self._job.cancel, self.ask)
            else:
                await asyncio.to_thread(self.ask, "session.stop", session=self._conversation.session)
        except WrongUseError:
            # It ended meanwhile.
            return
        except RelayError as error:
            self._complain(error)
            self.is_stopping = False

    async def wait_over(self) -> None:
        """Wait until a turn whose end was reported is over: its agent gone, its last output painted."""
        while self.is_ending:
            self._idle.clear()
            await self._idle.wait()

    async def give_up_waiting(self) -> None:
        """Cancel a turn that waits for the session to be free; its message stays first in the queue."""
        while self.is_waiting:
            self._idle.clear()
            self._unwanted.set()
            await self._idle.wait()

    def ask(self, op: str, /, *, limit_s: float = _ASK_LIMIT_S, **fields: object) -> dict[str, object]:
        """Send a request over a connection of its own and return the daemon's answer. Raise RelayError."""
        connection = self._connect()
        try:
            return connection.request(op, limit_s=limit_s, **fields)
        finally:
            connection.close()

    async def run(self) -> None:
        """Send what waits and do jobs, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._jobs or self._told is not None or (len(self._typed) and not self.why_held):
                await (self._do_job(self._jobs.pop(0)) if self._jobs else self._take_turn())

    async def _do_job(self, job: Job) -> None:
        self.is_working, self.is_stopping, self._job = True, False, job
        self.label, self.since = job.label, time.monotonic()
        self._changed()
        try:
            line = await run_in_background(partial(job.run, self.ask))
            if line:
                self._note(line, "")
        except RelayError as error:
            self._complain(error)
        finally:
            self.is_working, self._job, self.label = False, None, ""
            self._unwanted.clear()
            self._changed()

    async def _take_turn(self) -> None:
        self._come_back()
        told, self._told = self._told, None
        self.is_working, self.is_stopping = True, False
        message = NO_MESSAGE if told is not None else self._typed.first
        self._giving = message.id
        self._changed()
        try:
            last = await self._ask_in_turn(message, told)
            if last is None:
                self.held.hold("stopped in time")
            else:
                self.held.settle(last, message.text)
        except RelayError as error:
            self._complain(error)
            self.held.hold("the message was refused")
        finally:
            self.is_working = self.is_ending = False
            self._giving = ""
            self._unwanted.clear()
            self._idle.set()
            self._changed()

    async def _ask_in_turn(self, message: QueuedMessage, told: Mapping[str, object] | None) -> Event | None:
        """Return the turn's last event, `None` if it was stopped before it began. Raise RelayError.

        Another shell may see the session free at the same moment and be first: its turn is waited for, too.
        """
        build = partial(build_turn, self._conversation, self._connect, self._view, hear=self._hear)
        for race in range(_MOST_RACES):
            if told is None:
                await self._make_room()
            if told is None and self._unwanted.is_set():
                return None
            try:
                return await run_in_background(build(message=message, told=told, is_shown=race > 0))
            except AtWorkError:
                if told is not None or race + 1 == _MOST_RACES:
                    raise
            await asyncio.sleep(_AGAIN_S)
        raise AssertionError("unreachable")

    async def _make_room(self) -> None:
        """Free the session for a turn. Raise RelayError if that fails or was cancelled."""
        if self.prepare is None:
            return
        loop = asyncio.get_running_loop()

        def tell(label: str) -> None:
            call_in_loop(loop, partial(self._name_wait, label))

        self.is_waiting, self.since = True, time.monotonic()
        try:
            await run_in_background(partial(self.prepare, tell, self._unwanted))
        finally:
            self.is_waiting, self.label = False, ""
            self._idle.set()

    def _come_back(self) -> None:
        """Offer the agent that gave way to a limit and is available again, or give it this turn."""
        line = self.returning.look() if self.returning is not None else ""
        if line:
            self._note(line, "")

    def _name_wait(self, label: str) -> None:
        if self.is_waiting:
            self.label = label
            self._changed()

    def _hear(self, event: Event) -> None:
        self._conversation.hear(event)
        if event.get("type") == "end":
            self.is_ending = True
            self._settle_wish()
        if event.get("reason") == "rate_limit" and self.returning is not None:
            self.returning.note_limit(str(event.get("from_agent", "")))
        if event.get("type") == "turn":
            # The journal has it now.
            given, self._giving = self._giving, ""
            self._typed.drop(str(event.get("message") or given))
            if given and self._unwanted.is_set():
                self._stopping = asyncio.create_task(self.stop(), name="stop")
        self._changed()

    def _settle_wish(self) -> None:
        message = self.wished.settle()
        if message:
            self._typed.put_first(message)

    def _note(self, sentence: str, hint: str) -> None:
        self._paper.paint(f"{plain(sentence)}\n" + (f"  {plain(hint)}\n" if hint else ""))

    def _complain(self, error: RelayError) -> None:
        self._note(f"agent-relay: {error.sentence}", error.hint)
