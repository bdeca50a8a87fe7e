"""Hostile disks: full at the moment of the limit, a journal torn or spoilt."""

import contextlib
import os
import resource
import subprocess
from collections.abc import Callable, Iterator

import pytest

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.state import State
from agent_relay.store.journal import read_events
from tests.support.handoffs import LIMIT, PICKED_UP, Work, open_work, write_screenplays
from tests.support.ordinary_places import make_repository
from tests.support.relay_world import RelayWorld, relay_world, wait_until
from tests.support.seats import run

AT_ONCE = [{"when": "at once", "do": [{"say": "keep this"}, {"say": "strike this out"}, LIMIT]}]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine whose disk may be spoilt."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=AT_ONCE)
        make_repository(world.project)
        yield world


def begin(world: RelayWorld) -> Work:
    """A session in the project, under a daemon, whose agent is ready."""
    world.start_daemon()
    work = open_work(world, world.project, world.project)
    work.wait_for(lambda found: found.state is State.READY, "the agent is ready")
    return work


@contextlib.contextmanager
def own_disk(folder: str) -> Iterator[Callable[[], None]]:
    """`folder` is a small disk of its own; what comes back fills it to the last byte, and frees it again."""
    os.mkdir(folder, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", folder], check=True)
    filler = f"{folder}/filler"

    def toggle() -> None:
        if os.path.exists(filler):
            os.unlink(filler)
            return
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass

    try:
        yield toggle
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def bounded_files(world: RelayWorld) -> Iterator[Callable[[], None]]:
    """What comes back forbids the daemon to write a single byte to any file, and allows it again."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    soft = [hard, 0]

    def toggle() -> None:
        soft.reverse()
        resource.prlimit(find_daemon(world), resource.RLIMIT_FSIZE, (soft[0], hard))

    yield toggle


def find_daemon(world: RelayWorld) -> int:
    """The daemon's process."""
    (pid,) = world.find_daemons()
    return pid


@contextlib.contextmanager
def blocked_folder(folder: str) -> Iterator[Callable[[], None]]:
    """Nothing can be written below a session's `resume`: a file stands there, until this is called again."""

    def toggle() -> None:
        (session,) = os.scandir(f"{folder}/sessions")
        if os.path.isfile(f"{session.path}/resume"):
            os.unlink(f"{session.path}/resume")
        else:
            os.rmdir(f"{session.path}/resume")
            with open(f"{session.path}/resume", "wb"):
                pass

    yield toggle


def list_agents(world: RelayWorld) -> list[str]:
    """The agents alive."""
    return [
        name
        for command in world.find_agents()
        for name in ("demo", "understudy")
        if f"--name {name}" in command
    ]


@pytest.mark.size("test")
def test_a_disk_full_at_the_moment_of_the_limit_delays_the_handoff_and_loses_nothing(
    world: RelayWorld,
) -> None:
    """The source stays in charge, the user is told why, and freeing space is all there is to do."""
    work = begin(world)
    with bounded_files(world) as toggle:
        before = work.events()
        toggle()
        work.type("at once")
        wait_until(lambda: bool(list_troubles(world)), "the user can read what is wrong")
        (trouble,) = list_troubles(world)
        assert trouble.startswith(f"cannot write {work.folder}/journal.jsonl: ")
        with pytest.raises(RelayError, match="cannot write"):
            world.ask("use", session=work.id, agent="understudy")
        assert list_agents(world) == ["demo"]
        assert work.events() == before
        toggle()
        session = work.wait_for_successor()
        assert len(session.done) == 1
        wait_until(lambda: list_agents(world) == ["understudy"], "its agent alone to be alive")
        wait_until(lambda: list_troubles(world) == [], "no trouble to be told any more")
        said = [row["text"] for row in work.native_rows() if row["type"] == "say"]
        assert said == [PICKED_UP]
        work.stop()


@pytest.mark.parametrize("full", ["project", "legs"])
def test_a_disk_without_room_for_a_handoff_leaves_the_source_in_charge(world: RelayWorld, full: str) -> None:
    """Its agent was stopped for a packet that could not be written, or a successor without a folder."""
    if not may_mount():
        pytest.skip(reason="this user may not mount a file system")
    folder = world.folders.legs if full == "legs" else f"{world.project}/.agent-relay"
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with own_disk(folder) as toggle:
        work = begin(world)
        toggle()
        work.type("at once")
        rested = work.wait_for(lambda found: found.state is State.RESTING, "the session rests")
        assert list_agents(world) == ["demo"]
        (why,) = rested.skipped
        assert why.startswith("understudy: cannot write into ")
        assert why.endswith(": No space left on device")
        toggle()
        world.open("understudy", session=work.id)
        assert len(work.wait_for_successor().done) == 1
        work.stop()
        world.kill_daemons()


def test_a_packet_that_cannot_be_written_ends_the_session_with_its_reason(world: RelayWorld) -> None:
    """The source has stopped by then: the user is told, and goes on by one ordinary command."""
    work = begin(world)
    with blocked_folder(f"{world.project}/.agent-relay") as toggle:
        toggle()
        work.type("at once")
        ended = work.wait_for(lambda found: found.state is State.ENDED, "the session has ended")
        assert ended.why == f"{work.folder}/resume is a file where relay needs a folder"
        told = str(world.ask("where", session=work.id)["message"])
        assert told == (
            f"→ The handoff failed: {ended.why}. Go on: agent-relay understudy --session {work.id}"
        )
        wait_until(lambda: list_agents(world) == [], "no agent to be alive")
        toggle()
        world.open("understudy", session=work.id)
        session = work.wait_for_successor()
        assert [leg.agent for leg in session.legs] == ["demo", "understudy"]
        (given,) = (str(row["text"]) for row in work.native_rows() if row["type"] == "prompt")
        assert "keep this" in given
        work.stop()


@contextlib.contextmanager
def full_disk(world: RelayWorld) -> Iterator[Callable[[], None]]:
    """The project is on a disk of its own, which what comes back fills to the last byte, and frees again.

    Users who may not mount one go without: their daemon begins beside an ordinary disk.
    """
    if not may_mount():
        yield lambda: None
        return
    with own_disk(f"{world.folder}/disk") as toggle:
        world.project = make_repository(f"{world.folder}/disk/project")
        yield toggle


def may_mount() -> bool:
    """Whether this user may make a disk of their own."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


def test_an_agent_can_be_ended_while_not_a_byte_can_be_written(world: RelayWorld) -> None:
    """It may be what fills the disk. Its end is in the journal as soon as there is room."""
    work = begin(world)
    with bounded_files(world) as toggle:
        before = work.events()
        toggle()
        said = run(world, "stop")
        assert said.status == 0, said.err
        path = f"{work.folder}/journal.jsonl"
        assert said.out.startswith(f"Session {work.id}: Its agent has ended. cannot write {path}: ")
        assert list_agents(world) == []
        assert work.events() == before
        again = run(world, "stop")
        assert again.status == 0, again.err
        toggle()
        work.wait_for(lambda found: found.state is State.ENDED, "the session has ended", limit_s=20)
        added = [event.body.name for event in work.events()[len(before) :]]
        assert added[0] == "session.stopping"
        assert added[-2:] == ["leg.ended", "session.ended"]
        assert world.daemons[0].poll() is None


def test_a_daemon_that_begins_beside_a_full_disk_ends_an_agent_too(world: RelayWorld) -> None:
    """The one before may have been killed by the very same trouble."""
    with full_disk(world) as toggle:
        work = begin(world)
        world.kill_daemons()
        toggle()
        world.start_daemon()
        said = run(world, "stop")
        assert said.status == 0, said.err
        wait_until(lambda: list_agents(world) == [], "its agent has ended")
        toggle()
        work.wait_for(lambda found: found.state is State.ENDED, "the session has ended", limit_s=20)


def list_troubles(world: RelayWorld) -> list[str]:
    """What `status` says is wrong."""
    sessions = world.ask("session.list")["sessions"]
    assert isinstance(sessions, list)
    return [str(session["trouble"]) for session in sessions if session["trouble"]]


@pytest.mark.parametrize("lost", [1, 7, 40])
def test_a_journal_torn_by_a_power_cut_goes_on_where_it_was_whole(world: RelayWorld, lost: int) -> None:
    """Its last line is missing some bytes; the agent lives on and its limit is handed over all the same."""
    work = begin(world)
    whole = work.events()
    world.kill_daemons()
    path = f"{work.folder}/journal.jsonl"
    os.truncate(path, os.path.getsize(path) - lost)
    world.start_daemon()
    work.type("at once")
    session = work.wait_for_successor()
    assert work.events()[: len(whole) - 1] == whole[:-1]
    assert [event.number for event in work.events()] == list(range(1, session.number + 1))
    assert len(session.done) == 1
    work.stop()


def test_a_spoilt_journal_is_named_and_harms_no_other_session(world: RelayWorld) -> None:
    """Somebody's editor saved it: nothing is guessed, and the folder is free for a new session."""
    spoilt = begin(world)
    good = open_work(world, make_repository(f"{world.folder}/other"), f"{world.folder}/other")
    world.kill_daemons()
    path = f"{spoilt.folder}/journal.jsonl"
    with open(path, "r+b") as file:
        file.write(b"spoilt")
    with open(path, "rb") as file:
        before = file.read()
    world.start_daemon()
    with pytest.raises(UntrustedDataError, match=r"line 1 of .* cannot be trusted"):
        read_events(path)
    with pytest.raises(RelayError, match=r"line 1 of .* cannot be trusted"):
        world.open("demo", session=spoilt.id)
    good.type("at once")
    assert len(good.wait_for_successor().done) == 1
    fresh = open_work(world, world.project, world.project)
    fresh.type("at once")
    assert len(fresh.wait_for_successor().done) == 1
    with open(path, "rb") as file:
        assert file.read() == before
