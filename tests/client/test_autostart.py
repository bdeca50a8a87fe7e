import contextlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.client.autostart import build_daemon_command, connect_or_start, start_daemon, stop_daemon
from agent_relay.client.connection import Connection, NobodyListensError, find_daemon_pid
from agent_relay.domain.errors import (
    ConfigurationError,
    DaemonUnreachableError,
    NobodyAvailableError,
    OurBugError,
    UntrustedDataError,
    WrongUseError,
)
from agent_relay.system.folders import Folders, ensure_private, get_folders
from agent_relay.system.locks import take_lock
from agent_relay.system.processes import born, is_alive, wait_for_end

ROOT = str(Path(__file__).resolve().parents[2])
COMMAND = [sys.executable, f"{ROOT}/tests/support/tiny_daemon.py", "--detached"]


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """Folders of our own; whatever daemon lives in them is ended afterwards."""
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


def _start(folders: Folders) -> Connection:
    return connect_or_start(folders, command=COMMAND)


def _kill(pid: int) -> None:
    start = born(pid)
    assert start is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_end([(pid, start)], limit_s=10)


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def test_a_request_goes_through_a_daemon_started_for_it(folders: Folders) -> None:
    """The user never starts it by hand."""
    with _start(folders) as connection:
        answer = connection.request("echo", text="h\u00e9\udcff")
        assert answer["fields"] == {"text": "h\u00e9\udcff"}
        assert answer["peer"] == os.getpid()
        assert connection.pid == find_daemon_pid(folders)
        status = connection.request("daemon.status")
        assert status["pid"] == connection.pid
        assert status["connections"] == 1
        assert connection.request("daemon.logs")["log"] == folders.daemon_log


def test_ten_clients_at_once_share_one_daemon(folders: Folders) -> None:
    """Terminals are restored all at once after a reboot."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.stdin.readline()\n"
        "from agent_relay.client.autostart import connect_or_start\n"
        "from agent_relay.system.folders import get_folders\n"
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
    assert [f"{pid}\n" for pid in _lines(f"{folders.state}/started")] == list(pids)
    with Connection.open(folders) as connection:
        assert connection.request("daemon.status")["connections"] == 11
    for client in clients:
        client.communicate("done\n", timeout=20)
        assert client.returncode == 0


def test_a_killed_daemon_is_replaced(folders: Folders) -> None:
    """Its socket's name is still there, and so are its lock files."""
    with _start(folders) as connection:
        first = connection.pid
        _kill(first)
        with pytest.raises(DaemonUnreachableError, match="went away"):
            connection.request("ping")
    assert os.path.exists(folders.daemon_socket)
    with pytest.raises(NobodyListensError):
        Connection.open(folders)
    with _start(folders) as connection:
        assert connection.pid != first
        assert connection.request("ping")["ok"] is True


def test_a_stale_socket_and_junk_in_the_folder_are_no_obstacle(folders: Folders) -> None:
    """A crash may leave anything of ours behind."""
    ensure_private(folders.runtime)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(folders.daemon_socket)
    for name in (folders.daemon_lock, folders.start_lock):
        Path(name).write_text("junk")
    with _start(folders) as connection:
        assert connection.request("ping")["ok"] is True


def test_a_daemon_that_stops_is_waited_for_by_the_next(folders: Folders) -> None:
    """`daemon restart` must not depend on luck."""
    pids = []
    for _ in range(3):
        with _start(folders) as connection:
            pids.append(connection.pid)
            assert connection.request("daemon.stop")["pid"] == connection.pid
    with _start(folders) as connection:
        pids.append(connection.pid)
    assert len(set(pids)) == 4
    assert _lines(f"{folders.state}/started") == [str(pid) for pid in pids]
    assert _lines(f"{folders.state}/stopped") == [str(pid) for pid in pids[:3]]


def test_stopping_waits_for_the_end(folders: Folders) -> None:
    """Afterwards an upgrade may replace the files under it."""
    assert stop_daemon(folders) is None
    with _start(folders) as connection:
        pid, start = connection.pid, born(connection.pid)
        assert start is not None
        assert stop_daemon(folders) == pid
        assert not is_alive(pid, start)
        assert [notice["notice"] for notice in connection.take_notices()] == ["stopping"]
    assert not os.path.exists(folders.daemon_socket)
    assert _lines(f"{folders.state}/stopped") == [str(pid)]


def test_a_stopped_daemon_is_an_error_with_a_way_out_not_a_hang(folders: Folders) -> None:
    """Every wait has a limit and a name."""
    with _start(folders) as connection:
        os.kill(connection.pid, signal.SIGSTOP)
        try:
            with pytest.raises(DaemonUnreachableError, match="ping was not answered in time"):
                connection.request("ping", limit_s=0.2)
            with pytest.raises(DaemonUnreachableError, match="not answered in time"):
                connection.request("ping")
            with pytest.raises(DaemonUnreachableError, match="did not say hello in time"):
                Connection.open(folders, limit_s=0.2)
            with pytest.raises(DaemonUnreachableError, match="does not end"):
                stop_daemon(folders, limit_s=0.2)
        finally:
            os.kill(connection.pid, signal.SIGCONT)


def test_an_error_of_the_daemon_is_raised_here_as_itself(folders: Folders) -> None:
    """Exit codes and hints are the same through the socket."""
    with _start(folders) as connection:
        with pytest.raises(NobodyAvailableError, match="everybody rests") as rest:
            connection.request("refuse")
        assert rest.value.hint == "Wait until 21:00."
        with pytest.raises(WrongUseError):
            connection.request("no such thing")
        with pytest.raises(UntrustedDataError, match="longer than"):
            connection.request("echo", text="x" * (1 << 20))
        assert connection.request("echo", text="x" * 1_000_000)["ok"] is True


def test_a_mistake_leaves_a_report_without_contents(folders: Folders) -> None:
    """It is made to be pasted into an issue."""
    with _start(folders) as connection:
        with pytest.raises(OurBugError) as broken:
            connection.request("break", secret="sk-planted-secret")
        (name,) = os.listdir(folders.crashes)
        report = Path(folders.crashes, name).read_text()
        log = Path(folders.daemon_log).read_text()
    assert name in broken.value.hint
    assert "KeyError" in report
    assert "agent_relay/daemon/server.py" in report
    assert "doing answering break" in report
    for text in (report, log, str(broken.value)):
        assert "sk-planted" not in text
    assert "crash doing=answering-break error=KeyError report=" in log


@pytest.mark.parametrize(
    ("way", "kind", "sentence"),
    [
        ("refuses", NobodyAvailableError, "the tiny app refuses to start"),
        ("breaks", OurBugError, "the daemon made a mistake and ended"),
    ],
)
def test_a_daemon_that_cannot_start_says_why(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, way: str, kind: type[Exception], sentence: str
) -> None:
    """Not `connection refused` after half a minute."""
    monkeypatch.setenv("AGENT_RELAY_TINY", way)
    with pytest.raises(kind, match=sentence):
        _start(folders)
    monkeypatch.delenv("AGENT_RELAY_TINY")
    with _start(folders) as connection:
        assert connection.request("ping")["ok"] is True


def test_a_daemon_that_hangs_in_its_own_end_is_ended(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker thread on a dead disk must not block the next daemon."""
    monkeypatch.setenv("AGENT_RELAY_TINY", "hangs")
    with _start(folders) as connection:
        assert stop_daemon(folders) == connection.pid
    assert _lines(f"{folders.state}/stopped") == [str(connection.pid)]
    with _start(folders) as following:
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
        _start(folders)
    with pytest.raises(ConfigurationError, match="others may write"):
        start_daemon(COMMAND)


def test_the_daemon_keeps_nothing_of_the_terminal_it_was_started_from(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe it kept would hang `relay | tee`; a variable it kept would reach the wrong agent."""
    monkeypatch.setenv("SECRET_API_KEY", "sk-planted")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    with _start(folders) as connection:
        os.close(write)
        assert select.select([read], [], [], 10)[0]
        assert os.read(read, 1) == b""
        environ = Path(f"/proc/{connection.pid}/environ").read_bytes()
        assert b"SECRET_API_KEY" not in environ
        assert b"GIT_DIR" not in environ
        assert os.readlink(f"/proc/{connection.pid}/cwd") == "/"
        assert os.readlink(f"/proc/{connection.pid}/fd/2") == folders.daemon_log
        assert os.readlink(f"/proc/{connection.pid}/fd/0") == "/dev/null"
        assert os.getsid(connection.pid) not in (os.getsid(0), connection.pid)
    os.close(read)


def test_notices_arrive_between_answers_and_alone(folders: Folders) -> None:
    """One connection serves both."""
    with _start(folders) as hearing, _start(folders) as other:
        hearing.subscribe()
        other.request("tell", sessions=["S1", "S2"])
        assert hearing.request("ping")["ok"] is True
        found = []
        for notice in hearing.notices(limit_s=10):
            found.append(notice["session"])
            if len(found) == 2:
                break
        assert found == ["S1", "S2"]
        other.request("tell", sessions=["S3"])
        assert [notice["session"] for notice in hearing.notices(limit_s=0.5)] == ["S3"]
        assert hearing.take_notices() == []
        stopping = threading.Timer(0.1, os.kill, (hearing.pid, signal.SIGTERM))
        stopping.start()
        assert list(hearing.notices(limit_s=20)) == []
        stopping.join()


def test_an_idle_daemon_does_not_wake_up(folders: Folders) -> None:
    """It lives for weeks on battery."""
    with _start(folders) as connection:
        connection.subscribe()
        time.sleep(0.3)  # lets the last of the work settle before the observation begins
        before = _switches(connection.pid)
        time.sleep(1.5)  # the observation itself
        assert _switches(connection.pid) == before


def _switches(pid: int) -> list[str]:
    return [
        line
        for task in os.listdir(f"/proc/{pid}/task")
        for line in _lines(f"/proc/{pid}/task/{task}/status")
        if "ctxt_switches" in line
    ]


def test_the_log_is_bounded_structured_and_private(folders: Folders) -> None:
    """It is read by people and pasted into issues."""
    ensure_private(folders.state)
    Path(folders.daemon_log).write_bytes(b"x" * (1 << 20))
    with _start(folders) as connection:
        pid = connection.pid
        assert stop_daemon(folders) == pid
    assert os.stat(f"{folders.daemon_log}.1").st_size == 1 << 20
    assert os.stat(folders.daemon_log).st_mode & 0o777 == 0o600
    events = [line.split(" ", 2)[2] for line in _lines(folders.daemon_log)]
    assert events[0] == f"started pid={pid} version=0.1.0"
    assert events[1].startswith("stopping connections=")
    assert events[2:] == [f"stopped pid={pid}"]


def test_a_full_disk_does_not_stop_a_running_daemon(folders: Folders) -> None:
    """Only what must be written fails, and says so."""
    with _start(folders) as connection:
        size = os.stat(folders.daemon_log).st_size
        resource.prlimit(connection.pid, resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(OurBugError):
            connection.request("break", secret="x")
        assert connection.request("ping")["ok"] is True
        assert _lines(folders.daemon_log)[-1].endswith("version=0.1.0")


def test_a_second_daemon_in_the_foreground_leaves_quietly(folders: Folders) -> None:
    """Two owners of one folder would be two histories."""
    with _start(folders):
        second = subprocess.run(COMMAND[:-1], capture_output=True, timeout=30, check=False)
        assert (second.returncode, second.stdout, second.stderr) == (0, b"", b"")
        wrong = subprocess.run([*COMMAND[:-1], "--what"], capture_output=True, timeout=30, check=False)
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
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "usage: python -m agent_relay.daemon [--detached]\n"


def test_a_peer_that_is_no_daemon_is_told_from_one(folders: Folders) -> None:
    """Whatever listens there, the client ends with one sentence."""
    ensure_private(folders.runtime)
    answers = {
        b"HTTP/1.1 400 Bad Request\r\n\r\n": "not JSON",
        b"x" * (2 << 20): "no end",
        json.dumps({"ok": False, "error": "speaks 2", "hint": "h", "code": 69}).encode() + b"\n": "speaks 2",
        b"": "went away",
    }
    for answer, sentence in answers.items():
        if os.path.exists(folders.daemon_socket):
            os.unlink(folders.daemon_socket)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(folders.daemon_socket)
            listening.listen()

            def reply(listening: socket.socket = listening, answer: bytes = answer) -> None:
                peer, _ = listening.accept()
                peer.recv(100)
                with contextlib.suppress(OSError):
                    peer.sendall(answer)
                peer.close()

            thread = threading.Thread(target=reply)
            thread.start()
            with pytest.raises((DaemonUnreachableError, UntrustedDataError), match=sentence):
                Connection.open(folders, limit_s=10)
            thread.join()
    os.unlink(folders.daemon_socket)


def test_a_hot_client_loads_no_heavy_module() -> None:
    """Each of these costs more than a whole hot command may."""
    heavy = [
        "typer",
        "rich",
        "pydantic",
        "asyncio",
        "dataclasses",
        "typing",
        "subprocess",
        "logging",
        "socket",
    ]
    heavy += [
        "enum",
        "json",
        "re",
        "signal",
        "selectors",
        "pathlib",
        "platformdirs",
        "filelock",
        "tempfile",
        "inspect",
        "msgspec",
    ]
    code = (
        "import sys; import agent_relay.client.connection, agent_relay.client.autostart\n"
        "import agent_relay.system.folders\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", code, *heavy], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_connecting_costs_about_a_bare_python(folders: Folders) -> None:
    """A live session is one request away; measured against Python itself in the same run."""
    with _start(folders):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from agent_relay.client.autostart import connect_or_start\n"
            "from agent_relay.system.folders import get_folders\n"
            "connect_or_start(get_folders()).request('ping')\n"
        )
        bare, connected = [], []
        for _ in range(15):
            bare.append(_time([sys.executable, "-I", "-c", "pass"]))
            connected.append(_time([sys.executable, "-I", "-c", code, ROOT]))
    assert sorted(connected)[7] < 1.8 * sorted(bare)[7]


def _time(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start
