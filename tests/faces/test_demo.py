import os
import sys
import tempfile

import pexpect
import pytest

from tests.faces.cli_run import World, create_world


@pytest.fixture
def world(tmp_path: os.PathLike[str]) -> World:
    """A user without agents or sessions."""
    return create_world(f"{tmp_path}")


def _check(out: str) -> None:
    assert "hit its session limit" in out
    assert "Continuing with understudy" in out
    assert "I pick up the task: Make greet() polite" in out
    assert "Nobody answered this yet: fix the greeting of nobody" in out
    assert "Both tests pass" in out
    assert "<handoff-context>" in out


def _list_left() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("agent-relay-demo-")}


def test_the_demo_hands_over_and_leaves_nothing_behind(world: World) -> None:
    """The first thing people run: holder, daemon, detection and packet at work together."""
    before = _list_left()
    done = world.run("demo", "--fast")
    assert (done.status, done.err) == (0, "")
    _check(done.out)
    assert "\x1b" not in done.out
    assert _list_left() <= before
    assert os.listdir(world.home) == []


def test_the_demo_plays_on_a_terminal_too(world: World) -> None:
    """There it shows the agents' own screens."""
    env = {**world.environ(), "TERM": "xterm-256color"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "agent_relay", "demo", "--fast"],
        cwd=world.cwd,
        env=env,
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 100),
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "ready | understudy" in (child.before or "")
