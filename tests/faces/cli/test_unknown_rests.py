"""Where the ledger cannot be read, nobody is told that nobody rests."""

import json
import os

import pytest

from tests.faces.cli_run import World, create_world
from tests.support.shells import ShellPerson, shell_world

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world(tmp_path: os.PathLike[str]) -> World:
    """A user whose ledger is a link to itself: there, and not to be read."""
    found = create_world(f"{tmp_path}")
    os.makedirs(f"{found.home}/state", mode=0o700)
    os.symlink("ledger.json", f"{found.home}/state/ledger.json")
    return found


def _tell(world: World) -> str:
    return f"cannot read {world.home}/state/ledger.json: Too many levels of symbolic links"


def test_agents_says_all_but_who_rests(world: World) -> None:
    """Whoever plans with the table would ask an agent that rests."""
    done = world.run("agents", "--all")
    assert done.status == 1
    assert _tell(world) in done.err
    cells = [line.split() for line in done.out.splitlines() if line.split()[1:2] == ["demo"]]
    assert [row[-3] for row in cells] == ["unknown"]
    listed = world.run("agents", "--json")
    assert listed.status == 1
    assert {row["resting"] for row in json.loads(listed.out)["agents"]} == {None}


def test_watch_says_that_it_is_unknown(world: World) -> None:
    """For people and for programs, in the words of the error."""
    assert f"who rests is unknown: {_tell(world)}" in world.run("watch", "--no-follow").out
    told = [json.loads(line) for line in world.run("watch", "--no-follow", "--json").out.splitlines()]
    (rests,) = [one for one in told if one["type"] == "resting"]
    assert (rests["agents"], rests["unknown"]) == ([], _tell(world))


def test_the_shell_says_that_it_is_unknown() -> None:
    """Its line above the prompt is where people look for who rests."""
    with shell_world() as shells:
        os.symlink("ledger.json", shells.folders.ledger)
        person = ShellPerson(shells)
        person.wait_for("resting agents unknown")
        person.terminal.close()
