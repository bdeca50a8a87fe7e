import contextlib
import json
import os
import signal
import sys

import pexpect
import pytest

from agent_relay.system.disk.folders import get_folders
from tests.faces.cli_run import World
from tests.support.relay_world import wait_until
from tests.support.world_end import is_holder

pytestmark = pytest.mark.size("every")

_AT_WORK = 4
"""The client, the daemon, the holder and the agent; what packets are built by may not be up yet."""


@pytest.mark.size("test")
def test_the_demo_hands_over_and_leaves_nothing_behind(world: World) -> None:
    """The first thing people run: holder, daemon, detection and packet at work together."""
    # A folder of its own: in the one all share, demos of others come and go meanwhile.
    places = os.path.join(world.cwd, "temporary")
    os.mkdir(places)
    done = world.run_with({"TMPDIR": places}, "demo", "--fast")
    assert (done.status, done.err) == (0, "")
    for words in (
        "hit your session limit",
        "demo → understudy",
        "I pick up the task: Make greet() polite",
        "Nobody answered this yet: fix the greeting of nobody",
        "Both tests pass",
        "<handoff-context>",
    ):
        assert words in done.out
    assert "\x1b" not in done.out
    assert os.listdir(places) == []
    assert os.listdir(world.home) == []


def test_the_demo_is_one_object_for_a_program(world: World) -> None:
    """A script that tries an installation reads who took over, not a play."""
    done = world.run("demo", "--json")
    assert (done.status, done.err) == (0, "")
    view = json.loads(done.out)
    assert (view["from"], view["to"], view["kept"]) == ("demo", "understudy", None)
    assert view["limit_to_successor_s"] > 0
    assert view["packet"]["unprocessed_prompt"]["text"] == "Now fix the greeting of nobody."
    assert "<handoff-context>" in view["text"]
    assert os.listdir(world.home) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demo_leaves_nothing_behind_when_it_is_broken_off(world: World, number: int) -> None:
    """Newcomers break it off, or close its window: its agent would go on by itself otherwise."""
    child, place = _start_demo(world)
    child.kill(number)
    wait_until(lambda: len(_list_running(place)) < _AT_WORK, "the demo is on its way out")
    # Whoever does not see it end at once asks again.
    child.kill(number)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 128 + number
    assert not os.path.exists(place)
    assert _list_running(place) == {}


def test_the_demo_leaves_nothing_behind_when_it_is_killed(world: World) -> None:
    """Nobody would look for the daemon of a demo, or for its folder."""
    child, place = _start_demo(world)
    os.killpg(child.pid, signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.close()
    wait_until(lambda: not os.path.exists(place) and _list_running(place) == {}, "all of it is gone")


def _open_demo(world: World, *words: str, **variables: str) -> "pexpect.spawn[str]":
    """A terminal on which a demo plays."""
    return pexpect.spawn(
        sys.executable,
        ["-m", "agent_relay", "demo", *words],
        cwd=world.cwd,
        env={**world.environ(), "TERM": "xterm-256color", **variables},
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 100),
    )


def _start_demo(world: World) -> tuple["pexpect.spawn[str]", str]:
    """A demo at work, and its folder."""
    places = os.path.join(world.cwd, "temporary")
    os.mkdir(places)
    child = _open_demo(world, TMPDIR=places)
    child.expect_exact("ready | demo")
    (folder,) = os.listdir(places)
    place = os.path.join(places, folder)
    assert len(_list_running(place)) >= _AT_WORK
    return child, place


def _list_running(place: str) -> dict[int, str]:
    """Everything that works in a demo's folder, by pid: holders are known by their legs."""
    legs, found = get_folders({"AGENT_RELAY_HOME": os.path.join(place, "home")}).legs, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if place.encode() in file.read() or is_holder(int(name), legs):
                with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as line:
                    found[int(name)] = line.read()
    return found


def test_the_demo_plays_on_a_terminal_too(world: World) -> None:
    """There it shows the agents' own screens."""
    child = _open_demo(world, "--fast")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "ready | understudy" in (child.before or "")
