"""The parent of a headless program: whatever way the daemon goes, nothing of the program stays."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.system import headless_parent
from agent_relay.system.processes import born, session_members, wait_for_end
from tests.support.installations import Installation

pytestmark = pytest.mark.size("test")


@contextlib.contextmanager
def parent_of(script: str, program: str) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A parent by the path `program` that runs a shell's script, and the daemon's end of its socket."""
    ours, theirs = socket.socketpair()
    parent = subprocess.Popen(
        [sys.executable, "-I", "-S", program, str(theirs.fileno()), "/bin/sh", "-c", script],
        pass_fds=(theirs.fileno(),),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    try:
        yield parent, ours
    finally:
        ours.close()
        for pid, _ in session_members(parent.pid):
            os.kill(pid, signal.SIGKILL)
        parent.kill()
        parent.communicate()


def read_pid(parent: subprocess.Popen[bytes]) -> tuple[int, int]:
    """The process its program says it started, and when that was born."""
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    began = born(pid)
    assert began is not None
    return pid, began


def test_what_a_program_left_behind_ends_with_a_daemon_that_died_before_it_heard() -> None:
    """A socket closed with news unread is reset for the other side: that is an end like any other."""
    with parent_of("sleep 600 & echo $!", headless_parent.__file__) as (parent, ours):
        left = read_pid(parent)
        ours.settimeout(60)
        assert ours.recv(5, socket.MSG_PEEK) == b"ended"
        ours.close()
        parent.wait(60)
        assert wait_for_end([left], limit_s=60)


def test_a_program_ends_with_the_daemon_of_an_installation_that_is_gone(tmp_path: Path) -> None:
    """The package may be upgraded or removed while an agent writes a document."""
    installation = Installation(str(tmp_path / "installed"))
    program = os.path.join(installation.folder, "agent_relay", "system", "headless_parent.py")
    with parent_of("echo $$; exec sleep 600", program) as (parent, ours):
        works = read_pid(parent)
        installation.move_away()
        ours.close()
        parent.wait(60)
        assert wait_for_end([works], limit_s=60)
