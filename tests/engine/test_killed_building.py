"""Whoever kills what builds a packet costs a moment, not the session."""

import os
import shutil
from pathlib import Path

import pytest

from agent_relay.domain.events.work import PacketPublished
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.handoffs import git
from tests.support.relay_world import kill, wait_until
from tests.support.world_end import find_children

pytestmark = pytest.mark.size("every")


def _slow_down_git(world: WorkingWorld) -> Path:
    """While the file at the path that comes back is there, git waits before it answers."""
    mark, program = f"{world.folder}/slow", shutil.which("git")
    os.makedirs(f"{world.folder}/bin")
    Path(f"{world.folder}/bin/git").write_text(
        f'#!/bin/sh\nwhile [ -e {mark} ]; do sleep 0.1; done\nexec {program} "$@"\n', "utf-8"
    )
    os.chmod(f"{world.folder}/bin/git", 0o700)
    world.environ["PATH"] = f"{world.folder}/bin:{world.environ['PATH']}"
    return Path(mark)


def _find_builders(world: WorkingWorld) -> list[int]:
    """The server packets are built by, and where it is at one, its supervisor and its worker."""
    (last,) = world.find_daemons()
    servers = (pid for pid in find_children({last}) if "daemon" in world.processes().get(pid, ""))
    found = [next(servers)]
    while children := find_children({found[-1]}):
        found.append(min(children))
    return found


@pytest.mark.parametrize("number", [0, 1, 2], ids=["server", "supervisor", "worker"])
def test_a_packet_is_made_though_what_builds_it_was_killed(world: WorkingWorld, number: int) -> None:
    """A machine short of memory kills the largest: the session ended, and nobody was handed anything."""
    git(world.project, "init", "-q")
    mark = _slow_down_git(world)
    session = world.begin()
    mark.touch()
    world.say(session, "out")
    wait_until(lambda: len(_find_builders(world)) > 2, "the packet is being built")
    kill(_find_builders(world)[number])
    mark.unlink()
    found = world.wait_for(
        session, lambda found: found.state is State.ENDED or len(found.done) == 1, "the handoff is over"
    )
    assert (found.state is State.ENDED, found.agent) == (False, "understudy")
    published = [event.body for event in world.events(session) if isinstance(event.body, PacketPublished)]
    assert [one.lacks for one in published] == [""]
