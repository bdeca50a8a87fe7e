"""The runtime folder goes while sessions live, as at a last logout: nothing is lost, nobody works twice."""

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.system.net.unix_sockets import connect
from agent_relay.system.processes import is_alive
from agent_relay.terminal.holder.wire import render_frame
from tests.support.at_work import restart
from tests.support.deleting import delete_folder
from tests.support.leg_client import type_into
from tests.support.neighbours import LoginWorld, begin
from tests.support.relay_world import RelayWorld, relay_world, wait_until
from tests.support.seats import run


@pytest.fixture
def world() -> Iterator[LoginWorld]:
    """A login with its own runtime folder."""
    with relay_world(kind=LoginWorld) as made:
        assert isinstance(made, LoginWorld)
        yield made


def begin_leg(world: RelayWorld) -> tuple[str, str, int, int]:
    """A session whose agent is ready: its id, its leg's, the agent's pid and when that was born."""
    session, pid, born = begin(world)
    leg = world.session(session).leg
    assert leg is not None
    return session, leg.id, pid, born


def is_reachable(folder: str) -> bool:
    """Whether a holder answers in that leg folder."""
    try:
        with contextlib.closing(connect(f"{folder}/sock", timeout_s=2)) as sock:
            sock.sendall(render_frame({"op": "hello"}))
            return bool(sock.recv(1 << 16))
    except (OSError, RelayError):
        return False


def remove_all(world: LoginWorld, _leg: str) -> None:
    delete_folder(world.environ["XDG_RUNTIME_DIR"])
    os.mkdir(world.environ["XDG_RUNTIME_DIR"], 0o700)


def replace_by_another(world: LoginWorld, _leg: str) -> None:
    os.rename(world.environ["XDG_RUNTIME_DIR"], f"{world.folder}/elsewhere")
    os.mkdir(world.environ["XDG_RUNTIME_DIR"], 0o700)


def remove_sockets(world: LoginWorld, leg: str) -> None:
    os.unlink(world.folders.daemon_socket)
    os.unlink(f"{world.folders.legs}/{leg}/sock")


def remove_locks(world: LoginWorld, leg: str) -> None:
    os.unlink(world.folders.daemon_lock)
    os.unlink(f"{world.folders.legs}/{leg}/lock")


Remove = Callable[[LoginWorld, str], None]


@pytest.mark.parametrize(
    ("remove", "is_daemon_killed"),
    [
        pytest.param(remove_all, False, marks=pytest.mark.size("test")),
        (remove_all, True),
        (replace_by_another, False),
        (remove_sockets, False),
        (remove_locks, False),
        (remove_locks, True),
    ],
)
def test_what_was_removed_stands_again_and_the_agent_works_on(
    world: LoginWorld, remove: Remove, *, is_daemon_killed: bool
) -> None:
    """At the last logout systemd removes the folder; an agent in tmux, or in the background, goes on."""
    world.start_daemon()
    session, leg, pid, born = begin_leg(world)
    remove(world, leg)
    if is_daemon_killed:
        restart(world)
    else:
        wait_until(world.answers, "the daemon answers where it did")
    wait_until(lambda: is_reachable(f"{world.folders.legs}/{leg}"), "the holder answers where it did")
    assert world.ask("where", session=session)["leg"] == leg
    type_into(f"{world.folders.legs}/{leg}", b"hello\r")
    world.wait_for(session, lambda found: found.leg is not None and found.leg.was_busy, "it was heard")
    assert is_alive(pid, born)
    assert len(world.find_daemons()) == 1
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "it ends")
    assert not is_alive(pid, born)


@pytest.mark.parametrize(
    ("words", "remove"),
    [
        (("demo", "--json"), remove_all),
        (("understudy", "--new", "--json"), replace_by_another),
        (("run", "demo", "say hello"), remove_all),
    ],
)
def test_no_command_starts_a_second_agent_beside_one_whose_folder_went(
    world: LoginWorld, words: tuple[str, ...], remove: Remove
) -> None:
    """The command finds no daemon and starts one, which must not take the tree for its own."""
    world.start_daemon()
    session, leg, pid, born = begin_leg(world)
    remove(world, leg)
    run(world, *words)
    assert is_alive(pid, born)
    found = world.session(session)
    assert found.living_leg is not None
    assert found.living_leg.id == leg
    wait_until(lambda: len(world.find_daemons()) == 1, "one daemon is left")
    assert world.ask("where", session=session)["leg"] == leg


def test_stop_ends_the_agent_right_after_its_folder_went(world: LoginWorld) -> None:
    """Whoever wants an agent gone must not have to wait for somebody's logout."""
    world.start_daemon()
    session, leg, pid, born = begin_leg(world)
    remove_all(world, leg)
    done = run(world, "stop")
    assert done.status == 0, done.err
    world.wait_for(session, lambda found: found.state is State.ENDED, "it ends")
    assert not is_alive(pid, born)
    assert world.find_agents() == []


def test_a_daemon_that_finds_another_one_in_its_place_leaves_its_sessions_to_it(world: LoginWorld) -> None:
    """Two daemons at one place would each act on half of what happens."""
    first = world.start_daemon()
    session, leg, pid, born = begin_leg(world)
    os.kill(first.pid, 19)  # SIGSTOP: it cannot see its folder go
    remove_all(world, leg)
    second = world.spawn_daemon({})
    wait_until(lambda: os.path.exists(world.folders.daemon_socket), "another daemon listens")
    os.kill(first.pid, 18)  # SIGCONT
    assert first.wait(60) == 0
    wait_until(world.answers, "the other one serves")
    assert second.poll() is None
    assert world.ask("where", session=session)["leg"] == leg
    assert is_alive(pid, born)
