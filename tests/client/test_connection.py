import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agent_relay.client.autostart import stop_daemon
from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.domain.errors import (
    DaemonUnreachableError,
    NobodyAvailableError,
    OurBugError,
    UntrustedDataError,
    WrongUseError,
)
from agent_relay.system.disk.folders import Folders, ensure_private
from tests.support.tiny_client import ROOT, start

pytestmark = pytest.mark.size("test")


def test_a_request_goes_through_a_daemon_started_for_it(folders: Folders) -> None:
    """The user never starts it by hand."""
    with start(folders) as connection:
        answer = connection.request("echo", text="h\u00e9\udcff")
        assert answer["fields"] == {"text": "h\u00e9\udcff"}
        assert answer["peer"] == os.getpid()
        assert connection.pid == find_daemon_pid(folders)
        status = connection.request("daemon.status")
        assert status["pid"] == connection.pid
        assert status["connections"] == 1
        assert connection.request("daemon.logs")["log"] == folders.daemon_log


def test_a_stopped_daemon_is_an_error_with_a_way_out_not_a_hang(folders: Folders) -> None:
    """Every wait has a limit and a name."""
    with start(folders) as connection:
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
    with start(folders) as connection:
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
    with start(folders) as connection:
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


def test_notices_arrive_between_answers_and_alone(folders: Folders) -> None:
    """One connection serves both."""
    with start(folders) as hearing, start(folders) as other:
        hearing.subscribe()
        other.request("tell", sessions=["S1", "S2"])
        assert hearing.request("ping")["ok"] is True
        found = []
        for notice in hearing.notices(limit_s=60):
            found.append(notice["session"])
            if len(found) == 2:
                break
        assert found == ["S1", "S2"]
        other.request("tell", sessions=["S3"])
        assert next(hearing.notices(limit_s=60))["session"] == "S3"
        assert hearing.take_notices() == []
        stopping = threading.Timer(0.1, os.kill, (hearing.pid, signal.SIGTERM))
        stopping.start()
        assert list(hearing.notices(limit_s=60)) == []
        stopping.join()


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
                Connection.open(folders, limit_s=60)
            thread.join()
    os.unlink(folders.daemon_socket)


def test_a_hot_client_loads_no_heavy_module() -> None:
    """Each of these costs more than a whole hot command may."""
    heavy = "typer rich pydantic asyncio dataclasses typing subprocess logging socket enum json re signal"
    heavy += " selectors pathlib platformdirs filelock tempfile inspect msgspec"
    code = (
        "import sys; import agent_relay.client.connection, agent_relay.client.autostart\n"
        "import agent_relay.system.disk.folders\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", code, *heavy.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "[]\n"


@pytest.mark.size("bench")
def test_connecting_costs_about_a_bare_python(folders: Folders) -> None:
    """A live session is one request away; measured against Python itself in the same run."""
    with start(folders):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from agent_relay.client.autostart import connect_or_start\n"
            "from agent_relay.system.disk.folders import get_folders\n"
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


def test_two_homes_with_one_runtime_folder_do_not_share_a_daemon(folders: Folders) -> None:
    """It would follow the first home's configuration, and what it begins would be in no list of ours."""
    other = Folders(folders.runtime, folders.state, f"{folders.config}/../elsewhere")
    with start(folders) as connection:
        pid = connection.pid
        with pytest.raises(DaemonUnreachableError, match=f"uses {folders.config}, not") as caught:
            start(other)
        assert "set AGENT_RELAY_HOME" in caught.value.hint
        with pytest.raises(DaemonUnreachableError, match=f"uses {folders.state}, not"):
            Connection.open(Folders(folders.runtime, f"{folders.state}-2", folders.config))
        # One folder has many names.
        Connection.open(Folders(folders.runtime, folders.state, f"{folders.state}/../config")).close()
        with pytest.raises(DaemonUnreachableError, match=f"uses {folders.config}, not"):
            stop_daemon(other)
        # One that hangs says nothing, and is no other home's to end, either.
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(DaemonUnreachableError, match=f"uses {folders.config}, not"):
                stop_daemon(other)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert connection.request("ping")["ok"] is True
    assert stop_daemon(folders) == pid
