"""A race's journal is written whatever hangs in its worktrees."""

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.race._driver import SerialJournalWriter
from agent_relay.race._events import RaceBegun, RaceCleaning
from agent_relay.race.journal import create_race
from agent_relay.race.model import RaceState
from agent_relay.system.disk.folders import Folders

if TYPE_CHECKING:
    from agent_relay.engine.services import Services
    from agent_relay.race.journal import RaceJournal

BEGAN = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
BEGUN = RaceBegun("01K00000000000000000000000", "/work", "", "c0ffee", "paint", ("ann", "bob"))


class _Full:
    """A journal on a full disk, which refuses its line once it may."""

    def __init__(self) -> None:
        self.race, self.may = SimpleNamespace(id=BEGUN.race), threading.Event()

    def append(self, _body: RaceCleaning, *, at: datetime) -> None:
        assert at == BEGAN
        assert self.may.wait(60)
        raise RelayError("cannot write it: No space left on device")


def test_a_line_that_the_disk_refuses_a_cancelled_writer_is_no_mistake_of_ours() -> None:
    """It was reported with a crash report, as the error of a task that nobody had asked after."""
    reports: list[object] = []
    clock = SimpleNamespace(now=lambda: BEGAN)
    services = cast("Services", SimpleNamespace(clock=clock, report=reports.append))

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))
        journal = _Full()
        writer = SerialJournalWriter(services, cast("RaceJournal", journal))
        writing = asyncio.create_task(writer.write(RaceCleaning()))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        journal.may.set()
        lines = asyncio.all_tasks() - {asyncio.current_task()}
        while any(not line.done() for line in lines):
            await asyncio.to_thread(lambda: None)

    asyncio.run(main())
    gc.collect()
    assert reports == []


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
