"""What a machine lacks for a while is told from a bug of ours."""

import errno

from agent_relay.domain.errors import RelayError
from agent_relay.system.failures import find_outer_cause, find_passing, find_shortage


def test_memory_that_python_lacks_is_a_shortage() -> None:
    """A daemon held to little memory wrote crash reports, and a handoff failed instead of waiting."""
    lacking = RelayError("cannot be read")
    lacking.__cause__ = MemoryError()
    found = {find(lacking) for find in (find_passing, find_shortage, find_outer_cause)}
    assert found == {"Cannot allocate memory"}


def test_a_full_disk_does_not_pass_by_itself() -> None:
    """Somebody must make room."""
    full = OSError(errno.ENOSPC, "No space left on device")
    assert (find_shortage(full), find_passing(full)) == ("No space left on device", "")
    assert find_shortage(RuntimeError("can't do that")) == ""
