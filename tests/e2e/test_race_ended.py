"""A race that is told to end: by a job's end, or by a terminal that is closed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent_relay.race.journal import list_races, read_race
from tests.support.race_world import TEST, RaceWorld, edit, race_on_terminal, race_world
from tests.support.relay_world import CHECKOUT, is_daemons, wait_until

RED = "one\ntwo, red\nthree\nfour\nfive\n"


@pytest.fixture
def world() -> Iterator[RaceWorld]:
    """A dirty repository and three agents."""
    with race_world() as made:
        yield made


def find_begun(world: RaceWorld) -> str:
    """The id of the one race whose journal has begun; empty before that."""
    races = [race for race in list_races(world.folders) if read_race(f"{world.folders.races}/{race}")]
    return "".join(races)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_race_that_is_told_to_end_stops_its_runners(world: RaceWorld, number: int, status: int) -> None:
    """A job that is cancelled and a terminal that is closed mean the runners; resume goes on with them."""
    world.play(demo=[{"do": [{"wait_s": 600}]}], understudy=edit("shed.txt", RED))
    world.start_daemon()
    words = [sys.executable, "-m", "agent_relay", "race", "demo", "understudy", "paint", "--test", TEST]
    process = subprocess.Popen(
        words,
        cwd=world.project,
        env={**world.environ, "PYTHONPATH": CHECKOUT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: bool(find_begun(world)), "the race has begun")
    race = find_begun(world)
    wait_until(lambda: [one["state"] for one in world.runners(race)] == ["running", "tested"], "one is done")
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == status
    assert f"Go on: agent-relay race resume {race}".encode() in err
    assert world.show(race)["state"] == "stopped"
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")


def test_a_terminal_that_is_closed_stops_the_race(world: RaceWorld) -> None:
    """Its table can be written nowhere any more."""
    world.play(demo=[{"do": [{"wait_s": 600}]}], understudy=edit("shed.txt", RED))
    world.start_daemon()
    person = race_on_terminal(world)
    os.close(person.child_fd)
    race = find_begun(world)
    wait_until(lambda: world.show(race)["state"] == "stopped", "the race has stopped")
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")
    assert not os.path.exists(world.folders.crashes)
