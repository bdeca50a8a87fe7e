"""Write the journal of a race from several tasks: one line after the other, none cancelled halfway."""

import asyncio
import logging

from agent_relay.domain.errors import RelayError
from agent_relay.engine.services import Services
from agent_relay.engine.threads import DedicatedThread
from agent_relay.race._events import RaceBody
from agent_relay.race.journal import RaceJournal
from agent_relay.system.processes import pause_at

_log = logging.getLogger(__name__)


class SerialJournalWriter:
    """Writes the journal of a race that has begun; `race` is its fold."""

    def __init__(self, services: Services, journal: RaceJournal) -> None:
        assert journal.race is not None  # noqa: S101 - whoever opened it has looked
        self.race = journal.race
        self._services, self._journal = services, journal
        self._turn = asyncio.Lock()
        # What is done in a race's worktrees may hang for minutes, in as many threads as there are.
        self._thread = DedicatedThread("race-journal")
        self._lines: set[asyncio.Task[None]] = set()

    async def write(self, body: RaceBody) -> None:
        """Write `body` to the journal and apply it to `race`. Raise RelayError, with nothing changed."""
        # A caller cancelled in the middle must not leave the journal a line ahead of what is known here.
        writing = asyncio.create_task(self._write(body), name=body.name)
        self._lines.add(writing)
        writing.add_done_callback(self._lines.discard)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(self._collect)
            raise

    def _collect(self, line: asyncio.Task[None]) -> None:
        """Hear how the line of a cancelled writer ended: that a disk refused it is no mistake of ours."""
        error = None if line.cancelled() else line.exception()
        if isinstance(error, RelayError):
            _log.warning("race-line-refused race=%s line=%s", self.race.id, line.get_name())
        elif error is not None:
            self._services.report(error)

    async def settle(self) -> None:
        """Wait until every line that was begun is written or refused."""
        await asyncio.gather(*self._lines, return_exceptions=True)

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()

    async def _write(self, body: RaceBody) -> None:
        async with self._turn:
            pause_at(f"before {body.name}")
            at = self._services.clock.now()
            self.race = await self._thread.run(self._journal.append, body, at=at)
            pause_at(f"after {body.name}")
        self._services.teller.tell(self.race.id)
