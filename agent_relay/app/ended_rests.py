"""An agent that answers does not rest: what the ledger still says of it is over."""

import asyncio
import logging
from datetime import datetime

from agent_relay.app.ground import Ground
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg

_log = logging.getLogger(__name__)
_MOST_OFTEN_S = 5.0
"""Answers come with every step of a turn; the ledger is read for the first of them."""


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
