"""Follows a headless turn to its end: shows what came, outlives a daemon, ends the turn when told to."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Protocol

from agent_relay.domain.errors import DaemonUnreachableError, RelayError, WrongUseError

_FOLLOW_LIMIT_S = 60.0
"""Above how long the daemon puts an answer off."""
_BEGIN_LIMIT_S = 120.0
_STOP_LIMIT_S = 30.0
"""How long an agent may take to end before the command leaves it to the daemon."""
_AGAIN_S = 0.5
_FAILURES = 5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Event = Mapping[str, object]


class Asking(Protocol):
    """What is used of a connection to the daemon."""

    def request(self, op: str, /, *, limit_s: float = ..., **fields: object) -> dict[str, object]:
        """The answer to one operation."""
        ...

    def close(self) -> None:
        """The connection is given up."""
        ...


class _Told(Exception):  # noqa: N818 - no error: a Unix signal while nothing is shown
    """Somebody wants the turn to end."""


class TurnLoop:
    """One turn and its follower. `connect` finds or starts a daemon, `show` prints one event.

    `ended_by` is the Unix signal that ended it, 0 for none.
    """

    def __init__(self, connect: Callable[[], Asking], show: Callable[[Event], None]) -> None:
        self._connect = connect
        self._show = show
        self._connection: Asking | None = None
        self._may_break = False
        self._deadline = 0.0
        self.ended_by = 0

    def run(self, wish: Mapping[str, object]) -> Event:
        """The last event, shown as all the others. Raises RelayError where the turn cannot be begun.

        SIGINT, SIGTERM and SIGHUP end the agent politely and are waited for; a second one is not. A reader
        that goes away ends it too.
        """
        # What whoever started us has ignored stays so: nohup, a background job of a script.
        heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._heard) for number in heeded}
        try:
            begun = self._ask("run.begin", _BEGIN_LIMIT_S, **wish)
            session = str(begun["session"])
            try:
                return self._follow(session, begun["told"])
            except OSError:
                # Nobody reads any more, or the disk that was to take it is full.
                self._stop(session)
                raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close()

    def _follow(self, session: str, told: object) -> Event:
        is_stopped = False
        while True:
            if self.ended_by and not is_stopped:
                is_stopped = True
                self._stop(session)
            try:
                answer = self._wait(session, told)
            except _Told:
                continue
            told = answer["told"]
            last: Event = {}
            for last in _list_events(answer):
                self._show(last)
            if answer.get("over") is True:
                self._forget(session)
                return last
            if is_stopped and time.monotonic() > self._deadline:
                raise RelayError(
                    "the agent has not ended yet; the daemon goes on ending it",
                    hint=f"See: agent-relay status; session {session}",
                )

    def _wait(self, session: str, told: object) -> dict[str, object]:
        """What came since `told`. Raises _Told where a Unix signal comes while it is waited for."""
        for left in reversed(range(_FAILURES)):
            try:
                self._may_break = not self.ended_by
                return self._ask("run.follow", _FOLLOW_LIMIT_S, session=session, told=told)
            except DaemonUnreachableError:
                self._close()
                if not left:
                    raise
            except _Told:
                self._close()
                raise
            finally:
                self._may_break = False
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
        return self._connection.request(op, limit_s=limit_s, **fields)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if self.ended_by:
            os._exit(128 + number)
        self.ended_by = number
        if self._may_break:
            raise _Told


def _list_events(answer: Mapping[str, object]) -> Iterator[Event]:
    found = answer.get("events")
    for event in found if isinstance(found, list) else ():
        if isinstance(event, dict):
            yield event
