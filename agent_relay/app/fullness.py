"""How full one leg's context is, by what its agent says, and when that passes a mark of the user's."""

from datetime import datetime

from agent_relay.app.senses import Senses
from agent_relay.domain.context import Level, Reading
from agent_relay.domain.context_effect import Filled
from agent_relay.domain.session import Leg
from agent_relay.domain.signal import Record
from agent_relay.logic.context_window import find_level
from agent_relay.logic.detector.gauge import Gauge
from agent_relay.logic.elapsed import Jump


class Fullness:
    """`reading` is what the agent last said."""

    def __init__(self, leg: Leg, senses: Senses) -> None:
        self.reading: Reading | None = None
        self._leg = leg
        self._wishes = senses.wishes
        self._gauge = Gauge(senses.rules.context, started_at=leg.starting_at)
        self._level = Level.UNKNOWN

    def shift(self, jump: Jump) -> None:
        """The wall clock jumped."""
        self._gauge.shift(jump)

    def hear(self, record: Record, *, now: datetime) -> Filled | None:
        """That the leg's context passed a mark, by a record; `None` where it did not, or none is wished."""
        reading = self._gauge.hear(record, now=now)
        if reading is None:
            return None
        self.reading = reading
        if self._wishes.mode == "off":
            return None
        level = find_level(reading.used, reading.room, self._wishes)
        if level is self._level:
            return None
        self._level = level
        return Filled(self._leg.id, reading.used, reading.room, reading.at, reading.model)
