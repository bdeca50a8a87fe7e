import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent_relay.system.processes import (
    born,
    children,
    end_session,
    is_alive,
    is_frozen,
    send_signal,
    session_members,
    wait_for_end,
)

STUBBORN = (
    "import signal, os, sys\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "pid = os.fork()\n"
    "if pid: print('up', flush=True)\n"
    "while True: signal.pause()\n"
)


WAITS = "import signal\nprint('up', flush=True)\nwhile True: signal.pause()\n"


@contextlib.contextmanager
def running(code: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A process that leads a session, with its birth; it is gone afterwards."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    start = born(child.pid)
    assert start is not None
    try:
        yield child, start
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_a_process_is_known_by_its_birth() -> None:
    """A pid alone is reused."""
    mine = born(os.getpid())
    assert mine is not None
    assert is_alive(os.getpid(), mine)
    assert not is_alive(os.getpid(), mine + 1)
    assert born(2**22 + 1) is None


@pytest.mark.size("test")
def test_a_process_that_waits_to_be_reaped_is_not_alive() -> None:
    """A zombie answers kill(0) and has a pid."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    start = born(child.pid)
    assert start is not None
    child.kill()
    assert wait_for_end([(child.pid, start)], limit_s=60)
    assert born(child.pid) == start
    assert not is_alive(child.pid, start)
    child.communicate()


@pytest.mark.size("test")
def test_a_session_ends_with_its_stubborn_and_its_stopped_members() -> None:
    """An agent's helpers must not survive it, whatever they do about SIGTERM."""
    with running(STUBBORN) as (child, start):
        members = session_members(child.pid)
        assert len(members) == 2
        os.kill(members[1][0], signal.SIGSTOP)
        assert end_session(child.pid, start, polite_s=0.3, firm_s=60) == []
        assert session_members(child.pid) == []
        assert child.wait() == -signal.SIGKILL


@pytest.mark.size("test")
def test_a_polite_session_ends_at_once_without_being_killed() -> None:
    """SIGKILL loses what the agent wanted to save."""
    with running(WAITS) as (child, start):
        assert end_session(child.pid, start, polite_s=10, firm_s=60) == []
        assert child.wait() == -signal.SIGTERM


@pytest.mark.size("test")
def test_nobody_is_touched_where_the_pid_was_taken_over() -> None:
    """The pid of a dead leg may be the user's editor by now; who lost its parent is known by both alone."""
    with running(WAITS) as (child, start):
        assert not send_signal(child.pid, start - 1, signal.SIGKILL)
        assert end_session(child.pid, start - 1, polite_s=0.1, firm_s=0.1) == []
        assert end_session(2**22 + 1, start, others=[(child.pid, start + 1)]) == []
        assert is_alive(child.pid, start)
        assert end_session(2**22 + 1, start, others=[(child.pid, start)]) == []
        assert not is_alive(child.pid, start)


@pytest.mark.size("test")
def test_a_name_with_brackets_does_not_confuse_the_reading(tmp_path: "os.PathLike[str]") -> None:
    """Any program may call itself `) Z 1 1`."""
    program = os.path.join(tmp_path, ") Z 1 1 (")
    os.symlink("/bin/sleep", program)
    child = subprocess.Popen([program, "60"])
    start = born(child.pid)
    assert start is not None
    assert is_alive(child.pid, start)
    child.kill()
    child.wait()


@pytest.mark.size("test")
def test_a_session_ends_with_the_sessions_its_members_began() -> None:
    """Agents run shells in Unix sessions of their own; they are known by their parents."""
    code = (
        "import os, signal\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.close(writing)\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    while True: signal.pause()\n"
        "os.close(writing)\n"
        "os.read(reading, 1)\n"
        "print('up', flush=True)\n"
        "signal.pause()\n"
    )
    with running(code) as (child, start):
        (shell,) = children(child.pid)
        assert shell not in session_members(child.pid)
        assert end_session(child.pid, start, polite_s=0.2) == []
        assert not is_alive(*shell)


@pytest.mark.size("test")
def test_a_frozen_process_is_told_from_one_that_waits() -> None:
    """Whoever asks it would wait for nothing."""
    with running(STUBBORN) as (child, _):
        assert not is_frozen(child.pid)
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert is_frozen(child.pid)
    assert not is_frozen(2**22 + 1)
