"""Run the turns of a shell: give what waits to the agent, one message after the other.

Each turn is followed to its end on a thread, whether it is a new one or one that was begun before.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from agent_relay.client.connection import Connection
from agent_relay.client.turn_follower import TurnFollower
from agent_relay.domain.errors import AtWorkError, RelayError, WrongUseError
from agent_relay.faces.render.output import plain
from agent_relay.faces.render.turn_view import TurnView
from agent_relay.faces.shell._agent_switch import Job, PendingSwitch, PreferredReturn
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._message_queue import NO_MESSAGE, MessageQueue, QueuedMessage, QueueState
from agent_relay.faces.shell._terminal import Scrollback, call_in_loop, run_in_background
from agent_relay.redact.text import redact_text

Event = Mapping[str, object]

_SHOWN_EVENTS = frozenset(("turn", "leg", "usage", "handoff", "end"))
"""The events that change what is shown around the prompt."""


def build_turn(
    conversation: Conversation,
    connect: Callable[[], Connection],
    view: TurnView,
    *,
    message: QueuedMessage,
    position: Mapping[str, object] | None,
    on_event: Callable[[Event], None],
    is_shown: bool = False,
) -> Callable[[], Event]:
    """Build what follows the turn of `message`, or the running one from `position` on; for a thread.

    It returns the turn's last event. The loop calls `on_event` with what changes the conversation. With
    `is_shown` the message is on the terminal already.
    """
    loop = asyncio.get_running_loop()

    def show(event: Event) -> None:
        if event.get("type") in _SHOWN_EVENTS:
            call_in_loop(loop, partial(on_event, event))
        # A terminal that is gone ends the shell, not the turn.
        with suppress(OSError):
            view.show(event)

    follower = TurnFollower(connect, show, signals=())
    request = conversation.build_request(message.text) | {"message": message.id}
    agent, session = conversation.agent, conversation.session

    def work() -> Event:
        try:
            if position is not None:
                return follower.rejoin(session, position)
            if not is_shown:
                with suppress(OSError):
                    view.begin(agent, message.text)
            return follower.run(request)
        finally:
            with suppress(OSError):
                view.end()

    return work


_ASK_LIMIT_S = 30.0
_AGAIN_S = 0.3
_MOST_RACES = 20
"""Times in a row that another shell may be first; then the error of the session at work is shown."""

Prepare = Callable[[Callable[[str], None], threading.Event], None]
"""Frees the session for a turn, on a thread; reports what it waits for, gives up once the event is set."""


class Turns:
    """Sends queued messages to the agents, unless they are held back.

    `queue_state` knows why they are. `label` and `since` say what else is done, and from when on (monotonic).
    `prepare` frees the session before a turn, or raises RelayError; `preferred` decides about the return to
    an agent that gave way to a limit.
    """

    def __init__(
        self,
        conversation: Conversation,
        queue: MessageQueue,
        *,
        connect: Callable[[], Connection],
        view: TurnView,
        scrollback: Scrollback,
        changed: Callable[[], None],
        prepare: "Prepare",
        preferred: PreferredReturn,
    ) -> None:
        self._conversation = conversation
        self._queue = queue
        self._connect = connect
        self._view = view
        self._scrollback = scrollback
        self._changed = changed
        self._wake = asyncio.Event()
        self._position: Mapping[str, object] | None = None
        self.is_stopping = False
        self._sending_id = ""
        self._cancelled = threading.Event()
        self._idle = asyncio.Event()
        self._prepare = prepare
        self.preferred = preferred
        self.queue_state = QueueState(
            queue, preferred, changed=changed, go_on=self.go_on, say=partial(self._show, hint="")
        )
        self.pending_switch = PendingSwitch(conversation, self.ask, self._show)
        self.is_waiting = self.is_ending = self.is_working = False
        self.label = ""
        self.since = 0.0
        self._jobs: list[Job] = []
        self._job: Job | None = None

    def send(self, message: str) -> None:
        """Send `message` to the agent after everything that waits."""
        self._queue.add(message)
        self.go_on()

    def send_first(self, message: str) -> None:
        """Send `message` to the agent before everything that waits."""
        self._queue.put_first(message)
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
        self.queue_state.release()
        self._wake.set()

    def rejoin(self, position: Mapping[str, object]) -> None:
        """Show the session's turn that was begun before, from `position` on."""
        self._position = position
        self._wake.set()

    def queue_resting(self, prompt: str, moment: str) -> None:
        """Queue the prompt of the turn that rests until `moment`, unless it waits already."""
        is_there = any(redact_text(message).text == redact_text(prompt).text for message in self._queue)
        self.queue_state.rest("" if is_there else prompt, moment)

    def list_waiting(self) -> list[str]:
        """Return the messages no agent has been given, without the one that is being sent now."""
        waiting = list(self._queue)
        return waiting[1:] if self._sending_id else waiting

    @property
    def is_busy(self) -> bool:
        """True if an agent works, or is about to."""
        return self.is_working or bool(self._jobs or (len(self._queue) and not self.queue_state.why))

    async def stop(self) -> None:
        """Ask the running turn to end; its agent is ended politely, then firmly."""
        if not self.is_busy or self.is_stopping:
            return
        self._cancelled.set()
        self.pending_switch.forget()
        if self.is_waiting:
            return
        if self._sending_id or not self.is_working:
            # It is not known yet which turn that is.
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
            self._show_error(error)
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
            self._cancelled.set()
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
            while self._jobs or self._position is not None or (len(self._queue) and not self.queue_state.why):
                await (self._do_job(self._jobs.pop(0)) if self._jobs else self._take_turn())

    async def _do_job(self, job: Job) -> None:
        self.is_working, self.is_stopping, self._job = True, False, job
        self.label, self.since = job.label, time.monotonic()
        self._changed()
        try:
            line = await run_in_background(partial(job.run, self.ask))
            if line:
                self._show(line, "")
        except RelayError as error:
            self._show_error(error)
        finally:
            self.is_working, self._job, self.label = False, None, ""
            self._cancelled.clear()
            self._changed()

    async def _take_turn(self) -> None:
        self._check_preferred()
        position, self._position = self._position, None
        self.is_working, self.is_stopping = True, False
        message = NO_MESSAGE if position is not None else self._queue.first
        self._sending_id = message.id
        self._changed()
        try:
            last = await self._ask_in_turn(message, position)
            if last is None:
                self.queue_state.hold("stopped in time")
            else:
                self.queue_state.settle(last, message.text)
        except RelayError as error:
            self._show_error(error)
            self.queue_state.hold("the message was refused")
        finally:
            self.is_working = self.is_ending = False
            self._sending_id = ""
            self._cancelled.clear()
            self._idle.set()
            self._changed()

    async def _ask_in_turn(
        self, message: QueuedMessage, position: Mapping[str, object] | None
    ) -> Event | None:
        """Return the turn's last event, `None` if it was stopped before it began. Raise RelayError.

        Another shell may see the session free at the same moment and be first: its turn is waited for, too.
        """
        build = partial(build_turn, self._conversation, self._connect, self._view, on_event=self._apply)
        for race in range(_MOST_RACES):
            if position is None:
                await self._free_session()
            if position is None and self._cancelled.is_set():
                return None
            try:
                return await run_in_background(build(message=message, position=position, is_shown=race > 0))
            except AtWorkError:
                if position is not None or race + 1 == _MOST_RACES:
                    raise
            await asyncio.sleep(_AGAIN_S)
        raise AssertionError("unreachable")

    async def _free_session(self) -> None:
        """Free the session for a turn. Raise RelayError if that fails or was cancelled."""
        loop = asyncio.get_running_loop()

        def tell(label: str) -> None:
            call_in_loop(loop, partial(self._label_wait, label))

        self.is_waiting, self.since = True, time.monotonic()
        try:
            await run_in_background(partial(self._prepare, tell, self._cancelled))
        finally:
            self.is_waiting, self.label = False, ""
            self._idle.set()

    def _check_preferred(self) -> None:
        """Offer the agent that gave way to a limit and is available again, or give it this turn."""
        if line := self.preferred.check():
            self._show(line, "")

    def _label_wait(self, label: str) -> None:
        if self.is_waiting:
            self.label = label
            self._changed()

    def _apply(self, event: Event) -> None:
        self._conversation.apply(event)
        if event.get("type") == "end":
            self.is_ending = True
            if message := self.pending_switch.settle():
                self._queue.put_first(message)
        if event.get("reason") == "rate_limit":
            self.preferred.note_limit(str(event.get("from_agent", "")))
        if event.get("type") == "turn":
            # The journal has it now.
            given, self._sending_id = self._sending_id, ""
            self._queue.drop(str(event.get("message") or given))
            if given and self._cancelled.is_set():
                self._stopping = asyncio.create_task(self.stop(), name="stop")
        self._changed()

    def _show(self, sentence: str, hint: str) -> None:
        self._scrollback.paint(f"{plain(sentence)}\n" + (f"  {plain(hint)}\n" if hint else ""))

    def _show_error(self, error: RelayError) -> None:
        self._show(f"agent-relay: {error.sentence}", error.hint)
