"""Count the modules that four walks through the house enter: `python -m tests.house.walks`.

Every process of a world of scripted agents runs with a profile that notes the first call into each module of
the package; what only runs while a module is imported is not counted. A walk is what happens between two
moments, in whichever process.
"""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.house.tree import CHECKOUT
from tests.support.at_work import begin, finish_turn, folder_of, has_taken_over, say, working_world
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld
from tests.support.shells import ShellPerson, shell_world

PROFILE = """
import os, runpy, signal, sys, threading
sys.executable = {shim!r}
PACKAGE = {package!r}
IMPORTING = "<frozen importlib._bootstrap>"
seen = set()
def is_importing(frame):
    while frame is not None and frame.f_code.co_filename != IMPORTING:
        frame = frame.f_back
    return frame is not None
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>":
        name = code.co_filename
        if name.startswith(PACKAGE) and name not in seen and not is_importing(frame):
            seen.add(name)
            handle = os.open({log!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            os.write(handle, (name + "\\n").encode())
            os.close(handle)
def forget(*_):
    seen.clear()
signal.signal(signal.SIGUSR1, forget)
os.register_at_fork(after_in_child=forget)
threading.setprofile(note)
sys.setprofile(note)
words = sys.argv[1:]
while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
    if words.pop(0) in ("-X", "-W"):
        words.pop(0)
if words[0] == "-m":
    sys.argv = words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
elif words[0] == "-c":
    sys.argv = words[1:]
    exec(words[1])
else:
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
"""


class Walk:
    """What was entered since the walk began."""

    def __init__(self, folder: str) -> None:
        self._log = f"{folder}/entered"
        self._program = f"{folder}/profiled.py"

    def begin(self, world: RelayWorld) -> None:
        """Forget what the world's processes have entered so far."""
        # First the log: what a process enters again right after it has forgotten belongs to the walk.
        with open(self._log, "w", encoding="utf-8"):
            pass
        for pid, command in world.processes().items():
            if self._program in command:
                os.kill(pid, signal.SIGUSR1)
        time.sleep(0.5)  # until each of them has forgotten

    def read(self) -> list[str]:
        """Return the modules that were entered, in the order of their names."""
        with open(self._log, encoding="utf-8") as file:
            return sorted({os.path.relpath(line.strip(), CHECKOUT) for line in file})


@contextmanager
def _profiled() -> Iterator[Walk]:
    """Have every Python that is started from here on note what it enters."""
    with tempfile.TemporaryDirectory(prefix="ar-walk-", dir="/var/tmp") as folder:
        shim, program, python = f"{folder}/python", f"{folder}/profiled.py", sys.executable
        with open(program, "w", encoding="utf-8") as file:
            package = os.path.join(CHECKOUT, "agent_relay") + os.sep
            file.write(PROFILE.format(shim=shim, package=package, log=f"{folder}/entered"))
        with open(shim, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {python} -X utf8 {program} "$@"\n')
        os.chmod(shim, stat.S_IRWXU)
        sys.executable = shim
        try:
            yield Walk(folder)
        finally:
            sys.executable = python


def walk_limit(walk: Walk) -> list[str]:
    """From the line on the agent's screen to the successor at work."""
    with working_world() as world:
        session = begin(world)
        say(world, session, "hello")
        finish_turn(world, session)
        walk.begin(world)
        type_into(folder_of(world, session), b"out\r")
        world.wait_for(session, has_taken_over, "the understudy took over")
        return walk.read()


def walk_use(walk: Walk) -> list[str]:
    """From `/use understudy` during a turn to the successor's first answer."""
    slow = [{"again": True, "do": [{"wait_s": 600}]}]
    with shell_world(demo=slow) as world:
        person = ShellPerson(world)
        person.type("paint the shed")
        person.wait_for("· working")
        walk.begin(world)
        person.type("/use understudy")
        person.wait_for("understudy goes on")
        return walk.read()


def walk_metrics(walk: Walk) -> list[str]:
    """`agent-relay metrics` in a project with one session, to its end."""
    with working_world() as world:
        session = begin(world)
        say(world, session, "hello")
        finish_turn(world, session)
        world.kill_daemons()
        walk.begin(world)
        subprocess.run(
            [sys.executable, "-m", "agent_relay", "metrics", "--all"],
            env={**world.environ, "PYTHONPATH": CHECKOUT},
            cwd=world.project,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return walk.read()


WALKS: dict[str, Callable[[Walk], list[str]]] = {
    "limit": walk_limit,
    "metrics": walk_metrics,
    "use": walk_use,
}


def main(names: list[str]) -> None:
    """Print each walk's modules."""
    for name in names or WALKS:
        with _profiled() as walk:
            entered = WALKS[name](walk)
        sys.stdout.write("\n  ".join([f"{name}: {len(entered)} modules", *entered]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
