"""An exporter whose receivers are away or slow: it says so, shows it, and ends when it is told to."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.cli_run import World, create_world
from tests.support.measured import measured

pytestmark = pytest.mark.size("test")

_LIMIT_S = 60


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A user without sessions."""
    return create_world(f"{tmp_path}")


@contextlib.contextmanager
def export(world: World, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`agent-relay export` with these words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "export", *words],
        cwd=world.cwd,
        env=world.environ() | measured(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def read_line(process: "subprocess.Popen[str]") -> str:
    """The next line on its standard error."""
    assert process.stderr is not None
    return process.stderr.readline()


def test_a_collector_that_is_away_is_said_to_be_and_shown(world: World) -> None:
    """At once, on the terminal and in our own figures, and not again while nothing changes."""
    with socket.socket() as unused, socket.socket() as other:
        unused.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, away = other.getsockname()[1], unused.getsockname()[1]
        other.close()
        words = ["--prometheus", str(port), "--otlp", f"http://127.0.0.1:{away}"]
        with export(world, *words) as process:
            assert read_line(process) == (
                "agent-relay: The collector does not take pushes: it cannot be reached (Connection refused). "
                "They are tried again.\n"
            )
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            asked.request("GET", "/metrics")
            told = asked.getresponse().read().decode()
            asked.close()
            assert 'agent_relay_delivery_failing{to="otlp"} 1.0' in told.splitlines()
            assert 'agent_relay_deliveries_total{outcome="taken",to="otlp"} 0.0' in told.splitlines()
            process.send_signal(signal.SIGINT)
            assert process.wait(_LIMIT_S) == 130


def test_a_ledger_that_cannot_be_read_is_said_and_shown(world: World) -> None:
    """Figures without limits would be believed: once for people, and as a figure for programs."""
    os.makedirs(f"{world.home}/state", mode=0o700)
    ledger = f"{world.home}/state/ledger.json"
    os.symlink("ledger.json", ledger)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    with export(world, "--prometheus", str(port)) as process:
        assert read_line(process) == (
            f"agent-relay: who rests is unknown: cannot read {ledger}: Too many levels of symbolic links\n"
        )
        assert process.stdout is not None
        assert process.stdout.readline() == f"Prometheus: http://127.0.0.1:{port}/metrics\n"
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        asked.request("GET", "/metrics")
        told = asked.getresponse().read().decode()
        asked.close()
        assert "agent_relay_resting_known 0.0" in told.splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_collector_that_never_answers_keeps_nobody_from_ending(
    world: World, number: signal.Signals
) -> None:
    """Ctrl-C while a push waits for its answer."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        export(world, "--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}") as process,
    ):
        taken, _ = silent.accept()
        with taken:
            assert process.stdout is not None
            while process.stdout.readline() != "Press Ctrl-C to stop.\n":
                pass
            process.send_signal(number)
            assert process.wait(_LIMIT_S) == 128 + number
            assert process.stderr is not None
            said = process.stderr.read()
            # A push that was waited for to its own limit would have been said to have failed.
            assert "does not answer in time" not in said
            assert "Traceback" not in said


def test_figures_that_leave_out_a_broken_adapter_are_said_to(world: World) -> None:
    """The others' figures go on, and whoever looks at them has to know whose are not there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with export(world, "--prometheus", str(port), "--interval", "1") as process:
        assert process.stdout is not None
        while "Ctrl-C" not in process.stdout.readline():
            assert process.poll() is None
        broken = Path(world.home) / "config" / "adapters" / "zed"
        broken.mkdir(parents=True, mode=0o700)
        (broken / "adapter.toml").write_text("name = ")
        told = read_line(process)
        assert told.startswith(
            "agent-relay: the figures leave out what cannot be read: an adapter is left out: "
            f"{broken}/adapter.toml is not TOML"
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(_LIMIT_S) == 130


def test_figures_that_leave_out_what_cannot_be_read_are_said_to(world: World) -> None:
    """A counter that falls because a database cannot be read looks like an agent that used less."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with export(world, "--prometheus", str(port), "--interval", "1") as process:
        assert process.stdout is not None
        while "Ctrl-C" not in process.stdout.readline():
            assert process.poll() is None
        folder = Path(world.home) / ".local" / "share" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.db").write_text("no database")
        assert read_line(process) == (
            "agent-relay: the figures leave out what cannot be read: "
            f"cannot read sessions from {folder}/opencode.db: file is not a database\n"
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(_LIMIT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
