"""`run --wait`: a headless turn whose agents all rest goes on at the first reset."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from agent_relay.domain.state import State
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld
from tests.support.runs import find_sessions, read_lines, run, run_world, start

pytestmark = pytest.mark.size("every")


@contextmanager
def resting_world(resets_in_s: int) -> Iterator[RelayWorld]:
    """One agent, which meets its limit in the first turn and is well afterwards."""
    limit = {"limit": "You've hit your session limit", "resets_in_s": resets_in_s}
    scenes = [
        {"when": "paint", "do": [{"say": "I try."}, limit]},
        {"again": True, "do": [{"say": "It is blue."}]},
    ]
    with run_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=scenes)
        with open(f"{world.folders.config}/config.toml", "w", encoding="utf-8") as file:
            file.write('order = ["demo"]\n')
        yield world


def test_a_run_that_waits_goes_on_at_the_reset_in_the_same_session() -> None:
    """A night's work is one command, and its end is told once."""
    with resting_world(10) as world:
        process = start(world, "demo", "paint it", "--wait", "--json")
        assert process.stdout is not None
        out = b""
        while b'"waiting"' not in out:
            out += (line := process.stdout.readline())
            assert line, "it ended instead"
        # The same agent, resumed, begins its screenplay anew.
        write_screenplays(f"{world.folder}/plays", demo=[{"again": True, "do": [{"say": "It is blue."}]}])
        out += process.communicate(timeout=240)[0]
        lines = read_lines(out.decode())
        waits = next(line for line in lines if line["type"] == "waiting")
        assert [line["outcome"] for line in lines if line["type"] == "end"] == ["done"]
        assert (process.returncode, lines[-1]["type"]) == (0, "end")
        assert datetime.fromisoformat(waits["until"]) >= datetime.fromisoformat(waits["resets_at"])
        assert "Waiting until" in waits["message"]
        assert [line["session"] for line in lines if line["type"] == "turn"] == [waits["session"]] * 2
        assert [line["text"] for line in lines if line["type"] == "text"] == ["I try.", "It is blue."]


def test_who_stops_waiting_leaves_the_turn_resting() -> None:
    """Ctrl-C is a change of mind, not an end of the work."""
    with resting_world(3600) as world:
        process = start(world, "demo", "paint it", "--wait")
        assert process.stderr is not None
        line = b""
        while b"Waiting until" not in line:
            line = process.stderr.readline()
            assert line, "it ended instead"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 130
        (session,) = find_sessions(world)
        found = world.session(session)
        assert found.turn is not None
        assert (found.state, found.turn.outcome) == (State.ENDED, "resting")
        assert f"--continue {session}" in err.decode()


def test_a_run_does_not_wait_without_the_word_or_where_nobody_could_go_on() -> None:
    """Scripts know three; and a wait that nothing ends would hang them."""
    with resting_world(3600) as world:
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write("resume_at_reset = true\n")
        assert run(world, "demo", "paint it", "--wait", "-n", "1")[0] == 3
        assert run(world, "demo", "paint it")[0] == 3
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write('quiet_hours = "always"\n')
        status, _, err = run(world, "demo", "paint it", "--wait")
        assert (status, "--wait would never end" in err) == (2, True)
