"""A journal nobody can read costs its own session only, and can be put out of the way."""

import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.faces.cli_run import World
from tests.support.at_work import begin, has_taken_over, working_world
from tests.support.journals import write_session
from tests.support.relay_world import RelayWorld
from tests.support.seats import run

pytestmark = pytest.mark.size("test")

DAMAGED = "01JD0000000000000000000009"
ALL = tuple(f"01JD000000000000000000001{number}" for number in range(4))


@pytest.fixture
def at_work() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with working_world() as made:
        yield made


def make_unreadable(journal: Path) -> None:
    """As an editor's mistake does."""
    journal.write_bytes(b"not json\n")


def spoil_middle(journal: Path) -> None:
    """Its beginning says what it always said."""
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b'{"v": 1, "n"\n' + b"".join(rest))


def make_pipe(journal: Path) -> None:
    """Who opens it without care waits for ever."""
    journal.unlink()
    os.mkfifo(journal)


def contradict(journal: Path) -> None:
    """Every line is an event, and the second cannot follow the first."""
    first = journal.read_bytes().splitlines(keepends=True)[0]
    line = {"v": 1, "n": 2, "at": "2026-11-21T18:20:00+00:00", "g": 0, "event": "session.woke", "data": {}}
    journal.write_bytes(first + json.dumps(line).encode() + b"\n")


def damage(root: str, index: str, how: Callable[[Path], None], session: str = DAMAGED) -> Path:
    """A session of the user's in `root` whose journal is damaged."""
    folder = write_session(Path(root), session, index=Path(index))
    how(folder / "journal.jsonl")
    return folder


def test_damaged_sessions_keep_no_command_from_the_one_that_runs(at_work: RelayWorld) -> None:
    """Neither would say which session is meant, and none of the agents could be ended or followed."""
    session = begin(at_work)
    for name, how in zip(ALL, (make_unreadable, spoil_middle, make_pipe, contradict), strict=True):
        damage(at_work.project, at_work.folders.sessions, how, name)
    passed = run(at_work, "relay")
    assert passed.status == 0, passed.err
    assert [name for name in ALL if f"session {name} is left out: " not in passed.err] == []
    at_work.wait_for(session, has_taken_over, "the understudy took over")
    stopped = run(at_work, "stop")
    assert stopped.status == 0, stopped.err
    at_work.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    said = run(at_work, "stop")
    assert said.status == 1
    assert "See: agent-relay doctor" in said.err


@pytest.mark.size("every")
def test_a_session_at_work_is_no_damaged_one_whatever_became_of_its_journal(at_work: RelayWorld) -> None:
    """The daemon knows all of it: its agent can still be ended."""
    session = begin(at_work)
    make_unreadable(Path(at_work.project, ".agent-relay", "sessions", session, "journal.jsonl"))
    refused = run(at_work, "doctor", "--put-aside", session)
    assert f"session {session} is at work" in refused.err
    stopped = run(at_work, "stop")
    assert stopped.status == 0, stopped.err


def test_the_command_doctor_names_puts_a_damaged_session_aside(world: World) -> None:
    """Somebody who does not know our files needs one line to copy; nothing is lost by it."""
    index = Path(world.home, "state", "sessions")
    folder = damage(world.cwd, str(index), make_unreadable)
    status = world.run("status")
    assert (status.status, "unreadable" in status.out) == (0, True)
    findings = json.loads(world.run("doctor", "--json").out)["findings"]
    (found,) = [finding for finding in findings if DAMAGED in finding["what"]]
    assert found["level"] == "note"
    assert found["what"].startswith(f"session {DAMAGED} cannot go on: line 1 of {folder}/journal.jsonl")
    before, _, command = found["remedy"].partition("agent-relay ")
    assert before == "Put it aside: "
    done = world.run(*shlex.split(command))
    assert done.out == f"Session {DAMAGED} was put aside; its files are in {folder}.unreadable\n"
    assert Path(f"{folder}.unreadable", "journal.jsonl").read_bytes() == b"not json\n"
    assert DAMAGED not in world.run("doctor").out
    assert json.loads(world.run("status", "--json", "--all").out)["sessions"] == []
    assert world.run("stop").err.splitlines()[0].endswith("no session is running here")


def test_a_sound_session_is_not_put_aside(world: World) -> None:
    """A wrong letter must not cost somebody's work."""
    write_session(Path(world.cwd), DAMAGED, index=Path(world.home, "state", "sessions"))
    refused = world.run("doctor", "--put-aside", DAMAGED)
    assert refused.status == 2
    assert f"the journal of session {DAMAGED} can be read" in refused.err
