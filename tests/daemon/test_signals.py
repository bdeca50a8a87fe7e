"""A daemon hears its signals, whatever its starter did to them."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.relay_world import RelayWorld, relay_world

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine without a daemon."""
    with relay_world() as made:
        yield made


def test_a_daemon_whose_starter_blocked_all_signals_ends_when_it_is_told_to(world: RelayWorld) -> None:
    """What is blocked is inherited: it took no SIGTERM, and whoever stops a machine had to kill it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        daemon = world.start_daemon()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    daemon.terminate()
    assert daemon.wait(timeout=30) == 0
