"""The real daemon around the tiny application: started, killed and cleaned up for tests."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.system.disk.folders import Folders, ensure_private, get_folders
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.processes import born, wait_for_end

ROOT = str(Path(__file__).resolve().parents[2])
COMMAND = [sys.executable, f"{ROOT}/tests/support/tiny_daemon.py", "--detached"]


def start(folders: Folders) -> Connection:
    """A connection to the tiny daemon of these folders, started where none runs."""
    return connect_or_start(folders, command=COMMAND)


def read_lines(path: str) -> list[str]:
    """A text file's lines."""
    return Path(path).read_text(encoding="utf-8").splitlines()


def end_daemon(folders: Folders, number: int = signal.SIGKILL) -> None:
    """The daemon of these folders was sent that signal, and is gone."""
    pid = find_daemon_pid(folders)
    assert pid is not None
    begun = born(pid)
    assert begun is not None
    os.kill(pid, number)
    assert wait_for_end([(pid, begun)], limit_s=60)


def live_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """Folders of our own, named by the environment; whatever daemon lives in them is ended afterwards."""
    home = tempfile.mkdtemp(prefix="ar-")
    monkeypatch.setenv("AGENT_RELAY_HOME", home)
    found = get_folders()
    yield found
    ensure_private(os.path.dirname(found.runtime))
    if os.path.exists(found.runtime):
        os.chmod(found.runtime, 0o700)
    pid = find_daemon_pid(found)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    if os.path.exists(found.runtime):
        lock = take_lock(found.daemon_lock, limit_s=30)
        assert lock is not None
        os.close(lock)
    shutil.rmtree(home)
