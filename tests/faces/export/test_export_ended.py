"""An exporter whose receivers are away or slow: it says so, shows it, and ends when it is told to."""

import signal
import socket
from pathlib import Path

import pytest

from tests.faces.cli_run import World, create_world
from tests.faces.export.exporter import ask, export, find_port, wait_started

pytestmark = pytest.mark.size("every")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A user without sessions."""
    return create_world(f"{tmp_path}")


@pytest.mark.size("test")
def test_a_collector_that_is_away_is_said_to_be_and_shown(world: World) -> None:
    """At once, on the terminal and in our own figures, and not again while nothing changes."""
    port = find_port()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        words = ["--prometheus", str(port), "--otlp", f"http://127.0.0.1:{unused.getsockname()[1]}"]
        with export(world.cwd, world.environ(), *words) as command:
            assert command.stderr.readline() == (
                "agent-relay: The collector does not take pushes: it cannot be reached (Connection refused). "
                "They are tried again.\n"
            )
            told = ask(port)[1].splitlines()
            assert 'agent_relay_delivery_failing{to="otlp"} 1.0' in told
            assert 'agent_relay_deliveries_total{outcome="taken",to="otlp"} 0.0' in told
            assert command.end(signal.SIGINT) == 130


def test_a_ledger_that_cannot_be_read_is_said_and_shown(world: World) -> None:
    """Figures without limits would be believed: once for people, and as a figure for programs."""
    why = world.spoil_ledger()
    port = find_port()
    with export(world.cwd, world.environ(), "--prometheus", str(port)) as command:
        assert command.stderr.readline() == f"agent-relay: who rests is unknown: {why}\n"
        assert command.stdout.readline() == f"Prometheus: http://127.0.0.1:{port}/metrics\n"
        assert "agent_relay_resting_known 0.0" in ask(port)[1].splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_collector_that_never_answers_keeps_nobody_from_ending(
    world: World, number: signal.Signals
) -> None:
    """Ctrl-C while a push waits for its answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = ["--otlp", f"http://127.0.0.1:{silent.getsockname()[1]}"]
        with export(world.cwd, world.environ(), *words) as command, silent.accept()[0]:
            wait_started(command)
            assert command.end(number) == 128 + number
            said = command.stderr.read()
    # A push that was waited for to its own limit would have been said to have failed.
    assert "does not answer in time" not in said
    assert "Traceback" not in said


def break_adapter(home: Path) -> str:
    """An adapter of the user's is none from now on; what is said of that."""
    broken = home / "config" / "adapters" / "zed"
    broken.mkdir(parents=True, mode=0o700)
    (broken / "adapter.toml").write_text("name = ")
    return f"an adapter is left out: {broken}/adapter.toml is not TOML"


def break_records(home: Path) -> str:
    """An agent's records cannot be read from now on; what is said of that."""
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_text("no database")
    return f"cannot read sessions from {folder}/opencode.db: file is not a database\n"


@pytest.mark.parametrize("spoil", [break_adapter, break_records])
def test_figures_that_leave_out_what_cannot_be_read_are_said_to(world: World, spoil: object) -> None:
    """A counter that falls because a database cannot be read looks like an agent that used less."""
    words = ["--prometheus", str(find_port()), "--interval", "1"]
    with export(world.cwd, world.environ(), *words) as command:
        wait_started(command)
        assert callable(spoil)
        why = f"agent-relay: the figures leave out what cannot be read: {spoil(Path(world.home))}"
        assert command.stderr.readline().startswith(why)
        assert command.end(signal.SIGINT) == 130
        assert command.stderr.read() == ""
