"""A leg's folder is made again under a living agent, and not for one that is over."""

import os
import shutil

import pytest

from tests.support.leg_client import type_into
from tests.support.legs import Wire, hold, wait_until

pytestmark = pytest.mark.size("every")


def count_wakings(pid: int) -> int:
    """How often the process went to sleep so far."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))


@pytest.mark.size("test")
def test_a_lock_that_somebody_deleted_is_held_again(tmp_path: object) -> None:
    """A daemon that finds it free buries a leg that lives."""
    with hold(f"{tmp_path}/run/legs/leg", ["cat"]) as held:
        os.unlink(f"{held.folder}/lock")
        wait_until(held.is_locked, "the lock is held again")


@pytest.mark.size("test")
def test_a_client_that_was_connected_stays_when_the_folder_goes(tmp_path: object) -> None:
    """The person at the terminal notices nothing of somebody's logout."""
    with hold(f"{tmp_path}/run/legs/leg", ["cat"]) as held, Wire(held.folder) as wire:
        shutil.rmtree(f"{tmp_path}/run")
        wait_until(lambda: os.path.exists(f"{held.folder}/sock"), "the socket stands again")
        type_into(held.folder, b"typed by another\r")
        wire.wait_for_text("typed by another")
        assert held.is_locked()
        assert os.stat(f"{tmp_path}/run").st_mode & 0o777 == 0o700


def test_a_place_that_cannot_be_had_yet_is_tried_again(tmp_path: object) -> None:
    """The user's next login makes the runtime folder, minutes or days after the last logout."""
    with hold(f"{tmp_path}/run/legs/leg", ["cat"]) as held:
        shutil.rmtree(f"{tmp_path}/run")
        with open(f"{tmp_path}/run", "w", encoding="utf-8"):
            before = count_wakings(held.started.holder_pid)
        wait_until(lambda: count_wakings(held.started.holder_pid) > before + 1, "it was tried in vain")
        os.unlink(f"{tmp_path}/run")
        wait_until(held.is_locked, "the folder stands again")


def test_nothing_is_made_where_others_could_exchange_it(tmp_path: object) -> None:
    """In a common folder anybody may make what the runtime folder stood in, once that is gone."""
    with hold(f"{tmp_path}/above/run/legs/leg", ["cat"]) as held:
        shutil.rmtree(f"{tmp_path}/above/run")
        os.chmod(f"{tmp_path}/above", 0o777)  # noqa: S103 - somebody else's mistake
        before = count_wakings(held.started.holder_pid)
        wait_until(lambda: count_wakings(held.started.holder_pid) > before + 1, "it was tried in vain")
        assert os.listdir(f"{tmp_path}/above") == []
        os.chmod(f"{tmp_path}/above", 0o755)  # noqa: S103 - as most folders are
        wait_until(held.is_locked, "the folder stands again")
