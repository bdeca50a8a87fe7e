"""Writes a race's journal for several tasks at once, none of which is cancelled in the middle of a line."""

import asyncio

from agent_relay.app.ground import Ground
from agent_relay.app.threads import OwnThread
from agent_relay.domain.race_event import RaceBody
from agent_relay.system.pause import pause_at
from agent_relay.system.race_journal import RaceJournal


class Scribe:
    """The journal of a race that has begun; `race` is its fold."""

    def __init__(self, ground: Ground, journal: RaceJournal) -> None:
        assert journal.race is not None  # noqa: S101 - who opens it has looked
        self.race = journal.race
        self.folder = journal.folder
        self._ground, self._journal = ground, journal
        self._turn = asyncio.Lock()
        # What is done in a race's worktrees may hang for minutes, in as many threads as there are.
        self._thread = OwnThread("race-journal")
        self._lines: set[asyncio.Task[None]] = set()

    async def write(self, body: RaceBody) -> None:
        """The race after `body`, which is in the journal. Raises RelayError; then nothing has changed."""
        # Who is cancelled in the middle must not leave the journal a line ahead of what is known here.
        writing = asyncio.create_task(self._write(body), name=body.name)
        self._lines.add(writing)
        writing.add_done_callback(self._lines.discard)
        await asyncio.shield(writing)

    async def settle(self) -> None:
        """Every line that was begun is written, or was refused."""
        await asyncio.gather(*self._lines, return_exceptions=True)

    def close(self) -> None:
        """The journal is given up; harmless when repeated."""
        self._journal.close()

    async def _write(self, body: RaceBody) -> None:
        async with self._turn:
            pause_at(f"before {body.name}")
            at = self._ground.clock.now()
            self.race = await self._thread.run(self._journal.append, body, at=at)
            pause_at(f"after {body.name}")
        self._ground.teller.tell(self.race.id)
