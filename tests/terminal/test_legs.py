import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values import LegId
from agent_relay.system.disk.folders import Folders
from agent_relay.terminal.leg_folder import create_leg, remove_leg, try_lock

ONE = LegId("01KAH9H2000000000000000001")
TWO = LegId("01KAH9H2000000000000000002")


def _folders(tmp_path: Path) -> Folders:
    return Folders(str(tmp_path / "run"), str(tmp_path / "state"), str(tmp_path / "config"))


@pytest.mark.size("test")
def test_a_leg_is_locked_as_long_as_its_holder_lives(tmp_path: Path) -> None:
    """That is how a new daemon tells a leg to adopt from one that was lost."""
    folders = _folders(tmp_path)
    leg, lock = create_leg(folders, ONE)
    holder = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    os.close(lock)
    assert try_lock(leg) is None
    holder.kill()
    holder.communicate()
    taken = try_lock(leg)
    assert taken is not None
    os.close(taken)


@pytest.mark.size("test")
def test_the_lock_does_not_leak_into_other_programs(tmp_path: Path) -> None:
    """A git started meanwhile would keep a dead leg looking alive."""
    leg, lock = create_leg(_folders(tmp_path), ONE)
    other = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    os.close(lock)
    assert other.stdout is not None
    # A child has let go of what it does not inherit only once its program runs.
    assert other.stdout.readline() == b"\n"
    taken = try_lock(leg)
    assert taken is not None
    os.close(taken)
    other.communicate(b"\n")


def test_a_leg_is_made_once(tmp_path: Path) -> None:
    """Its folder is its identity."""
    folders = _folders(tmp_path)
    _, lock = create_leg(folders, ONE)
    with pytest.raises(RelayError, match="cannot write"):
        create_leg(folders, ONE)
    os.close(lock)
    assert os.listdir(folders.legs) == [ONE]


def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path) -> None:
    """It becomes a path."""
    with pytest.raises(ValueError, match="ULID"):
        create_leg(_folders(tmp_path), LegId("../../home"))


def test_a_removed_leg_is_gone_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    """An agent may have written into its leg's folder."""
    folders = _folders(tmp_path)
    leg, lock = create_leg(folders, ONE)
    os.close(lock)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    os.symlink(precious, f"{leg.folder}/link")
    remove_leg(leg)
    remove_leg(leg)
    assert os.listdir(folders.legs) == []
    assert (precious / "file").read_text() == "kept"


def test_a_leg_a_killed_daemon_had_begun_to_make_is_made_by_the_next(tmp_path: Path) -> None:
    """Its folder was there without its name: a handoff must not fail for what its own daemon left."""
    folders = _folders(tmp_path)
    begun = tmp_path / "run" / "legs" / f".new-{ONE}"
    begun.mkdir(parents=True)
    (begun / "lock").touch()
    for folder in (tmp_path / "run", tmp_path / "run" / "legs"):
        folder.chmod(0o700)
    leg, lock = create_leg(folders, ONE)
    os.close(lock)
    assert os.listdir(folders.legs) == [os.path.basename(leg.folder)]


def test_a_leg_is_removed_while_others_ask_whether_its_holder_lives(tmp_path: Path) -> None:
    """Who asks makes a missing lock anew: in between two steps of a removal the folder is not empty then."""
    folders = _folders(tmp_path)
    leg, lock = create_leg(folders, ONE)
    os.close(lock)
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            with contextlib.suppress(RelayError):
                if (taken := try_lock(leg)) is not None:
                    os.close(taken)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(200):
            remove_leg(leg)
            assert not os.path.lexists(leg.folder)
            os.mkdir(leg.folder)
    finally:
        is_over.set()
        for thread in asking:
            thread.join()
