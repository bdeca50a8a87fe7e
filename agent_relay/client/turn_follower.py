"""Follow headless turns to their end: show events, survive the daemon's end, stop on a Unix signal.

`WaitingTurn` also waits while every agent rests, and tries again at the first reset.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from types import FrameType
from typing import Self

from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.client.keepalive import bring_environment
from agent_relay.domain.errors import DaemonUnreachableError, RelayError, WrongUseError
from agent_relay.domain.moments import parse_moment, render_moment
from agent_relay.system.clock import Clock, SystemClock, create_ulid

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(Exception):  # noqa: N818 - no error: a Unix signal while something may be broken off
    """A Unix signal asks for the current work to end."""


class SignalTrap:
    """Notes Unix signals while it is entered; `number` is the one that came, 0 for none.

    `signals` are those to note; outside the main thread it must be empty. A second one ends this process at
    once. A signal that was ignored when this process started stays so: nohup, a script's background job.
    """

    def __init__(self, signals: Sequence[int] = SIGNALS) -> None:
        self.number = 0
        self._numbers = signals
        self._may_break = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        numbers = [number for number in self._numbers if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal.signal gave it

    def check(self) -> None:
        """Raise Interrupted if a signal has already come."""
        if self.number:
            raise Interrupted

    @contextlib.contextmanager
    def breaking(self) -> Iterator[None]:
        """Let the first signal raise Interrupted within this context."""
        self._may_break = not self.number
        try:
            yield
        finally:
            self._may_break = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
        if self._may_break:
            raise Interrupted


_FOLLOW_LIMIT_S = 60.0
"""Longest wait for an answer, in seconds: longer than the daemon delays one."""
_BEGIN_LIMIT_S = 120.0
_STOP_LIMIT_S = 30.0
"""Longest wait for an agent to end, in seconds; then the command leaves it to the daemon."""
_AGAIN_S = 0.5
_FAILURES = 5
_WAITS = "the daemon does not answer, and this command waits for it (see: agent-relay daemon status)"

Event = Mapping[str, object]


def _say_nothing(_line: str) -> None:
    return


class TurnFollower:
    """Follows one turn or chat. `connect` finds or starts a daemon, `show` prints one event.

    `warn` prints what is waited for if the daemon lives but does not answer.
    `signals` are the Unix signals that end the turn; outside the main thread it must be empty.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        show: Callable[[Event], None],
        *,
        signals: Sequence[int] = SIGNALS,
        warn: Callable[[str], None] = _say_nothing,
    ) -> None:
        self._connect = connect
        self._warn = warn
        self._show = show
        self._signals = SignalTrap(signals)
        self._connection: Connection | None = None
        self._deadline = 0.0
        self._brings: Callable[[Connection], None] | None = None

    @property
    def ended_by(self) -> int:
        """The Unix signal that ended the turn; 0 for none."""
        return self._signals.number

    def run(self, wish: Mapping[str, object]) -> Event:
        """Begin a turn, follow it to its end, and return its last event, shown like all others.

        Raises RelayError if the turn cannot be begun. SIGINT, SIGTERM, SIGHUP and SIGQUIT end the agent
        politely, and its end is waited for; a second one ends this process at once. A reader that goes away
        ends the turn, too.
        """
        named = _name(wish)
        environ = _read_environ(wish)
        with self._trapping():
            for _ in range(_FAILURES):
                begun = self._ask_again("run.begin", _BEGIN_LIMIT_S, NobodyListensError, **named)
                session = str(begun["session"])
                with self._stopping(session), self._bringing(session, environ):
                    last = self._follow(session, begun["told"])
                if not last.get("never_began") or self.ended_by:
                    break
            self._show_unbegun(last)
            return last

    def run_chat(self, wish: Mapping[str, object]) -> Event:
        """Begin a chat, follow its turns one after the other, and return its last event; else as `run`."""
        with self._trapping():
            answer = self._ask_again("chat.begin", _BEGIN_LIMIT_S, NobodyListensError, **_name(wish))
            session = str(answer["session"])
            # Only a new chat's first words are told on: those said later stand in the journal.
            task = "" if wish.get("session") else wish["task"]
            fields = {"cwd": wish["cwd"], "env": wish["env"], "task": task, "session": session}
            with self._stopping(session), self._bringing(session, _read_environ(wish)):
                while True:
                    last: Event = {}
                    for last in _list_events(answer):
                        self._show(last)
                    if answer.get("over") is True:
                        return last
                    self._follow(session, answer["told"])
                    answer = self._ask_again(
                        "chat.next", _BEGIN_LIMIT_S, **fields, after=answer["turn"], stop=bool(self.ended_by)
                    )

    def rejoin(self, session: str, told: Mapping[str, object]) -> Event:
        """Follow a turn that was begun before, from the place `told` on, and return its last event."""
        with self._trapping(), self._stopping(session), self._bringing(session, None):
            last = self._follow(session, told)
            self._show_unbegun(last)
            return last

    @contextlib.contextmanager
    def _trapping(self) -> Iterator[None]:
        """Let Unix signals end the turn; close the connection at the end."""
        try:
            with self._signals:
                yield
        finally:
            self._close()

    @contextlib.contextmanager
    def _stopping(self, session: str) -> Iterator[None]:
        """End the turn if nobody reads the output any more, or the disk it is written to is full."""
        try:
            yield
        except OSError:
            self._stop(session)
            raise

    @contextlib.contextmanager
    def _bringing(self, session: str, environ: Mapping[str, str] | None) -> Iterator[None]:
        """Give the environment to each daemon met meanwhile: only the one before and the holder had it."""
        self._brings = partial(bring_environment, session=session, environ=environ)
        try:
            yield
        finally:
            self._brings = None

    def _show_unbegun(self, last: Event) -> None:
        """Show the last event of a turn that no agent was asked, as it is not tried again."""
        if last.get("never_began"):
            self._show(last)

    def _follow(self, session: str, told: object) -> Event:
        is_stopped = False
        while True:
            if self.ended_by and not is_stopped:
                is_stopped = True
                self._stop(session)
            try:
                answer = self._wait(session, told)
            except Interrupted:
                continue
            told = answer["told"]
            last: Event = {}
            for last in _list_events(answer):
                if not last.get("never_began"):
                    self._show(last)
            if answer.get("over") is True:
                self._forget(session)
                return last
            if is_stopped and time.monotonic() > self._deadline:
                raise RelayError(
                    "the agent has not ended yet; the daemon keeps trying to end it",
                    hint=f"See: agent-relay status; session {session}",
                )

    def _wait(self, session: str, told: object) -> dict[str, object]:
        """Return what came since `told`. Raise Interrupted if a Unix signal comes during the wait."""
        try:
            with self._signals.breaking():
                return self._ask_again("run.follow", _FOLLOW_LIMIT_S, session=session, told=told)
        except Interrupted:
            self._close()
            raise

    def _ask_again(
        self,
        op: str,
        limit_s: float,
        lost: type[DaemonUnreachableError] = DaemonUnreachableError,
        /,
        **fields: object,
    ) -> dict[str, object]:
        """Return the answer to a request that may be sent twice; ask the next daemon if one dies."""
        for left in reversed(range(_FAILURES)):
            try:
                return self._ask(op, limit_s, **fields)
            except lost as error:
                self._close()
                if not left:
                    raise
                if not isinstance(error, NobodyListensError):
                    self._warn(_WAITS)
            time.sleep(_AGAIN_S)
        raise AssertionError("unreachable")

    def _stop(self, session: str) -> None:
        self._deadline = time.monotonic() + _STOP_LIMIT_S
        try:
            self._ask("session.stop", _STOP_LIMIT_S, session=session)
        except WrongUseError:
            # It ended meanwhile, and is not at work any more.
            return

    def _forget(self, session: str) -> None:
        try:
            self._ask("run.forget", _STOP_LIMIT_S, session=session)
        except RelayError:
            # The daemon forgets by itself after an hour.
            return

    def _ask(self, op: str, limit_s: float, **fields: object) -> dict[str, object]:
        if self._connection is None:
            self._connection = self._connect()
            if self._brings is not None:
                self._brings(self._connection)
        return self._connection.request(op, limit_s=limit_s, **fields)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _name(wish: Mapping[str, object]) -> dict[str, object]:
    """Return the request with an id, its own or a new one; sent again, it is answered with the same turn."""
    return {"message": create_ulid(SystemClock()), **wish}


def _read_environ(wish: Mapping[str, object]) -> Mapping[str, str] | None:
    found = wish.get("env")
    return found if isinstance(found, dict) else None


def _list_events(answer: Mapping[str, object]) -> Iterator[Event]:
    found = answer.get("events")
    for event in found if isinstance(found, list) else ():
        if isinstance(event, dict):
            yield event


_SOONEST = timedelta(seconds=5)
"""The shortest wait: a reset that has passed without effect is not asked about all the time."""
_LOOK_S = 30.0
"""Seconds between two looks at the clock: a machine that sleeps stops timers, but no reset."""


class WaitingTurn:
    """One turn, tried again at each reset until an agent has done it.

    `connect` finds or starts a daemon, `show` prints one event. `find_open` returns the first moment from
    another one on at which work may go on by itself; `None` for never. `warn` is as in `TurnFollower`.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        show: Callable[[Event], None],
        *,
        clock: Clock,
        zone: tzinfo,
        find_open: Callable[[datetime], datetime | None],
        warn: Callable[[str], None],
    ) -> None:
        self._follower = TurnFollower(connect, self._take, warn=warn)
        self._show = show
        self._clock = clock
        self._zone = zone
        self._find_open = find_open
        self._held: Event | None = None
        self._legs = 0
        self.ended_by = 0

    def run(self, wish: Mapping[str, object]) -> Event:
        """Run the turn and return its last event, shown like all others.

        `ended_by` is the Unix signal that ended it; 0 for none. A turn ends with one `end`: that of a turn
        that is tried again is not shown.
        """
        most = wish.get("most")
        while True:
            last = self._follower.run(wish)
            self.ended_by = self._follower.ended_by
            left = most - self._legs if isinstance(most, int) else 1
            at = self._find_start(last) if not self.ended_by and left > 0 else None
            if at is None or not self._await(last, at):
                self._end()
                return last
            self._held = None
            more = {"most": left} if isinstance(most, int) else {}
            wish = {**wish, **more, "session": last["session"]}

    def _take(self, event: Event) -> None:
        self._legs += event.get("type") == "leg"
        if event.get("type") == "end" and event.get("outcome") == "resting":
            self._held = event
        else:
            self._show(event)

    def _end(self) -> None:
        if self._held is not None:
            self._show(self._held)
        self._held = None

    def _find_start(self, last: Event) -> datetime | None:
        """Return when to try again; `None` if the turn is over, no reset is known, or work may not go on."""
        if last.get("outcome") != "resting":
            return None
        reset = parse_moment(last.get("resets_at"))
        opens = self._find_open(reset) if reset is not None else None
        return max(opens, self._clock.now() + _SOONEST) if opens is not None else None

    def _await(self, last: Event, at: datetime) -> bool:
        """Wait until `at`; return false if a Unix signal came before."""
        when = render_moment(at, self._clock.now(), self._zone)
        waiting = {
            "type": "waiting",
            "session": last["session"],
            "resets_at": last.get("resets_at", ""),
            "assumed": last.get("assumed") is True,
            "until": at.isoformat(),
            "message": f"{last.get('message', '')} Waiting until {when}; Ctrl-C stops waiting.".strip(),
        }
        with SignalTrap() as signals:
            self._show(waiting)
            with contextlib.suppress(Interrupted), signals.breaking():
                signals.check()
                while (left_s := (at - self._clock.now()).total_seconds()) > 0:
                    time.sleep(min(left_s, _LOOK_S))
                return True
        self.ended_by = signals.number
        return False
