"""What a session writes into the ledger: an agent rests, or one that answered does not rest any more."""

import asyncio
import logging
from collections.abc import MutableMapping
from datetime import datetime
from functools import reduce

from agent_relay.domain.effects import NoteRest
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg
from agent_relay.engine.services import Services
from agent_relay.session.limits.ledger import include_rest
from agent_relay.session.outcome import DecisionContext

_log = logging.getLogger(__name__)
_MOST_OFTEN_S = 5.0
"""Answers come with every step of a turn; the ledger is read at most once in this time."""
_WAITS_S = (0, 2, 5, 10, 15, 30)
"""Waits before each try: a disk that refuses is tried again for a minute."""


class RestWriter:
    """Writes into the ledger that an agent rests. Use it from the event loop only.

    While the ledger cannot be written, `troubles` says why under "ledger".
    """

    def __init__(self, services: Services, troubles: MutableMapping[str, str]) -> None:
        self._services = services
        self._troubles = troubles
        self._unwritten: list[NoteRest] = []

    async def write(self, note: NoteRest) -> None:
        """Write the rest; if the disk refuses, try again for a minute."""
        self._unwritten.append(note)
        try:
            await self._try(note)
        finally:
            self._unwritten.remove(note)

    def include(self, context: DecisionContext) -> DecisionContext:
        """Return `context` with the rests that are not written yet, so that no resting agent is offered."""
        return reduce(include_rest, self._unwritten, context)

    async def _try(self, note: NoteRest) -> None:
        for wait_s in _WAITS_S:
            await asyncio.sleep(wait_s)
            try:
                await asyncio.to_thread(self._services.note_rest, note)
            except (RelayError, OSError) as error:
                self._troubles["ledger"] = error.sentence if isinstance(error, RelayError) else str(error)
            else:
                self._troubles.pop("ledger", None)
                return


class EndedRests:
    """The rests that one session's agents end by answering. Use it from the event loop only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._next_s = 0.0

    async def note_answer(self, leg: Leg, at: datetime | None) -> None:
        """Note that the leg's agent answered at that moment; `None` is now."""
        now_s = self._services.clock.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _MOST_OFTEN_S
        try:
            await asyncio.to_thread(
                self._services.end_rests, leg.agent, leg.model, at or self._services.clock.now()
            )
        except RelayError as error:
            _log.warning("rest-not-ended agent=%s why=%s", leg.agent, type(error).__name__)
