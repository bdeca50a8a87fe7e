"""A race's journal is whole or absent after any crash, has one owner, is found, and waits for nobody."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import RelayError, StaleOwnerError, UntrustedDataError, WrongUseError
from agent_relay.race._driver import SerialJournalWriter
from agent_relay.race._events import RaceBegun, RaceCarried, RaceCleaning, RaceStopped
from agent_relay.race.journal import RaceJournal, create_race, find_race, list_races, read_race
from agent_relay.race.model import RaceState
from agent_relay.system.disk.folders import Folders
from tests.house import tree
from tests.support.races import BEGAN

if TYPE_CHECKING:
    from agent_relay.engine.services import Services

ONE, TWO = "01M80CD1RHEBFF35PR3C6VZQ85", "01M80CD1RHEBFF35PR3C6VZQ86"


def folders_in(path: Path) -> Folders:
    os.chmod(path, 0o700)
    return Folders(str(path / "run"), str(path / "state"), str(path / "config"))


def begun(race: str = ONE, root: str = "/work") -> RaceBegun:
    return RaceBegun(race, root, "", "c0ffee", "paint", ("ann", "bob"))


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """The journal is private, and readers need not own it."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    assert journal.append(RaceCarried(2, ()), at=BEGAN).state is RaceState.RUNNING
    found = read_race(journal.folder)
    assert found == journal.race
    assert os.stat(f"{journal.folder}/journal.jsonl").st_mode & 0o777 == 0o600
    assert os.stat(journal.folder).st_mode & 0o777 == 0o700
    journal.close()
    assert RaceJournal(journal.folder).race == found


def test_a_line_is_written_as_every_version_wrote_it(tmp_path: Path) -> None:
    """Races of an earlier version go on, and what reads their files goes on reading them."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    journal.append(RaceCarried(2, ("caf\udce9",)), at=BEGAN)
    journal.close()
    assert Path(journal.folder, "journal.jsonl").read_bytes().splitlines()[1] == (
        b'{"v": 1, "n": 2, "at": "2026-11-21T18:20:00+00:00", "event": "race.carried", '
        b'"data": {"files": 2, "notes": ["caf\\udce9"]}}'
    )


def test_a_line_torn_at_any_byte_gives_the_old_or_the_new_state(tmp_path: Path) -> None:
    """A power cut chooses the byte; the race goes on from the last whole line."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    journal.append(RaceCarried(2, ()), at=BEGAN)
    journal.close()
    path = Path(journal.folder, "journal.jsonl")
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole)):
        path.write_bytes(whole[:size])
        found = read_race(journal.folder)
        assert found is not None
        assert found.carried == -1
        again = RaceJournal(journal.folder)
        assert again.append(RaceStopped("x"), at=BEGAN).number == 2
        again.close()


def test_a_race_has_one_owner(tmp_path: Path) -> None:
    """Two daemons driving one race would start everybody twice."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    with pytest.raises(StaleOwnerError):
        RaceJournal(journal.folder)
    journal.close()
    RaceJournal(journal.folder).close()


def test_a_journal_that_cannot_be_trusted_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Going on from it could remove or apply the wrong thing."""
    damages = [
        b"{not json\n",
        b"[1]\n",
        b"[" * 100_000 + b"\n",
        b'{"v":1,"n":7,"at":"2026-11-21T18:20:00Z","event":"race.stopped","data":{}}\n',
        b'{"v":1,"n":2,"at":"2026-11-21T18:20:00Z","event":"race.applied","data":{"runner":1,"files":1}}\n',
        b'{"v":9,"n":2,"at":"2026-11-21T18:20:00Z","event":"race.stopped","data":{}}\n',
    ]
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    journal.close()
    path = Path(journal.folder, "journal.jsonl")
    whole = path.read_bytes()
    for damage in damages:
        path.write_bytes(whole + damage)
        for look in (read_race, RaceJournal):
            with pytest.raises(UntrustedDataError):
                look(journal.folder)
        assert path.read_bytes() == whole + damage


def test_an_event_that_cannot_follow_is_never_written(tmp_path: Path) -> None:
    """It would make every later start impossible."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    with pytest.raises(UntrustedDataError):
        journal.append(begun(), at=BEGAN)
    assert len(Path(journal.folder, "journal.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.size("test")
def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    """The race stops with a sentence, and goes on when there is room again."""
    journal = create_race(folders_in(tmp_path), begun(), at=BEGAN)
    journal.close()
    script = (
        "import resource, sys, signal\n"
        "from datetime import UTC, datetime\n"
        "from agent_relay.domain.errors import RelayError\n"
        "from agent_relay.race._events import RaceCarried\n"
        "from agent_relay.race.journal import RaceJournal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = RaceJournal(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n    journal.append(RaceCarried(1, ()), at=datetime.now(UTC))\n"
        "except RelayError as error:\n    print(error.sentence)\n"
    )
    path = Path(journal.folder, "journal.jsonl")
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", script, journal.folder, str(len(before) + 20)],
        env={"PYTHONPATH": tree.CHECKOUT},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot write" in done.stdout
    assert path.read_bytes() == before


def test_a_race_is_found_by_its_repository_or_by_an_end_of_its_name(tmp_path: Path) -> None:
    """People do not type 26 characters."""
    folders = folders_in(tmp_path)
    create_race(folders, begun(ONE, "/work"), at=BEGAN).close()
    create_race(folders, begun(TWO, "/other"), at=BEGAN).close()
    os.mkdir(f"{folders.races}/not a race")
    os.mkdir(f"{folders.races}/01M80CD1RHEBFF35PR3C6VZQ87")
    assert list_races(folders) == ["01M80CD1RHEBFF35PR3C6VZQ87", TWO, ONE]
    assert find_race(folders, "", root="/work")[1].id == ONE
    assert find_race(folders, "vzq86", root="/work")[1].id == TWO
    assert find_race(folders, ONE, root="/nowhere")[1].id == ONE
    for text, root in (("", "/nowhere"), ("x", "/work"), ("01M80CD1R", "/work")):
        with pytest.raises(WrongUseError):
            find_race(folders, text, root=root)
    assert list_races(Folders("", str(tmp_path / "nowhere"), "")) == []


def test_races_that_cannot_be_kept_privately_are_refused(tmp_path: Path) -> None:
    """They hold the user's uncommitted files."""
    folders = folders_in(tmp_path)
    os.makedirs(folders.state, mode=0o700)
    os.symlink("/tmp", folders.races)  # noqa: S108 - a place that is not ours is the point
    with pytest.raises(RelayError, match="symlink"):
        create_race(folders, begun(), at=BEGAN)
    assert os.listdir(folders.state) == ["races"]


class _Full:
    """A journal on a full disk, which refuses its line once it may."""

    def __init__(self) -> None:
        self.race, self.may = SimpleNamespace(id=ONE), threading.Event()

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

    async def main() -> None:
        may = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        hanging = asyncio.ensure_future(asyncio.to_thread(may.wait, 60))
        writer = SerialJournalWriter(services, create_race(folders_in(tmp_path), begun(), at=BEGAN))
        try:
            await asyncio.wait_for(writer.write(RaceCleaning()), 20)
            assert not hanging.done()
        finally:
            may.set()
        assert await hanging
        assert writer.race.state is RaceState.CLEANING
        writer.close()

    asyncio.run(main())
    assert told == [ONE]
