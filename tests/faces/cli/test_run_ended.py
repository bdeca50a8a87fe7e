"""`agent-relay run` when something ends before its time, or when several run at once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.support.relay_world import RelayWorld, kill, wait_until
from tests.support.runs import find_agents, find_sessions, read_lines, run, run_world, start, wait_begun

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents; `run` starts the daemon."""
    with run_world() as made:
        yield made


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_agent_politely(world: RelayWorld, number: int, status: int) -> None:
    """Who ends the run means the agent; its last words still come."""
    process = start(world, "demo", "slow", "--json")
    session = wait_begun(world)
    process.send_signal(number)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == status
    assert read_lines(out.decode())[-1]["outcome"] == "stopped"
    wait_until(lambda: find_agents(world) == [], "no agent")
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session is over")


def test_a_reader_that_goes_away_ends_the_agent(world: RelayWorld) -> None:
    """`run … | head -1` must not leave an agent at work for nobody."""
    process = start(world, "demo", "gate")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"I begin.\n"
    process.stdout.close()
    Path(world.project, "go").touch()
    process.wait(timeout=120)
    process.stderr.close()
    assert process.returncode == 141
    wait_until(lambda: find_agents(world) == [], "no agent")


def test_a_killed_run_leaves_its_turn_to_the_daemon(world: RelayWorld) -> None:
    """An out-of-memory kill of the command must not cost the work: the turn comes to its end."""
    process = start(world, "demo", "soon")
    session = wait_begun(world)
    kill(process.pid)
    process.communicate()
    found = world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    assert found.turn is not None
    assert found.turn.outcome == "done"
    wait_until(lambda: find_agents(world) == [], "no agent")


def test_a_daemon_that_dies_costs_nothing(world: RelayWorld) -> None:
    """The agent works on, the next daemon adopts it, and the run prints everything once."""
    process = start(world, "demo", "soon")
    wait_begun(world)
    daemon = int(str(world.ask("daemon.status")["pid"]))
    kill(daemon)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, b"I begin.\nI end.\n"), err


def test_an_agent_whose_holder_is_killed_is_ended_and_the_run_fails(world: RelayWorld) -> None:
    """Nothing runs that nobody holds."""
    process = start(world, "demo", "slow")
    session = wait_begun(world)
    leg = world.session(session).leg
    assert leg is not None
    kill(leg.holder_pid)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert b"demo was lost with its holder" in err
    wait_until(lambda: find_agents(world) == [], "no agent")


def test_two_runs_at_once_do_not_meet(world: RelayWorld) -> None:
    """Each is a session of its own."""
    runs = [start(world, "demo", "soon") for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in runs] == [b"I begin.\nI end.\n"] * 2
    assert len(find_sessions(world)) == 2


def test_a_session_at_work_takes_no_second_turn(world: RelayWorld) -> None:
    """Two processes in one conversation would answer each other; a person's terminal is not taken over."""
    process = start(world, "demo", "slow")
    session = wait_begun(world)
    status, _, err = run(world, "demo", "hello", "--continue", session)
    assert status == 2
    assert "is at work" in err
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
