"""What an agent started ends with it, also where nobody lives who saw whose it was."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.system.processes import born, find_marked, find_parent, is_alive, send_signal
from agent_relay.terminal.holder.child import LEFT_FILE
from tests.support.at_work import WorkingWorld
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

# A command in a Unix session of its own, as agents run them, and a service that leaves the agent at once.
START = """setsid sh -c 'echo $$ > "$HOME/shell"; exec sleep 4321' &
(setsid sh -c 'echo $$ > "$HOME/service"; exec sleep 4322' &)
exec {agent} "$@"
"""
Member = tuple[int, int]


def read_member(world: WorkingWorld, name: str) -> Member:
    """The pid and birth of what the agent started as `name`, once it runs."""
    path = f"{world.home}/{name}"
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, f"the {name} to run")
    with open(path, encoding="utf-8") as file:
        pid = int(file.read())
    start = born(pid)
    assert start is not None
    return pid, start


@contextlib.contextmanager
def ended_afterwards(member: Member) -> Iterator[None]:
    try:
        yield
    finally:
        send_signal(*member, signal.SIGKILL)


def find_leg(world: WorkingWorld) -> str:
    """The id of the one leg there is."""
    (leg,) = os.listdir(world.folders.legs)
    return leg


def kill_holder_and_wait(leg: str, shell: Member) -> None:
    """The holder is killed; the agent, which hears its terminal hang up, is gone before anybody looks."""
    agent = find_parent(*shell)
    os.kill(find_holder(agent), signal.SIGKILL)
    wait_until(lambda: find_parent(*shell) != agent, "the agent to hang up")
    assert shell in find_marked(LEG_VARIABLE, leg)


def find_holder(agent: int) -> int:
    start = born(agent)
    assert start is not None
    return find_parent(agent, start)


@pytest.mark.size("test")
def test_a_shell_whose_agent_and_holder_are_gone_is_ended_and_a_service_is_not(world: WorkingWorld) -> None:
    """An out-of-memory kill takes the holder; on a busy machine the agent is gone before the daemon looks."""
    add_adapter(world, "sower", script=START)
    session = world.begin("sower")
    shell, service = read_member(world, "shell"), read_member(world, "service")
    leg = find_leg(world)
    with ended_afterwards(shell), ended_afterwards(service):
        wait_until(lambda: os.path.exists(f"{world.folders.legs}/{leg}/{LEFT_FILE}"), "the service to leave")
        world.kill_daemons()
        kill_holder_and_wait(leg, shell)
        world.start_daemon()
        world.wait_for(session, lambda found: found.legs[0].is_over, "the loss is noticed")
        wait_until(lambda: not is_alive(*shell), "the shell's end")
        assert is_alive(*service)


def test_a_shell_of_a_leg_whose_pids_were_never_noted_is_ended(world: WorkingWorld) -> None:
    """Daemon and holder are killed just after the start: the journal knows no pid of the leg."""
    add_adapter(world, "sower", script=START)
    frozen = world.freeze_at("before leg.started")
    terminal = threading.Thread(target=world.open_both, args=("sower", {}))
    terminal.start()
    world.wait_frozen(frozen)
    shell = read_member(world, "shell")
    with ended_afterwards(shell), ended_afterwards(read_member(world, "service")):
        world.kill_daemons()
        terminal.join()
        kill_holder_and_wait(find_leg(world), shell)
        world.start_daemon()
        wait_until(lambda: not is_alive(*shell), "the shell's end")
