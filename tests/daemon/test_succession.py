"""A daemon that begins: it serves whoever held the socket before, and hears its signals."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.unix_sockets import listen
from tests.support.relay_world import RelayWorld, relay_world, wait_until

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine without a daemon."""
    with relay_world() as made:
        yield made


def test_a_killed_daemon_that_still_listens_is_waited_for(world: RelayWorld) -> None:
    """A thread in the middle of a write keeps the dead process's socket and lock for a while."""
    for folder in (world.folders.runtime, world.folders.state):
        ensure_private(folder)
    lock = take_lock(world.folders.daemon_lock)
    assert lock is not None
    dying = listen(world.folders.daemon_socket)
    dying.setblocking(True)

    def die() -> None:
        peer, _ = dying.accept()
        peer.recv(1)
        peer.close()
        dying.close()
        os.close(lock)

    death = threading.Thread(target=die)
    death.start()
    daemon = world.spawn_daemon({})
    death.join(60)
    assert not death.is_alive()
    wait_until(lambda: daemon.poll() is not None or world.answers(), "the next daemon answers or gave up")
    assert daemon.returncode is None
    world.connect().close()


def test_a_daemon_that_answers_is_left_alone(world: RelayWorld) -> None:
    """The second one leaves at once and says nothing is wrong."""
    world.start_daemon()
    assert world.spawn_daemon({}).wait(60) == 0
    world.connect().close()


def test_a_daemon_whose_starter_blocked_all_signals_ends_when_it_is_told_to(world: RelayWorld) -> None:
    """What is blocked is inherited: it took no SIGTERM, and whoever stops a machine had to kill it."""
    words = [sys.executable, "-I", world.daemon_program]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        daemon = subprocess.Popen(words, env=world.environ, cwd="/", start_new_session=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    world.daemons.append(daemon)
    wait_until(world.answers, "the daemon answers")
    daemon.terminate()
    assert daemon.wait(timeout=30) == 0
