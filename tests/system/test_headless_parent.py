"""The parent of a headless program: whatever way the daemon goes, nothing of the program stays."""

import os
import signal
import socket
import subprocess
import sys

from agent_relay.system import headless_parent
from agent_relay.system.processes import born, session_members, wait_for_end


def test_what_a_program_left_behind_ends_with_a_daemon_that_died_before_it_heard() -> None:
    """A socket closed with news unread is reset for the other side: that is an end like any other."""
    ours, theirs = socket.socketpair()
    words = ["/bin/sh", "-c", "sleep 600 & echo $!"]
    parent = subprocess.Popen(
        [sys.executable, "-I", "-S", headless_parent.__file__, str(theirs.fileno()), *words],
        pass_fds=(theirs.fileno(),),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    try:
        assert parent.stdout is not None
        left = int(parent.stdout.readline())
        began = born(left)
        assert began is not None
        ours.settimeout(60)
        assert ours.recv(5, socket.MSG_PEEK) == b"ended"
        ours.close()
        parent.wait(60)
        assert wait_for_end([(left, began)], limit_s=60)
    finally:
        for pid, _ in session_members(parent.pid):
            os.kill(pid, signal.SIGKILL)
        parent.kill()
        parent.communicate()
