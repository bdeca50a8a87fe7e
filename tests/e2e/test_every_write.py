"""`kill -9` of the daemon between any two things it does to a disk while a failover is made."""

import contextlib
import fcntl
import itertools
import os
import subprocess
import sys

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets, read_packet
from tests.e2e.test_crash_matrix import end, has_environment, settle, type_prompt
from tests.support.handoffs import git
from tests.support.relay_world import RelayWorld, kill, relay_world, wait_until

DOOMED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "support", "doomed_daemon.py")
PARTS = 16
"""Every n-th change is one test's, from its own first on to where a failover needs no more of them."""
FEWEST = 30
"""A failover whose journal, packet, ledger and index take fewer changes than this was not counted."""
SPARED = 1_000_000_000
"""Who may make as many changes lives on."""


def is_over(world: RelayWorld, session: str) -> bool:
    found = world.session(session)
    return found.agent == "understudy" and found.handoff is None and found.state is State.READY


def start_doomed(world: RelayWorld, lives_for: int) -> subprocess.Popen[bytes]:
    """A daemon that serves and will be killed before its `lives_for` + 1st change from now on."""
    daemon = subprocess.Popen(
        [sys.executable, "-I", DOOMED, world.folder],
        env=world.environ,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    world.daemons.append(daemon)
    wait_until(world.answers, "the daemon answers")
    with open(f"{world.folder}/armed.new", "w", encoding="ascii") as file:
        file.write(str(lives_for))
    os.rename(f"{world.folder}/armed.new", f"{world.folder}/armed")
    return daemon


def begin(world: RelayWorld, lives_for: int) -> tuple[str, subprocess.Popen[bytes]]:
    """A session whose agent meets its limit under a doomed daemon."""
    first = world.start_daemon()
    brought = {**world.environ, "BROUGHT_BY_THE_USER": "a key"}
    session = str(world.open("demo", env=brought)["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    kill(first.pid)
    first.wait()
    daemon = start_doomed(world, lives_for)
    type_prompt(world, session, "please greet nobody")
    return session, daemon


def spare(world: RelayWorld, daemon: subprocess.Popen[bytes]) -> bool:
    """Whether the doomed daemon has lived; nothing kills it from now on, or another one serves."""
    with open(f"{world.folder}/armed", "r+", encoding="ascii") as file:
        # Nobody is between counting and dying now, and whoever counts later has more than it will ever need.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(str(SPARED))
    # It may have been told to die a moment ago: one that answers after that lives on.
    wait_until(lambda: daemon.poll() is not None or world.answers(), "a death or an answer")
    lived = daemon.poll() is None
    if not lived:
        world.start_daemon()
    return lived


def see_whole_packets(world: RelayWorld, session: str) -> int:
    """How many packets can be seen; each of them is whole, whoever was killed while writing it."""
    packets = list_packets(f"{world.project}/.agent-relay/sessions/{session}")
    for _, _, path in packets:
        assert read_packet(path).packet_id
        with open(path.removesuffix("json") + "md", encoding="utf-8") as file:
            assert file.read().rstrip().endswith("</handoff-context>")
    return len(packets)


def find_left_over(world: RelayWorld) -> list[str]:
    """What somebody began to write and nobody will ever finish."""
    return [
        f"{folder}/{name}"
        for top in (world.folders.state, world.folders.runtime, f"{world.project}/.agent-relay")
        for folder, _, files in os.walk(top)
        for name in files
        if "tmp" in name or "temporary" in name
    ]


def fail_over(lives_for: int) -> bool:
    """Whether the daemon lived to finish the failover; who came after it did, else."""
    with relay_world() as world:
        session, daemon = begin(world, lives_for)
        wait_until(lambda: daemon.poll() is not None or is_over(world, session), "a death or an end")
        lived = spare(world, daemon)
        assert see_whole_packets(world, session) <= 1
        found = settle(world, session)
        assert (found.agent, found.state in (State.READY, State.BUSY)) == ("understudy", True)
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
        assert (len(found.done), found.packets, see_whole_packets(world, session)) == (1, 1, 1)
        assert has_environment(found)
        wait_until(lambda: find_left_over(world) == [], "nothing is left over")
        end(world, session)
    return lived


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_daemon_killed_between_any_two_writes_is_succeeded_by_one_that_finishes(part: int) -> None:
    """Half a packet, a renamed file without its line, a line without its file: none may need a person."""
    changes = itertools.count(part, PARTS)
    assert next(lives_for for lives_for in changes if fail_over(lives_for)) >= FEWEST


def ask_again(world: RelayWorld) -> str:
    """The session who asks again is in: its agent works, whatever had been begun before."""
    session = str(world.open("demo", yes=True)["session"])
    found = world.wait_for(
        session, lambda now: now.state in (State.READY, State.ENDED), "the agent is ready or lost"
    )
    assert (found.state, found.why) == (State.READY, "")
    return session


def open_session(lives_for: int) -> bool:
    """Whether the daemon lived to answer who wants a session; who asks again has one, else."""
    with relay_world() as world:
        git(world.project, "init", "-q")
        daemon = start_doomed(world, lives_for)
        lived = False
        with contextlib.suppress(RelayError):
            lived = bool(world.open("demo"))
        spare(world, daemon)
        session = ask_again(world)
        wait_until(lambda: len(world.find_agents()) == 1, "no second agent is left")
        wait_until(lambda: len(os.listdir(world.folders.legs)) == 1, "no second leg is left")
        wait_until(lambda: find_left_over(world) == [], "nothing is left over")
        assert git(world.project, "status", "--porcelain") == ""
        end(world, session)
    return lived


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_daemon_killed_between_any_two_writes_of_a_beginning_costs_asking_again(part: int) -> None:
    """The first command of somebody's life with relay: no agent nobody sees, no file in their git status."""
    changes = itertools.count(part, PARTS)
    assert next(lives_for for lives_for in changes if open_session(lives_for)) >= FEWEST // 2
