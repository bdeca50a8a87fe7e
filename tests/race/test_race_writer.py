"""A race's journal is written whatever hangs in its worktrees."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from agent_relay.race._driver import SerialJournalWriter
from agent_relay.race._events import RaceBegun, RaceCleaning
from agent_relay.race.journal import create_race
from agent_relay.race.model import RaceState
from agent_relay.system.disk.folders import Folders

if TYPE_CHECKING:
    from agent_relay.engine.services import Services

BEGAN = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
BEGUN = RaceBegun("01K00000000000000000000000", "/work", "", "c0ffee", "paint", ("ann", "bob"))


def test_a_races_lines_wait_for_no_other_work_of_the_daemon(tmp_path: Path) -> None:
    """Git has ten minutes there: as many looks as there are threads would hold back what was decided."""
    told: list[str] = []
    clock = SimpleNamespace(now=lambda: BEGAN)
    services = cast("Services", SimpleNamespace(clock=clock, teller=SimpleNamespace(tell=told.append)))
    os.chmod(tmp_path, 0o700)
    folders = Folders(*(str(tmp_path / name) for name in ("run", "state", "config")))

    async def main() -> None:
        may = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        hanging = asyncio.ensure_future(asyncio.to_thread(may.wait, 60))
        writer = SerialJournalWriter(services, create_race(folders, BEGUN, at=BEGAN))
        try:
            await asyncio.wait_for(writer.write(RaceCleaning()), 20)
            assert not hanging.done()
        finally:
            may.set()
        assert await hanging
        assert writer.race.state is RaceState.CLEANING
        writer.close()

    asyncio.run(main())
    assert told == [BEGUN.race]
