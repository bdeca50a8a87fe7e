"""What one session tells the ledger: that an agent rests, and that one that answers rests no more."""

import asyncio
import logging
from collections.abc import MutableMapping
from datetime import datetime

from agent_relay.app.ground import Ground
from agent_relay.domain.effect import NoteRest
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg

_log = logging.getLogger(__name__)
_MOST_OFTEN_S = 5.0
"""Answers come with every step of a turn; the ledger is read for the first of them."""
_WAITS_S = (0, 2, 5, 10, 15, 30)
"""A disk that refuses is asked again for a minute."""


async def note_rest(ground: Ground, note: NoteRest, troubles: MutableMapping[str, str]) -> None:
    """Write into the ledger that an agent rests; while it cannot be, `troubles` says why under "ledger"."""
    for wait_s in _WAITS_S:
        await asyncio.sleep(wait_s)
        try:
            await asyncio.to_thread(ground.note_rest, note)
        except (RelayError, OSError) as error:
            troubles["ledger"] = error.sentence if isinstance(error, RelayError) else str(error)
        else:
            troubles.pop("ledger", None)
            return


class EndedRests:
    """The rests that one session's agents end by answering. Use it from the event loop only."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._next_s = 0.0

    async def note_answer(self, leg: Leg, at: datetime | None) -> None:
        """Hear that the leg's agent answered at that moment; `None` is now."""
        now_s = self._ground.clock.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _MOST_OFTEN_S
        try:
            await asyncio.to_thread(
                self._ground.end_rests, leg.agent, leg.model, at or self._ground.clock.now()
            )
        except RelayError as error:
            _log.warning("rest-not-ended agent=%s why=%s", leg.agent, type(error).__name__)
