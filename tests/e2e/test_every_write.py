"""`kill -9` of the daemon between any two things it does to a disk while a failover is made.

Every n-th change is one part's, from its own first on to where nothing more is changed. Which part is played
is left to chance, and printed: `AGENT_RELAY_TEST_SEED` in the environment chooses the same again.
"""

import contextlib
import fcntl
import itertools
import os
import random
import secrets
import sys
from collections.abc import Callable

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets, read_packet
from tests.support import preloaded
from tests.support.at_work import begin, say
from tests.support.crashes import BROUGHT, assert_handed_over, end, settle
from tests.support.handoffs import git
from tests.support.relay_world import RelayWorld, relay_world, wait_until

SEED = "AGENT_RELAY_TEST_SEED"
DOOMED = os.path.join("tests", "support", "doomed_daemon.py")
PARTS = 16
FEWEST = 30
"""A failover whose journal, packet, ledger and index take fewer changes than this was not counted."""
SPARED = 1_000_000_000
"""Who may make as many changes lives on."""


def start_doomed(world: RelayWorld, lives_for: int, *, first: str = "") -> preloaded.Process:
    """A daemon that serves and will be killed before its `lives_for` + 1st change from now on.

    Changes are counted from one below a folder called `first` on.
    """
    with open(os.devnull, "r+b") as nothing:
        streams, env = [nothing.fileno()] * 3, world.environ
        daemon = preloaded.start(DOOMED, [world.folder], env=env, cwd="/", streams=streams, leads=True)
    world.daemons.append(daemon)
    wait_until(world.answers, "the daemon answers")
    with open(f"{world.folder}/armed.new", "w", encoding="ascii") as file:
        file.write(f"{lives_for} {first}")
    os.rename(f"{world.folder}/armed.new", f"{world.folder}/armed")
    return daemon


def spare(world: RelayWorld, daemon: preloaded.Process) -> bool:
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


def fail_over(lives_for: int, *, first: str = "") -> bool:
    """Whether the daemon lived to finish the failover; who came after it did, else."""
    with relay_world() as world:
        world.start_daemon()
        session = begin(world, env={**world.environ, **BROUGHT})
        world.kill_daemons()
        daemon = start_doomed(world, lives_for, first=first)
        say(world, session, "please greet nobody")
        wait_until(lambda: daemon.poll() is not None or is_over(world, session), "a death or an end")
        is_half_there = any(path.startswith(".tmp-publish") for path in list_resume(world, session))
        assert is_half_there or not first
        lived = spare(world, daemon)
        assert see_whole_packets(world, session) <= 1
        assert_handed_over(settle(world, session))
        assert see_whole_packets(world, session) == 1
        wait_until(lambda: find_left_over(world) == [], "nothing is left over")
        end(world, session)
    return lived


def list_resume(world: RelayWorld, session: str) -> list[str]:
    folder = f"{world.project}/.agent-relay/sessions/{session}/resume"
    return os.listdir(folder) if os.path.isdir(folder) else []


def is_over(world: RelayWorld, session: str) -> bool:
    found = world.session(session)
    return found.agent == "understudy" and found.handoff is None and found.state is State.READY


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


def ask_again(world: RelayWorld) -> str:
    """The session who asks again is in: its agent works, whatever had been begun before."""
    session = str(world.open("demo", yes=True)["session"])
    found = world.wait_for(
        session, lambda now: now.state in (State.READY, State.ENDED), "the agent is ready or lost"
    )
    assert (found.state, found.why) == (State.READY, "")
    return session


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("play", "fewest"), [(fail_over, FEWEST), (open_session, FEWEST // 2)])
def test_a_daemon_killed_between_any_two_writes_is_succeeded_by_one_that_finishes(
    play: Callable[[int], bool], fewest: int
) -> None:
    """Half a packet, a renamed file without its line, a line without its file: none may need a person.

    Nor may half of the first command of somebody's life with relay, nor may git's status show any of it.
    """
    seed = os.environ.get(SEED) or secrets.token_hex(4)
    sys.stdout.write(f"{SEED}={seed}\n")
    part = random.Random(seed).randrange(PARTS)  # noqa: S311 - to be repeated, not to be secret
    assert next(lives_for for lives_for in itertools.count(part, PARTS) if play(lives_for)) >= fewest


@pytest.mark.size("test")
def test_a_daemon_killed_inside_publishing_a_packet_is_succeeded_by_one_that_finishes() -> None:
    """Some of its files are there, and none of its lines."""
    assert not fail_over(18, first="resume")
