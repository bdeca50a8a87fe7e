"""What outlives an ended program: shells in Unix sessions of their own do not, services it started do."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.system.processes import born, is_alive
from tests.support.legs import Held, Wire, hold, python, wait_until
from tests.support.relay_world import CHECKOUT

pytestmark = pytest.mark.size("every")

SHELL = """
import os, signal, sys
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    {detach}
    with open({path!r}, "w") as file:
        file.write(f"{{os.getpid()}}\\n")
    os.close(writing)
    signal.pause()
os.close(writing)
os.read(reading, 1)
print("running", flush=True)
{wait}
"""
# A second one leaves and ends at once: when its holder has reaped it, it has seen the first one as well.
LEAVE_AGAIN = """
input()
between = os.fork()
if not between:
    if os.fork() == 0:
        os.setsid()
    os._exit(0)
os.waitpid(between, 0)
print("again", flush=True)
signal.pause()
"""
DETACH = "if os.fork(): os._exit(0)"


def start(folder: str, *, detach: str = "pass", wait: str = "signal.pause()") -> list[str]:
    """A program that starts another in a Unix session of its own, which writes its pid to `folder`."""
    return python(SHELL.format(detach=detach, wait=wait, path=f"{folder}/pid"))


def read_other(folder: str) -> tuple[int, int]:
    """The other program, once it runs."""
    wait_until(lambda: os.path.exists(f"{folder}/pid") and os.path.getsize(f"{folder}/pid"), "the pid")
    with open(f"{folder}/pid", encoding="utf-8") as file:
        pid = int(file.read())
    start_of_it = born(pid)
    assert start_of_it is not None
    return pid, start_of_it


def read_parent(pid: int) -> int:
    """Whose child the process is."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])


@pytest.mark.size("test")
def test_a_killed_agents_shell_in_a_session_of_its_own_is_ended(tmp_path: object) -> None:
    """Agents run tests that way; left behind they would change files under the successor's hands."""
    with hold(str(tmp_path), start(str(tmp_path))) as held, Wire(held.folder) as wire:
        other = read_other(str(tmp_path))
        os.kill(held.started.child_pid, signal.SIGKILL)
        wire.wait_for_exit()
        assert is_alive(*other)
        assert wire.ask("collect")["survivors"] == []
        wait_until(lambda: not is_alive(*other), "the shell's end")


def test_a_holder_nobody_can_find_any_more_leaves_with_its_agent(tmp_path: object) -> None:
    """Whoever deletes relay's folders must not be left with processes that wait for days."""
    folder = os.path.join(str(tmp_path), "leg")
    with hold(folder, ["sleep", "60"]) as held:
        shutil.rmtree(folder)
        os.kill(held.started.child_pid, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{held.started.holder_pid}/fd/0"), "the holder's end")


# Whoever starts the child is slow to say so: on a busy machine the service has long left its agent by then.
SLOW_START = """
import json, os, signal, sys, time
from agent_relay.terminal.holder import child
from agent_relay.terminal.holder.wire import HolderSpec

spawn, (folder, *argv) = child.spawn, sys.argv[1:]

def spawn_slowly(*given, **named):
    pid = spawn(*given, **named)
    while not os.path.exists(f"{folder}/pid") or not os.path.getsize(f"{folder}/pid"):
        time.sleep(0.005)
    return pid

child.spawn = spawn_slowly
_, slave = child.open_pty(rows=24, cols=80)
size = {"rows": 24, "cols": 80}
spec = HolderSpec(argv=argv, env=dict(os.environ), cwd=folder, leg_folder=folder, lock_fd=-1, **size)
started = child.Child(spec, slave=slave)
service = int(open(f"{folder}/pid").read())
while open(f"/proc/{service}/stat").read().rpartition(")")[2].split()[1] == str(started.pid):
    time.sleep(0.005)
started.see_leaving()
left = open(f"{folder}/left").read().split() if os.path.exists(f"{folder}/left") else ["nobody"]
print(left[0] == str(service), left[0])
for pid in (started.pid, service):
    os.kill(pid, signal.SIGKILL)
"""


def test_a_service_that_leaves_its_agent_at_once_is_noticed(tmp_path: object) -> None:
    """Started by a wrapper, it is gone from under the agent before its holder has heard of the start."""
    program = start(str(tmp_path), detach=DETACH)
    slow = [sys.executable, "-c", SLOW_START, str(tmp_path), *program]
    told = subprocess.run(slow, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.startswith("True "), told.stdout


def remove_all(held: Held, project: str) -> None:
    """Neither relay's folders nor the project is there any more."""
    shutil.rmtree(os.path.dirname(os.path.dirname(held.folder)))
    shutil.rmtree(project)


def has_left(held: Held) -> bool:
    """Whether the holder's process has ended."""
    return not os.path.exists(f"/proc/{held.started.holder_pid}/fd/0")


def test_a_holder_leaves_when_relays_folders_and_the_project_are_removed_after_its_agents_end(
    tmp_path: Path,
) -> None:
    """Nobody can begin another leg there; made again, the folders would stay for days."""
    project = tmp_path / "project"
    project.mkdir()
    with hold(f"{tmp_path}/run/legs/leg", ["true"], cwd=str(project)) as held:
        wait_until(lambda: os.path.exists(f"{held.folder}/exit.json"), "the agent's end")
        remove_all(held, str(project))
        wait_until(lambda: has_left(held), "the holder's end", limit_s=60)
        assert os.listdir(tmp_path) == []


def test_a_holder_leaves_with_an_agent_that_outlived_relays_folders_and_the_project(tmp_path: Path) -> None:
    """As long as it works, somebody may still attach; after that there is nothing to come back to."""
    project = tmp_path / "project"
    project.mkdir()
    with hold(f"{tmp_path}/run/legs/leg", ["sleep", "600"], cwd=str(project)) as held:
        remove_all(held, str(project))
        wait_until(held.is_locked, "the folder stands again")
        os.kill(held.started.child_pid, signal.SIGKILL)
        wait_until(lambda: has_left(held), "the holder's end", limit_s=60)


def test_a_holder_that_a_logout_finds_after_its_agents_end_keeps_what_the_next_leg_needs(
    tmp_path: Path,
) -> None:
    """The runtime folder goes with the last login, while the agents rest for days; the project does not."""
    project = tmp_path / "project"
    project.mkdir()
    with hold(f"{tmp_path}/run/legs/leg", ["true"], cwd=str(project), luggage="PATH=/bin") as held:
        wait_until(lambda: os.path.exists(f"{held.folder}/exit.json"), "the agent's end")
        shutil.rmtree(f"{tmp_path}/run")
        wait_until(lambda: os.path.exists(f"{held.folder}/sock"), "the socket stands again")
        with Wire(held.folder) as wire:
            assert wire.ask("luggage")["luggage"] == "PATH=/bin"


def read_children(pid: int) -> set[int]:
    """The children of the process, those that wait to be reaped included."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return {int(word) for word in file.read().split()}


@pytest.mark.size("test")
def test_a_service_that_had_left_its_agent_lives_on(tmp_path: object) -> None:
    """A database the agent started for the tests outlives the agent run directly; the successor needs it."""
    program = start(str(tmp_path), detach=DETACH, wait=LEAVE_AGAIN)
    with hold(str(tmp_path), program) as held, Wire(held.folder) as wire:
        other = read_other(str(tmp_path))
        try:
            holder, agent = held.started.holder_pid, held.started.child_pid
            wait_until(lambda: read_parent(other[0]) == holder, "the service to have left")
            wire.wait_for_text("running")
            wire.type(b"go on\r")
            wire.wait_for_text("again")
            wait_until(lambda: read_children(holder) == {agent, other[0]}, "the one that ended to be reaped")
            os.kill(agent, signal.SIGKILL)
            wire.wait_for_exit()
            assert wire.ask("collect")["survivors"] == []
            assert is_alive(*other)
        finally:
            os.kill(other[0], signal.SIGKILL)
