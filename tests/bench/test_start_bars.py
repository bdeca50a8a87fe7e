"""A daemon's start beside ten thousand sessions that ended, and beside none, in turns in one run."""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from agent_relay.store.session_index import list_ended
from tests.support.journals import write_session
from tests.support.peak import read_ticks
from tests.support.relay_world import RelayWorld, relay_world

pytestmark = pytest.mark.size("bench")

SESSIONS = 10_000
ROUNDS = 9
MORE_S = 0.050
"""What the start may take longer beside all of them."""


def write_ended(world: RelayWorld) -> None:
    """Sessions that ended, as the first daemon after an upgrade finds them: each is to be read once."""
    (sample := Path(world.folder, "sample")).mkdir()
    (journal,) = write_session(sample, "01JD" + "0" * 22, index=None, ended=True).glob("journal.jsonl")
    text = journal.read_text(encoding="utf-8")
    os.makedirs(world.folders.sessions, mode=0o700)
    for number in range(1, SESSIONS + 1):
        session = f"01JD{number:022}"
        folder = Path(world.project, ".agent-relay", "sessions", session)
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_text(text.replace("01JD" + "0" * 22, session), encoding="utf-8")
        entry = json.dumps({"root": world.project, "cwd": world.project})
        Path(world.folders.sessions, f"{session}.json").write_text(entry, encoding="utf-8")


def start(world: RelayWorld) -> tuple[float, float]:
    """Seconds until a daemon answers, and its processor time by then."""
    begin = time.monotonic()
    daemon = world.start_daemon()
    took = time.monotonic() - begin
    ticks = read_ticks(daemon.pid)
    world.kill_daemons()
    return took, ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(900)
def test_ten_thousand_sessions_that_ended_cost_a_start_next_to_nothing() -> None:
    """Who has worked for years must not wait longer for a terminal than on the first day."""
    with relay_world() as bare, relay_world() as full:
        write_ended(full)
        first = start(full)
        assert len(list_ended(full.folders.sessions)) == SESSIONS
        rounds = [(start(bare), start(full)) for _ in range(ROUNDS)]
    took = statistics.median(many[0] - none[0] for none, many in rounds)
    spent = statistics.median(many[1] - none[1] for none, many in rounds)
    sys.stdout.write(
        f"a start beside {SESSIONS:,} ended sessions: {took * 1e3:+.0f} ms, {spent * 1e3:+.0f} ms of"
        f" processor time; the one that read them all: {first[0]:.1f} s\n"
    )
    assert spent <= MORE_S
    assert took <= 2 * MORE_S
