"""A holder nobody hears of leaves nobody at work: its leg may be begun anew by then."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.system.holder import entry
from agent_relay.system.holder.spec import HolderSpec, render_spec
from agent_relay.system.processes import end_marked, find_marked
from tests.support.legs import python, wait_until

_MARK = "RELAY_TEST_UNHEARD"


def is_free(lock: int) -> bool:
    """Whether nobody holds the lock any more."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("is_folder_gone", [False, True])
def test_a_program_does_not_outlive_a_holder_nobody_heard_of(tmp_path: Path, *, is_folder_gone: bool) -> None:
    """A daemon killed while it began a turn, or that gave up waiting, begins it anew: two agents at one task.

    A program with files for its streams has no terminal whose end would tell it.
    """
    folder = tmp_path / "leg"
    folder.mkdir(mode=0o700)
    theirs = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    ours = os.open(folder / "lock", os.O_RDWR)
    (tmp_path / "given").write_text("")
    spec = HolderSpec(
        argv=python("import time; time.sleep(600)"),
        env={**os.environ, _MARK: str(tmp_path)},
        cwd=str(tmp_path),
        leg_folder=str(folder),
        rows=24,
        cols=80,
        lock_fd=theirs,
        streams=[str(tmp_path / name) for name in ("given", "said", "errors")],
    )
    holder = subprocess.Popen(
        [sys.executable, "-I", "-S", entry.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(theirs,),
    )
    os.close(theirs)
    assert holder.stdin is not None
    assert holder.stdout is not None
    if is_folder_gone:
        (folder / "lock").unlink()
        folder.rmdir()
    else:
        holder.stdout.close()
    with holder:
        holder.stdin.write(render_spec(spec))
        holder.stdin.close()
        wait_until(lambda: is_free(ours), "the holder's end")
    os.close(ours)
    left = find_marked(_MARK, str(tmp_path))
    end_marked(_MARK, str(tmp_path))
    assert (tmp_path / "said").exists()
    assert left == []
