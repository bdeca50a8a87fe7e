"""One user's home and project with two runtime folders: a login's and, say, cron's."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from agent_relay.system.disk.folders import get_folders
from tests.support.at_work import begin as begin_session
from tests.support.relay_world import CHECKOUT, RelayWorld, kill, relay_world, wait_until


class LoginWorld(RelayWorld):
    """A world whose folders stand where a user has them, the runtime folder among them."""

    def __init__(self, folder: str, *, project: str = "project", order: tuple[str, ...]) -> None:
        super().__init__(folder, project=project, order=order)
        config = self.folders.config
        self.settle("login")
        shutil.copytree(config, self.folders.config)

    def settle(self, runtime: str) -> None:
        """From now on it works with that runtime folder."""
        self.environ.pop("AGENT_RELAY_HOME", None)
        self.environ["XDG_RUNTIME_DIR"] = os.path.join(self.folder, runtime)
        os.makedirs(self.environ["XDG_RUNTIME_DIR"], mode=0o700, exist_ok=True)
        self.folders = get_folders(self.environ)


class Neighbour(RelayWorld):
    """The same user, home and project with another runtime folder."""

    def __init__(self, world: LoginWorld, runtime: str) -> None:  # it makes nothing of its own
        self.folder, self.home, self.project = world.folder, world.home, world.project
        self.environ = {**world.environ, "XDG_RUNTIME_DIR": os.path.join(world.folder, runtime)}
        os.makedirs(self.environ["XDG_RUNTIME_DIR"], mode=0o700, exist_ok=True)
        self.folders = get_folders(self.environ)
        self.daemons = []
        self.daemon_program = world.daemon_program


class Container(Neighbour):
    """The same user, home and project in a pid namespace of its own, with a runtime folder of its own."""

    def __init__(self, world: LoginWorld) -> None:
        super().__init__(world, "container")
        self.kept = subprocess.Popen([*ENTER_NEW, "sleep", "600"], start_new_session=True)
        wait_until(lambda: read_child(self.kept.pid) > 0, "the container runs")
        self.first = read_child(self.kept.pid)

    def start(self) -> None:
        """A daemon in the container answers requests."""
        daemon = os.path.join(CHECKOUT, "agent_relay", "daemon", "__main__.py")
        inside = ["nsenter", f"--target={self.first}", "--pid", "--mount", sys.executable, "-I", daemon]
        self.daemons.append(subprocess.Popen(inside, env=self.environ, cwd="/", start_new_session=True))
        wait_until(self.answers, "the daemon in the container answers")

    def end(self) -> None:
        """Every process in the container is gone at once, as the kernel ends those of a pid namespace."""
        kill(self.first)
        self.kept.wait()


ENTER_NEW = ("unshare", "--pid", "--fork", "--mount-proc")


CAN_ENCLOSE = subprocess.run([*ENTER_NEW, "true"], capture_output=True, check=False).returncode == 0
"""Whether this user may make a pid namespace."""


def read_child(pid: int) -> int:
    """The first child of the process; 0 while it has none."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return int((file.read().split() or ["0"])[0])
    return 0


def begin(world: RelayWorld) -> tuple[str, int, int]:
    """A session whose agent is ready: its id, the agent's pid and when that was born."""
    session = begin_session(world)
    leg = world.session(session).leg
    assert leg is not None
    return session, leg.child_pid, leg.child_born


@contextlib.contextmanager
def neighbours() -> Iterator[tuple[LoginWorld, Neighbour]]:
    """The user's login, and the same user with another runtime folder; nothing of either is left."""
    with relay_world(kind=LoginWorld) as world:
        assert isinstance(world, LoginWorld)
        other = Neighbour(world, "cron")
        try:
            yield world, other
        finally:
            for daemon in other.daemons:
                daemon.kill()
                daemon.wait()
