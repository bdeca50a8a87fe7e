"""Which of the agents' own sessions belong to a repository is asked anew at every look."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.system.disk.folders import Folders
from agent_relay.usage.gather import Wanted, gather_metrics
from tests.usage.records import answer, write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home with one answer in one file, and a repository `work` in it."""
    write(tmp_path / ".claude/projects/a/s1.jsonl", answer("m1", 5))
    (tmp_path / "work").mkdir()
    return tmp_path


def _list_cwds(home: Path) -> list[str]:
    """Where the agents' own sessions worked that belong to the repository."""
    folders = Folders(f"{home}/run", f"{home}/state", f"{home}/config", f"{home}/cache")
    gathered = gather_metrics(
        folders, Wanted(), cwd=f"{home}/work", environ={"HOME": f"{home}"}, now=datetime.now(UTC)
    )
    assert gathered.problems == []
    return sorted(native.cwd for native in gathered.natives)


def _add_gemini(home: Path) -> Path:
    """A session of an agent that keeps its working folder beside its sessions."""
    chats = home / ".gemini/tmp/shed/chats"
    chats.mkdir(parents=True)
    rows = (
        {"sessionId": "g1", "startTime": "2026-11-20T10:00:00.000Z", "kind": "main"},
        {"id": "a", "timestamp": "2026-11-20T10:00:01.000Z", "type": "gemini", "content": "", "model": "m",
         "tokens": {"input": 1, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 3}},
    )  # fmt: skip
    lines = (json.dumps(row, separators=(",", ":")) for row in rows)
    (chats / "session-1.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return home / ".gemini/tmp/shed/.project_root"


def test_a_working_folder_named_beside_sessions_is_read_again_when_that_changes(home: Path) -> None:
    """Nothing of the sessions changes with it: what was read of them before does not hold."""
    mark = _add_gemini(home)
    assert _list_cwds(home) == []
    mark.write_text(f"{home}/work")
    assert _list_cwds(home) == [f"{home}/work"]
    mark.write_text(f"{home}/elsewhere")
    assert _list_cwds(home) == []


def test_a_link_that_leads_into_the_repository_later_is_seen(home: Path) -> None:
    """Where a session worked is a path: what it means can change without any of its files changing."""
    link = home / "link"
    (home / "elsewhere").mkdir()
    link.symlink_to(home / "elsewhere")
    write(home / ".claude/projects/a/s3.jsonl", answer("m3", 7, sessionId="s3", cwd=f"{link}"))
    assert _list_cwds(home) == []
    link.unlink()
    link.symlink_to(home / "work")
    assert _list_cwds(home) == [f"{link}"]
