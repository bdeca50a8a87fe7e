"""`agent-relay run` when something ends before its time, when several run, and with odd streams."""

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from agent_relay.faces.cli.session.run import read_task
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, kill, wait_until
from tests.support.runs import SCENES, find_agents, find_sessions, read_lines, run_world, start, wait_begun

pytestmark = pytest.mark.size("every")

MORE_SCENES = [
    {"when": "short", "again": True, "do": [{"wait_s": 2}, {"say": "I end."}]},
    {"when": "faces", "again": True, "do": [{"say": "\U0001f600" * 200_000}]},
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with run_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=[*MORE_SCENES, *SCENES])
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


def shell(world: RelayWorld, script: str) -> tuple[int, str, str]:
    """How a script ended in which `run` is our command."""
    command = f'run() {{ {sys.executable} -m agent_relay run "$@"; }}; {script}'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=world.project,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_output_that_cannot_be_written_ends_the_agent(world: RelayWorld) -> None:
    """A full disk is nobody's mistake, and an agent whose words are lost must not go on spending."""
    status, _, err = shell(world, "run demo slow > /dev/full")
    assert (status, err) == (1, "agent-relay: nothing more can be written: No space left on device\n")
    wait_until(lambda: find_agents(world) == [], "no agent")


def test_a_stream_that_is_closed_is_nobodys_mistake(world: RelayWorld) -> None:
    """Supervisors start programs like that; what would be said there is not said."""
    for closed, out in ((">&-", ""), ("2>&-", "demo heard you\n")):
        status, said, err = shell(world, f"run demo hello {closed}")
        assert (status, said) == (0, out)
        assert "mistake" not in err
    # A closed input holds no task: that is wrong use.
    told = "agent-relay run: the task is empty\n  See: agent-relay run --help\n"
    assert shell(world, "run demo - <&-") == (2, "", told)


@pytest.mark.size("check")
def test_a_task_need_not_be_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """`git diff | agent-relay run codex -`: a diff quotes files in whatever encoding they have."""
    given = io.TextIOWrapper(io.BytesIO(b"h\xe9llo \0"), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "stdin", given)
    assert read_task().encode("utf-8", "surrogateescape") == b"h\xe9llo \0"


def test_letters_of_any_width_come_whole(world: RelayWorld) -> None:
    """An answer is measured as it is sent: a face takes twelve bytes there."""
    status, out, _ = shell(world, "run demo faces")
    assert (status, len(out), set(out)) == (0, 200_001, {"\U0001f600", "\n"})


def test_a_run_outlives_the_terminal_it_was_told_to_outlive(world: RelayWorld) -> None:
    """`nohup agent-relay run …`: what whoever started it ignores stays ignored."""
    command = f"{sys.executable} -m agent_relay run demo short"
    script = f"trap '' HUP INT; {command} & sleep 1.5; kill -HUP $!; kill -INT $!; wait $!"
    assert shell(world, script)[:2] == (0, "I end.\n")
