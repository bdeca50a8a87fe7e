"""The turns of a shell: what waits is given to the agent, one message after the other."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from agent_relay.client.turn_loop import Asking, TurnLoop
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.cli.printing import plain
from agent_relay.faces.rendering.turn_view import TurnView
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.faces.shell.paper import Paper
from agent_relay.faces.shell.typed_ahead import TypedAhead

Event = Mapping[str, object]

_ASK_LIMIT_S = 30.0
_HEARD = frozenset(("turn", "leg", "usage", "end"))
"""The events that change what stands around the prompt."""
_WHY_HELD = {"resting": "everybody rests", "stopped": "the turn was stopped"}


class Turns:
    """Gives what was typed to the agents, as long as nothing holds it.

    `why_held` is why what waits is not sent by itself; empty where it is. `prepare` is awaited before a turn:
    the session is free for one then, or it raises RelayError.
    """

    def __init__(
        self,
        conversation: Conversation,
        typed: TypedAhead,
        *,
        connect: Callable[[], Asking],
        view: TurnView,
        paper: Paper,
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
        self._is_stopping = self._is_giving = False
        self.prepare: Callable[[], object] | None = None
        self.is_working = False
        self.why_held = ""

    def send(self, message: str) -> None:
        """`message` is given to the agent after everything that waits."""
        self._typed.add(message)
        self.go_on()

    def go_on(self) -> None:
        """What waits is sent, whatever held it."""
        self.why_held = ""
        self._changed()
        self._wake.set()

    def hold(self, why: str) -> None:
        """What waits stays where it is until the person says so."""
        self.why_held = why if len(self._typed) else ""
        self._changed()

    def rejoin(self, told: Mapping[str, object]) -> None:
        """The turn of the session that was begun before is shown from `told` on."""
        self._told = told
        self._wake.set()

    def list_waiting(self) -> list[str]:
        """The messages nobody has been given; the one that is being given now is on its way."""
        waiting = list(self._typed)
        return waiting[1:] if self._is_giving else waiting

    async def stop(self) -> None:
        """The running turn is asked to end; its agent leaves politely, then firmly."""
        session = self._conversation.session
        if not self.is_working or not session or self._is_stopping:
            return
        self._is_stopping = True
        try:
            await asyncio.to_thread(self.ask, "session.stop", session=session)
        except WrongUseError:
            # It ended meanwhile.
            return

    def ask(self, op: str, /, *, limit_s: float = _ASK_LIMIT_S, **fields: object) -> dict[str, object]:
        """The daemon's answer, over a connection of its own. Raises RelayError."""
        connection = self._connect()
        try:
            return connection.request(op, limit_s=limit_s, **fields)
        finally:
            connection.close()

    async def run(self) -> None:
        """What waits is sent, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._told is not None or (len(self._typed) and not self.why_held):
                await self._take_turn()

    async def _take_turn(self) -> None:
        told, self._told = self._told, None
        self.is_working, self._is_stopping = True, False
        message = "" if told is not None else self._typed.first
        self._is_giving = bool(message)
        self._changed()
        try:
            if told is None and self.prepare is not None:
                await asyncio.to_thread(self.prepare)
            self._settle(await _run_aside(self._build_work(message, told)), message)
        except RelayError as error:
            self._note(error.sentence, error.hint)
            self.hold("not sent")
        finally:
            self.is_working = self._is_giving = False
            self._changed()

    def _build_work(self, message: str, told: Mapping[str, object] | None) -> Callable[[], Event]:
        """What follows the turn to its end, on a thread of its own."""
        loop, view, conversation = asyncio.get_running_loop(), self._view, self._conversation

        def show(event: Event) -> None:
            if event.get("type") in _HEARD:
                _tell(loop, partial(self._hear, event))
            # A terminal that is gone ends the shell, not the turn.
            with suppress(OSError):
                view.show(event)

        follower = TurnLoop(self._connect, show, heeds=())
        wish, agent, session = conversation.build_wish(message), conversation.agent, conversation.session

        def work() -> Event:
            try:
                if told is not None:
                    return follower.rejoin(session, told)
                with suppress(OSError):
                    view.begin(agent, message)
                return follower.run(wish)
            finally:
                with suppress(OSError):
                    view.end()

        return work

    def _hear(self, event: Event) -> None:
        self._conversation.hear(event)
        if event.get("type") == "turn" and self._is_giving:
            # The journal has it now.
            self._is_giving = False
            self._typed.drop_first()
        self._changed()

    def _settle(self, last: Event, message: str) -> None:
        """What the turn's end means for what waits."""
        outcome = last.get("outcome")
        if outcome == "done":
            return
        if outcome == "resting" and message:
            self._typed.put_first(message)
        self.hold(_WHY_HELD.get(str(outcome), "the turn has failed"))

    def _note(self, sentence: str, hint: str) -> None:
        self._paper.paint(f"agent-relay: {plain(sentence)}\n" + (f"  {plain(hint)}\n" if hint else ""))


def _run_aside(work: Callable[[], Event]) -> "asyncio.Future[Event]":
    """What `work` returns or raises, done on a thread that a leaving process does not wait for."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Event] = loop.create_future()

    def settle(error: BaseException | None, last: Event) -> None:
        if not over.cancelled():
            if error is None:
                over.set_result(last)
            else:
                over.set_exception(error)

    def run() -> None:
        try:
            last = work()
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits for the turn
            _tell(loop, partial(settle, error, {}))
        else:
            _tell(loop, partial(settle, None, last))

    threading.Thread(target=run, name="turn", daemon=True).start()
    return over


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        # The shell is gone, and nobody waits.
        return
