"""Whoever kills what builds a packet costs a moment, not the session."""

import os
import shutil

import pytest

from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import PacketPublished
from agent_relay.domain.state import State
from tests.support.handoffs import LIMIT, git, open_work, write_screenplays
from tests.support.relay_world import RelayWorld, kill, relay_world, wait_until
from tests.support.world_end import find_children

pytestmark = pytest.mark.size("test")


def _slow_down_git(world: RelayWorld) -> str:
    """While the file at the path that comes back is there, git waits before it answers."""
    mark, program = f"{world.folder}/slow", shutil.which("git")
    os.makedirs(f"{world.folder}/bin")
    with open(f"{world.folder}/bin/git", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nwhile [ -e {mark} ]; do sleep 0.1; done\nexec {program} "$@"\n')
    os.chmod(f"{world.folder}/bin/git", 0o700)
    world.environ["PATH"] = f"{world.folder}/bin:{world.environ['PATH']}"
    return mark


def _find_builders(world: RelayWorld) -> list[int]:
    """The server packets are built by, and where it is at one, its supervisor and its worker."""
    (last,) = world.find_daemons()
    servers = (pid for pid in find_children({last}) if "daemon" in world.processes().get(pid, ""))
    found = [next(servers)]
    while children := find_children({found[-1]}):
        found.append(min(children))
    return found


def _list_published(events: list[Event]) -> list[PacketPublished]:
    return [event.body for event in events if isinstance(event.body, PacketPublished)]


@pytest.mark.parametrize("number", [0, 1, 2], ids=["server", "supervisor", "worker"])
def test_a_packet_is_made_though_what_builds_it_was_killed(number: int) -> None:
    """A machine short of memory kills the largest: the session ended, and nobody was handed anything."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"when": "out", "do": [LIMIT]}])
        git(world.project, "init", "-q")
        mark = _slow_down_git(world)
        world.start_daemon()
        work = open_work(world, world.project, world.project)
        work.wait_for(lambda found: found.state is State.READY, "the agent is ready")
        with open(mark, "w", encoding="utf-8"):
            work.type("you are out")
            wait_until(lambda: len(_find_builders(world)) > 2, "the packet is being built")
            kill(_find_builders(world)[number])
        os.unlink(mark)
        found = work.wait_for(
            lambda found: found.state is State.ENDED or len(found.done) == 1, "the handoff is over"
        )
        assert (found.state is State.ENDED, found.agent) == (False, "understudy")
        (published,) = _list_published(work.events())
        assert published.lacks == ""
