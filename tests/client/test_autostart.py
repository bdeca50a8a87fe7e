import os
import resource
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_relay.client.autostart import build_daemon_command, connect_or_start, start_daemon, stop_daemon
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import (
    ConfigurationError,
    DaemonUnreachableError,
    NobodyAvailableError,
    OurBugError,
)
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.processes import born, is_alive
from tests.support.legs import wait_until
from tests.support.tiny_client import COMMAND, ROOT, end_daemon, read_lines, start

pytestmark = pytest.mark.size("test")


def test_ten_clients_at_once_share_one_daemon(folders: Folders) -> None:
    """Terminals are restored all at once after a reboot."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.stdin.readline()\n"
        "from agent_relay.client.autostart import connect_or_start\n"
        "from agent_relay.system.disk.folders import get_folders\n"
        "with connect_or_start(get_folders(), command=sys.argv[2:]) as connection:\n"
        "    print(connection.request('daemon.status')['pid'], flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", code, ROOT, *COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    pids = set()
    for client in clients:
        assert client.stdout is not None
        pids.add(client.stdout.readline())
    assert len(pids) == 1
    assert [f"{pid}\n" for pid in read_lines(f"{folders.state}/started")] == list(pids)
    with Connection.open(folders) as connection:
        assert connection.request("daemon.status")["connections"] == 11
    for client in clients:
        client.communicate("done\n", timeout=120)
        assert client.returncode == 0


def test_a_killed_daemon_is_replaced(folders: Folders) -> None:
    """Its socket's name is still there, and so are its lock files."""
    with start(folders) as connection:
        first = connection.pid
        end_daemon(folders)
        with pytest.raises(DaemonUnreachableError, match="went away"):
            connection.request("ping")
    assert os.path.exists(folders.daemon_socket)
    with pytest.raises(NobodyListensError):
        Connection.open(folders)
    with start(folders) as connection:
        assert connection.pid != first
        assert connection.request("ping")["ok"] is True


def test_a_stale_socket_and_junk_in_the_folder_are_no_obstacle(folders: Folders) -> None:
    """A crash may leave anything of ours behind."""
    ensure_private(folders.runtime)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(folders.daemon_socket)
    for name in (folders.daemon_lock, folders.start_lock):
        Path(name).write_text("junk")
    with start(folders) as connection:
        assert connection.request("ping")["ok"] is True


def test_a_daemon_that_stops_is_waited_for_by_the_next(folders: Folders) -> None:
    """`daemon restart` must not depend on luck."""
    pids = []
    for _ in range(3):
        with start(folders) as connection:
            pids.append(connection.pid)
            assert connection.request("daemon.stop")["pid"] == connection.pid
    with start(folders) as connection:
        pids.append(connection.pid)
    assert len(set(pids)) == 4
    assert read_lines(f"{folders.state}/started") == [str(pid) for pid in pids]
    assert read_lines(f"{folders.state}/stopped") == [str(pid) for pid in pids[:3]]


def test_stopping_waits_for_the_end(folders: Folders) -> None:
    """Afterwards an upgrade may replace the files under it."""
    assert stop_daemon(folders) is None
    with start(folders) as connection:
        pid, begun = connection.pid, born(connection.pid)
        assert begun is not None
        assert stop_daemon(folders) == pid
        assert not is_alive(pid, begun)
        assert [notice["notice"] for notice in connection.take_notices()] == ["stopping"]
    assert not os.path.exists(folders.daemon_socket)
    assert read_lines(f"{folders.state}/stopped") == [str(pid)]


def test_a_daemon_that_cannot_start_says_why(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not `connection refused` after half a minute."""
    for way, kind, sentence in (
        ("refuses", NobodyAvailableError, "the tiny app refuses to start"),
        ("breaks", OurBugError, "the daemon ended because of an internal error"),
    ):
        monkeypatch.setenv("AGENT_RELAY_TINY", way)
        with pytest.raises(kind, match=sentence):
            start(folders)
    monkeypatch.delenv("AGENT_RELAY_TINY")
    with start(folders) as connection:
        assert connection.request("ping")["ok"] is True


def test_a_daemon_that_hangs_in_its_own_end_is_ended(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker thread on a dead disk must not block the next daemon."""
    monkeypatch.setenv("AGENT_RELAY_TINY", "hangs")
    with start(folders) as connection:
        assert stop_daemon(folders) == connection.pid
    assert read_lines(f"{folders.state}/stopped") == [str(connection.pid)]
    with start(folders) as following:
        assert following.pid != connection.pid


def test_a_broken_installation_is_one_sentence(folders: Folders) -> None:
    """A traceback of the interpreter is turned into its last line."""
    with pytest.raises(
        DaemonUnreachableError, match="the daemon could not start: ModuleNotFoundError: No module"
    ):
        connect_or_start(folders, command=[sys.executable, "-c", "import no_such_module_at_all"])
    with pytest.raises(DaemonUnreachableError, match="cannot start the daemon: No such file"):
        connect_or_start(folders, command=["/no/such/python"])


def test_a_daemon_that_never_gets_ready_is_given_up(folders: Folders) -> None:
    """Every wait has a limit."""
    ensure_private(folders.runtime)
    with pytest.raises(DaemonUnreachableError, match="did not get ready within 0 s"):
        start_daemon([sys.executable, "-c", "import time; time.sleep(2)"], limit_s=0.2)


def test_a_folder_of_somebody_else_is_refused_by_client_and_daemon(folders: Folders) -> None:
    """What is in it could read everything typed."""
    os.mkdir(folders.runtime)
    os.chmod(folders.runtime, 0o720)
    with pytest.raises(ConfigurationError, match="others may write"):
        start(folders)
    with pytest.raises(ConfigurationError, match="others may write"):
        start_daemon(COMMAND)


def test_the_daemon_keeps_nothing_of_the_terminal_it_was_started_from(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe it kept would hang `relay | tee`; a variable it kept would reach the wrong agent."""
    monkeypatch.setenv("SECRET_API_KEY", "sk-planted")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv(LEG_VARIABLE, "of the agent that started it")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    with start(folders) as connection:
        os.close(write)
        assert select.select([read], [], [], 60)[0]
        assert os.read(read, 1) == b""
        environ = Path(f"/proc/{connection.pid}/environ").read_bytes()
        assert b"SECRET_API_KEY" not in environ
        assert b"GIT_DIR" not in environ
        assert LEG_VARIABLE.encode() not in environ
        assert os.readlink(f"/proc/{connection.pid}/cwd") == "/"
        assert os.readlink(f"/proc/{connection.pid}/fd/2") == folders.daemon_log
        assert os.readlink(f"/proc/{connection.pid}/fd/0") == "/dev/null"
        assert os.getsid(connection.pid) not in (os.getsid(0), connection.pid)
    os.close(read)


def test_an_idle_daemon_does_not_wake_up(folders: Folders) -> None:
    """It lives for weeks on battery."""
    with start(folders) as connection:
        connection.subscribe()
        wait_until(lambda: _is_asleep(connection.pid, 0.3), "the last of the work to settle")
        assert _is_asleep(connection.pid, 1.5)


def _is_asleep(pid: int, seconds: float) -> bool:
    before = _switches(pid)
    time.sleep(seconds)  # the observation itself
    return _switches(pid) == before


def _switches(pid: int) -> list[str]:
    return [
        line
        for task in os.listdir(f"/proc/{pid}/task")
        for line in read_lines(f"/proc/{pid}/task/{task}/status")
        if "ctxt_switches" in line
    ]


def test_the_log_is_bounded_structured_and_private(folders: Folders) -> None:
    """It is read by people and pasted into issues."""
    ensure_private(folders.state)
    Path(folders.daemon_log).write_bytes(b"x" * (1 << 20))
    with start(folders) as connection:
        pid = connection.pid
        assert stop_daemon(folders) == pid
    assert os.stat(f"{folders.daemon_log}.1").st_size == 1 << 20
    assert os.stat(folders.daemon_log).st_mode & 0o777 == 0o600
    events = [line.split(" ", 2)[2] for line in read_lines(folders.daemon_log)]
    assert events[0] == f"started pid={pid} version=0.1.0"
    assert events[1].startswith("stopping connections=")
    assert events[2:] == [f"stopped pid={pid}"]


def test_a_full_disk_does_not_stop_a_running_daemon(folders: Folders) -> None:
    """Only what must be written fails, and says so."""
    with start(folders) as connection:
        size = os.stat(folders.daemon_log).st_size
        resource.prlimit(connection.pid, resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(OurBugError):
            connection.request("break", secret="x")
        assert connection.request("ping")["ok"] is True
        assert read_lines(folders.daemon_log)[-1].endswith("version=0.1.0")


def test_a_second_daemon_in_the_foreground_leaves_quietly(folders: Folders) -> None:
    """Two owners of one folder would be two histories."""
    with start(folders):
        second = subprocess.run(COMMAND[:-1], capture_output=True, timeout=120, check=False)
        assert (second.returncode, second.stdout, second.stderr) == (0, b"", b"")
        wrong = subprocess.run([*COMMAND[:-1], "--what"], capture_output=True, timeout=120, check=False)
        assert wrong.returncode == 2


def test_the_daemon_is_our_own_package_whatever_lies_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloned repository may hold an `agent_relay` or an `asyncio.py` of its own."""
    for name in ("agent_relay.py", "asyncio.py", "json.py", "os.py"):
        (tmp_path / name).write_text("raise SystemExit('hijacked')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "os.py"))
    command = [*build_daemon_command()[:-1], "--what"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "usage: python -m agent_relay.daemon [--detached]\n"
