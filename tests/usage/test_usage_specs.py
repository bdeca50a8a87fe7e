"""Where agents' records are is read off adapters unchecked; whose sessions count is asked at each look."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.catalog import load_adapters
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.gather import Wanted, gather_metrics, load_specs
from agent_relay.usage.record_files import UsageSpec
from tests.usage.records import answer, write

ADAPTER = """name = "{name}"
title = "Yours"
[launch]
program = "yours"
[deliver]
packet_by = "paste"
opening = "Go on."
[[quit]]
keys = "q"
wait_s = 1
[transcript]
reader = "demo-jsonl"
folder = "{{home}}/yours"
pattern = "*.jsonl"
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Of a user without adapters of their own."""
    return Folders(*(f"{tmp_path}/{name}" for name in ("run", "state", "config", "cache")))


def _tell(spec: UsageSpec) -> tuple[str, str, str, tuple[str, ...]]:
    return spec.reader, spec.folder, spec.pattern, spec.usage


def _checked(folders: Folders, root: str) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
    adapters = load_adapters(folders, root=root)
    return {name: _tell(one.adapter.transcript) for name, one in adapters.items() if one.adapter.transcript}


def test_our_own_adapters_say_the_same_unchecked(folders: Folders, tmp_path: Path) -> None:
    """Checking them costs a library, and whoever changes one has this test."""
    found = load_specs(folders, root=f"{tmp_path}/work", problems=[])
    assert {name: _tell(spec) for name, spec in found.items()} == _checked(folders, f"{tmp_path}/work")
    assert list(found) == sorted(found)
    assert {"claude", "codex", "gemini", "opencode"} <= set(found)


def test_a_users_adapter_is_one_of_them_and_takes_the_place_of_ours(folders: Folders, tmp_path: Path) -> None:
    """Someone who keeps the records elsewhere says so in an adapter of the same name."""
    for name in ("codex", "yours"):
        path = tmp_path / "config/adapters" / name / "adapter.toml"
        path.parent.mkdir(parents=True)
        path.write_text(ADAPTER.format(name=name))
    found = load_specs(folders, root=f"{tmp_path}/work", problems=[])
    assert _tell(found["codex"]) == _tell(found["yours"]) == ("demo-jsonl", "{home}/yours", "*.jsonl", ())
    assert {name: _tell(spec) for name, spec in found.items()} == _checked(folders, f"{tmp_path}/work")


def test_what_cannot_be_read_of_a_users_adapters_is_told_of(folders: Folders, tmp_path: Path) -> None:
    """Figures without an agent's would look right; a link that leads nowhere is no empty folder."""
    place = tmp_path / "config/adapters"
    (place / "yours").mkdir(parents=True)
    for text in ("name = 1", "[transcript]\nreader = 1", "nothing", ""):
        (place / "yours/adapter.toml").write_text(text)
        if not text:
            shutil.rmtree(place)
            place.symlink_to("adapters")
        problems: list[str] = []
        found = load_specs(folders, root=f"{tmp_path}/work", problems=problems)
        assert {"claude", "codex", "gemini", "opencode"} <= set(found)
        assert (text, [f"{place}" in problem for problem in problems]) == (text, [True])


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
