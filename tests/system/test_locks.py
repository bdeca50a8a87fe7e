import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.locks import take_lock


@pytest.mark.size("test")
def test_a_lock_is_had_by_one_and_dies_with_its_process(tmp_path: Path) -> None:
    """A kill -9 must leave nothing to clean up."""
    path = str(tmp_path / "lock")
    code = (
        "import sys; from agent_relay.system.disk.locks import take_lock\n"
        "assert take_lock(sys.argv[1]) is not None; print('up', flush=True); input()\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    owner = subprocess.Popen(
        [sys.executable, "-c", code, path], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    assert take_lock(path) is None
    assert take_lock(path, limit_s=0.05) is None
    owner.kill()
    owner.communicate()
    handle = take_lock(path, limit_s=5)
    assert handle is not None
    assert not os.get_inheritable(handle)
    os.close(handle)


def test_any_thread_may_wait_for_a_lock(tmp_path: Path) -> None:
    """The daemon reads records in a thread of its own."""
    path = str(tmp_path / "lock")
    first = take_lock(path)
    assert first is not None
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(take_lock, path, limit_s=0.1).result() is None
        waiting = threads.submit(take_lock, path, limit_s=60)
        os.close(first)
        second = waiting.result()
    assert second is not None
    assert take_lock(path) is None
    os.close(second)


def test_a_link_in_the_place_is_refused(tmp_path: Path) -> None:
    """It would lock, or make, a file of somebody else's choice."""
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(RelayError, match="cannot write"):
        take_lock(str(tmp_path / "lock"))
    assert not (tmp_path / "other").exists()
