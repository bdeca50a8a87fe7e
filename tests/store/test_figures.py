"""Figures of sessions under watch, while their agents live and before the journal names what they are at."""

import json
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.names import build_ulid
from agent_relay.domain.session import Session
from agent_relay.domain.values import replace
from agent_relay.faces.watch._watch_loop import FiguresReader
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal
from agent_relay.system.disk.folders import Folders, get_folders
from agent_relay.usage.gather import Wanted

START = datetime.now(UTC) - timedelta(minutes=10)
NOW = START + timedelta(minutes=10)


class Machine:
    """A user's folders, and the demo agent's transcripts in them."""

    def __init__(self, folder: str) -> None:
        self.root = f"{folder}/work"
        self.environ = {
            "HOME": folder,
            "AGENT_RELAY_HOME": f"{folder}/relay",
            "DEMO_AGENT_HOME": f"{folder}/agents",
        }
        self.folders: Folders = get_folders(self.environ)
        self._count = 0
        os.makedirs(f"{folder}/agents/demo")
        os.makedirs(self.root)

    def transcribe(self, native_id: str, tokens: int, *plan: tuple[str, str]) -> None:
        """The agent wrote this in the session."""
        at = (START + timedelta(minutes=5)).isoformat()
        steps = [{"text": text, "status": status} for text, status in plan]
        rows: list[dict[str, object]] = [
            {"type": "session", "at": at, "id": native_id, "agent": "demo", "cwd": self.root},
            {"type": "prompt", "at": at, "text": "hello"},
            {"type": "plan", "at": at, "steps": steps},
            {"type": "usage", "at": at, "input": tokens, "output": 0},
        ]
        with open(f"{self.environ['DEMO_AGENT_HOME']}/demo/{native_id}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)

    def begin(self, *, native_id: str = "") -> Session:
        """A session whose agent works, as its journal tells it."""
        self._count += 1
        session = build_ulid(1_000 + self._count, b"0123456789")
        folder = f"{self.root}/.agent-relay/sessions/{session}"
        os.makedirs(folder, mode=0o700)
        bodies = (
            words.SessionCreated(session, self.root, self.root, ("demo",)),
            words.LegStarting(f"L{self._count}", "demo", 1, native_id=native_id),
            words.LegStarted(f"L{self._count}", 10, 11, 12),
            words.LegBusy(f"L{self._count}"),
        )
        with closing(SessionJournal(f"{folder}/journal.jsonl")) as journal:
            for body in bodies:
                journal.append(body, at=START, generation=1, durable=False)
        write_entry(self.folders.sessions, session, root=self.root, cwd=self.root)
        found = fold_events(read_events(f"{folder}/journal.jsonl"))
        assert found is not None
        return found

    def read(self, *sessions: Session) -> list[tuple[int | None, list[str]]]:
        """Tokens and plan of each."""
        reader = FiguresReader(self.folders, self.environ)
        found = reader.read(sessions, Wanted(), cwd=self.root, now=NOW)
        figures = [found[session.id] for session in sessions]
        return [
            (one.tokens.total if one.tokens is not None else None, [step.text for step in one.plan])
            for one in figures
        ]


@pytest.fixture
def machine(tmp_path: os.PathLike[str]) -> Machine:
    """One with nothing on it."""
    return Machine(f"{tmp_path}")


def test_a_session_the_journal_names_is_read(machine: Machine) -> None:
    """The plain case: relay chose the id."""
    machine.transcribe("n1", 120, ("write it", "pending"))
    assert machine.read(machine.begin(native_id="n1")) == [(120, ["write it"])]


def test_one_the_journal_does_not_name_yet_is_found_by_its_folder(machine: Machine) -> None:
    """Some agents choose their own id, which the journal learns when they end: nobody waits for that."""
    machine.transcribe("n7", 70, ("look", "completed"))
    assert machine.read(machine.begin()) == [(70, ["look"])]


def test_where_two_could_be_meant_nobody_is(machine: Machine) -> None:
    """Another session's tokens would be believed."""
    machine.transcribe("n1", 10)
    machine.transcribe("n2", 20)
    assert machine.read(machine.begin(), machine.begin()) == [(None, []), (None, [])]


def test_what_another_leg_is_at_is_not_taken(machine: Machine) -> None:
    """The newest session of the folder may be the neighbour's."""
    machine.transcribe("n1", 10)
    assert machine.read(machine.begin(native_id="n1"), machine.begin()) == [(10, []), (None, [])]


def test_a_leg_that_left_nothing_has_no_figures(machine: Machine) -> None:
    """Nothing is not zero; an agent nobody knows any more has none either."""
    session = machine.begin()
    assert machine.read(session) == [(None, [])]
    leg = session.legs[0]
    assert machine.read(replace(session, legs=(replace(leg, agent="gone"),))) == [(None, [])]
    assert machine.read(replace(session, legs=())) == [(None, [])]
