"""A journal that was deleted under its host is written again, and goes on from there."""

import errno
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import LegReady, SessionCreated
from agent_relay.store.journal import read_events
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_journals import SessionJournal

NOW = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)


def test_a_journal_written_again_goes_on_although_its_name_was_not_safe_at_first(tmp_path: Path) -> None:
    """A disk may be full for the name alone: refused for ever, the session would never go on."""
    synced: list[str] = []
    refusals = [OSError(errno.ENOSPC, "No space left on device")]

    def sync(folder: str) -> None:
        if refusals:
            raise refusals.pop()
        synced.append(folder)

    folder = make_session_folder(str(tmp_path), "01K00000000000000000000000")
    path = f"{folder}/journal.jsonl"
    kept = SessionJournal(path, sync=sync)
    created = SessionCreated("01K00000000000000000000000", str(tmp_path), str(tmp_path), ("demo",), "")
    kept.append(created, at=NOW, generation=0, durable=True)
    shutil.rmtree(tmp_path / ".agent-relay")
    with pytest.raises(RelayError, match="No space left on device"):
        kept.append(LegReady("L1"), at=NOW, generation=0, durable=False)
    assert synced == []
    for _ in range(2):
        kept.append(LegReady("L1"), at=NOW, generation=0, durable=False)
    assert synced == [folder]
    assert [event.body.name for event in read_events(path)] == ["session.created", "leg.ready", "leg.ready"]
    assert [event.number for event in kept.events] == [1, 2, 3]
    assert sorted(os.listdir(folder)) == [".gitignore", "journal.jsonl", "resume"]
    kept.close()
