"""A test's world leaves no process behind: what runs there is seen, and what comes back fails the test."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.world_end import end_world, is_holder

pytestmark = pytest.mark.size("test")

LOOKS = 5000
HOLDER = """
import sys
lock = open(sys.argv[1], "w")
print("locked", flush=True)
while True:
    open("/proc/self/stat").close()
"""


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[int]:
    """The pid of a process that holds a leg's lock, and opens and closes other files all the time."""
    leg = tmp_path / "legs" / "leg"
    leg.mkdir(parents=True)
    command = [sys.executable, "-c", HOLDER, str(leg / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield holder.pid
        holder.kill()


def test_a_holder_is_seen_whatever_else_it_opens_and_closes(busy: int, tmp_path: Path) -> None:
    """One that was just begun loads its emulator; missed once, it outlived its world by days."""
    assert sum(not is_holder(busy, str(tmp_path)) for _ in range(LOOKS)) == 0
    assert not is_holder(busy, str(tmp_path / "elsewhere"))


def test_a_process_that_comes_after_the_end_of_a_world_is_killed_and_fails_its_test(tmp_path: Path) -> None:
    """A run of thousands of tests fills the machine by and by, and nobody knows which test it was."""
    world = tmp_path / "world"
    world.mkdir()
    with subprocess.Popen(["sleep", "600"]) as late:
        looks = iter(({},))

        def find() -> dict[int, str]:
            return next(looks, {late.pid: "sleep 600"} if late.poll() is None else {})

        with pytest.raises(AssertionError, match="outlived the world"):
            end_world(str(world), find)
        assert late.wait(60) == -signal.SIGKILL
    assert not world.exists()
