"""A report is kept with the state of what it was made of, and is gone with the first change of that."""

import json
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.store.session_index import write_entry
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.gather import TrackedEnvironment, Wanted, gather_metrics
from agent_relay.usage.report_cache import find_report, keep_report
from agent_relay.usage.scan.files import look_at
from tests.house import tree

SESSION = "01M7Y8XZEX7SAVV4H1XBVMVZT6"
LATER_NS = 10_000_000_000
"""As if everything had been there for a while already."""


def _row(key: str, output: int) -> str:
    message = {"id": key, "model": "m", "usage": {"input_tokens": 1, "output_tokens": output}}
    row = {"sessionId": "s1", "message": message, "type": "assistant", "timestamp": "2026-11-20T10:00:00Z"}
    return json.dumps(row, separators=(",", ":")) + "\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home with one answer in one file, and a repository `work` in it."""
    path = tmp_path / ".claude/projects/a/s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(_row("m1", 5))
    (tmp_path / "work").mkdir()
    return tmp_path


def _keep(home: Path, *, is_all: bool = True) -> list[str]:
    """A report is kept with what the look was made of; where the agents' own sessions in it worked."""
    folders = Folders(f"{home}/run", f"{home}/state", f"{home}/config", f"{home}/cache")
    environ = TrackedEnvironment({"HOME": f"{home}"})
    asked = {"cwd": f"{home}/work", "environ": environ, "now": datetime.now(UTC)}
    gathered = gather_metrics(folders, Wanted(is_all=is_all), **asked)  # type: ignore[arg-type]  # three kinds
    assert gathered.is_lasting
    began_ns = time.time_ns() + LATER_NS
    keep_report(
        folders.reports,
        "q",
        "told",
        paths=gathered.looked,
        found=gathered.read.found,
        names=environ.names,
        began_ns=began_ns,
        places=gathered.places,
    )
    return sorted(native.cwd for native in gathered.natives)


@pytest.mark.parametrize("what", ["grown", "new-file", "new-folder", "removed", "rewritten", "renamed"])
def test_whatever_an_agent_writes_is_seen(home: Path, what: str) -> None:
    """Agents append, begin files and folders, and rotate or rewrite what is there."""
    _keep(home)
    assert find_report(f"{home}/cache/reports", "q") == "told"
    place = home / ".claude/projects"
    match what:
        case "grown":
            with (place / "a/s1.jsonl").open("a") as file:
                file.write(_row("m2", 7))
        case "new-file":
            (place / "a/s2.jsonl").write_text(_row("m2", 7))
        case "new-folder":
            (place / "b").mkdir()
        case "removed":
            (place / "a/s1.jsonl").unlink()
        case "rewritten":
            before = (place / "a/s1.jsonl").stat()
            (place / "a/s1.jsonl").write_text(_row("m1", 6))
            os.utime(place / "a/s1.jsonl", ns=(before.st_atime_ns, before.st_mtime_ns))
        case _:
            (place / "a/s1.jsonl").rename(place / "a/s0.jsonl")
    assert find_report(f"{home}/cache/reports", "q") == ""


@pytest.mark.parametrize("what", ["adapter", "project", "session", "index", "another-agent", "database"])
def test_whatever_says_where_to_look_is_seen(home: Path, what: str) -> None:
    """A new session, agent or adapter belongs into the next report."""
    _keep(home)
    assert find_report(f"{home}/cache/reports", "q") == "told"
    work, state = home / "work", home / "state"
    match what:
        case "adapter":
            shutil.copytree(f"{find_builtin_folder()}/claude", home / "config/adapters/claude")
        case "project":
            (work / ".agent-relay/adapters").mkdir(parents=True)
        case "session":
            (work / f".agent-relay/sessions/{SESSION}").mkdir(parents=True)
        case "index":
            (state / "sessions").mkdir(parents=True)
        case "another-agent":
            (home / ".codex/sessions/2026").mkdir(parents=True)
        case _:
            (home / ".local/share/opencode").mkdir(parents=True)
    assert find_report(f"{home}/cache/reports", "q") == ""


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
    """Nothing of the sessions changes with it: neither the report nor what was read before holds."""
    mark = _add_gemini(home)
    assert _keep(home, is_all=False) == []
    mark.write_text(f"{home}/work")
    assert find_report(f"{home}/cache/reports", "q") == ""
    assert _keep(home, is_all=False) == [f"{home}/work"]
    assert find_report(f"{home}/cache/reports", "q") == "told"
    mark.write_text(f"{home}/elsewhere")
    assert find_report(f"{home}/cache/reports", "q") == ""
    assert _keep(home, is_all=False) == []
    mark.unlink()
    assert find_report(f"{home}/cache/reports", "q") == ""


def test_a_link_that_leads_into_the_repository_later_is_seen(home: Path) -> None:
    """Where a session worked is a path: what it means can change without any of its files changing."""
    link = home / "link"
    (home / "elsewhere").mkdir()
    link.symlink_to(home / "elsewhere")
    row = json.loads(_row("m3", 7)) | {"sessionId": "s3", "cwd": f"{link}"}
    (home / ".claude/projects/a/s3.jsonl").write_text(json.dumps(row, separators=(",", ":")) + "\n")
    assert _keep(home, is_all=False) == []
    assert find_report(f"{home}/cache/reports", "q") == "told"
    link.unlink()
    link.symlink_to(home / "work")
    assert find_report(f"{home}/cache/reports", "q") == ""
    assert _keep(home, is_all=False) == [f"{link}"]


@pytest.mark.parametrize("what", ["grown", "new-file", "led-elsewhere", "appeared"])
def test_folders_behind_links_are_seen(home: Path, tmp_path: Path, what: str) -> None:
    """Whoever keeps sessions on another disk links to it, also while that disk is not there."""
    far, projects = tmp_path / "far", home / ".claude/projects"
    (far / "b").mkdir(parents=True)
    (far / "b/s2.jsonl").write_text(_row("m2", 7))
    (projects / "b").symlink_to(far / "b")
    (projects / "c").symlink_to(far / "c")
    _keep(home)
    assert find_report(f"{home}/cache/reports", "q") == "told"
    match what:
        case "grown":
            with (far / "b/s2.jsonl").open("a") as file:
                file.write(_row("m4", 7))
        case "new-file":
            (far / "b/s4.jsonl").write_text(_row("m4", 7))
        case "led-elsewhere":
            (far / "b").rename(far / "before")
            (far / "b").mkdir()
        case _:
            (far / "c").mkdir()
    assert find_report(f"{home}/cache/reports", "q") == ""


def test_adapters_behind_links_are_seen(home: Path) -> None:
    """Whoever writes an adapter has it in a repository and links to it; a circle of links ends."""
    mine = home / "mine"
    shutil.copytree(f"{find_builtin_folder()}/claude", mine)
    mine.chmod(0o700)
    (home / "config/adapters").mkdir(parents=True, mode=0o700)
    (home / "config/adapters/claude").symlink_to(mine)
    (mine / "circle").symlink_to(mine)
    _keep(home)
    assert find_report(f"{home}/cache/reports", "q") == "told"
    with (mine / "adapter.toml").open("a") as file:
        file.write("\n")
    assert find_report(f"{home}/cache/reports", "q") == ""


def test_a_variable_that_moves_the_files_is_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another terminal may have another folder for the same agent."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    _keep(home)
    assert find_report(f"{home}/cache/reports", "q") == "told"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{home}/other")
    assert find_report(f"{home}/cache/reports", "q") == ""


def test_figures_that_change_with_time_do_not_last(home: Path) -> None:
    """A session under way gets longer with every second; a file that could not be read may be tomorrow."""
    shutil.copytree(tree.FIRST_FOLDER, home / "work/.agent-relay", symlinks=True)
    write_entry(f"{home}/state/sessions", SESSION, root=f"{home}/work", cwd=f"{home}/work")
    journal = home / f"work/.agent-relay/sessions/{SESSION}/journal.jsonl"
    asked = (Folders(f"{home}/run", f"{home}/state", f"{home}/config", f"{home}/cache"), Wanted(is_all=True))
    found = []
    for lines in (journal.read_text().splitlines(keepends=True), ["{}\n"]):
        for part in (lines, lines[: len(lines) // 2]):
            journal.write_text("".join(part))
            gathered = gather_metrics(
                *asked, cwd=f"{home}/work", environ={"HOME": f"{home}"}, now=datetime.now(UTC)
            )
            found.append((gathered.is_lasting, bool(gathered.problems)))
    assert found == [(True, False), (False, False), (False, True), (True, False)]


def test_what_changed_a_moment_ago_is_not_kept(tmp_path: Path) -> None:
    """A file may change again within the same tick of its clock, and nobody would see it."""
    folder, file = tmp_path / "reports", tmp_path / "file"
    file.write_text("one")
    changed = file.stat().st_ctime_ns
    keep_report(f"{folder}", "q", "told", paths=[f"{file}"], names=[], began_ns=changed + 1_000_000_000)
    assert find_report(f"{folder}", "q") == ""
    keep_report(f"{folder}", "q", "told", paths=[f"{file}"], names=[], began_ns=changed + 3_000_000_000)
    assert (find_report(f"{folder}", "q"), find_report(f"{folder}", "r")) == ("told", "")


def test_a_file_counts_in_the_state_it_was_read_in(tmp_path: Path) -> None:
    """An agent writes on while the report is made: what was read is not all there is, and never will be."""
    folder, file = tmp_path / "reports", tmp_path / "file"
    file.write_text("one")
    found = look_at(f"{file}")
    assert found is not None
    late_ns = time.time_ns() + LATER_NS
    keep_report(f"{folder}", "q", "told", paths=[], found=[found], names=[], began_ns=late_ns)
    assert find_report(f"{folder}", "q") == "told"
    file.write_text("one, two")
    keep_report(f"{folder}", "q", "told", paths=[], found=[found], names=[], began_ns=late_ns)
    assert find_report(f"{folder}", "q") == ""


def test_a_folder_others_can_reach_is_not_believed(tmp_path: Path) -> None:
    """Somebody else's figures would be shown as the user's own."""
    folder = tmp_path / "reports"
    keep_report(f"{folder}", "q", "told", paths=[], names=[], began_ns=1)
    assert find_report(f"{folder}", "q") == "told"
    folder.chmod(0o777)
    assert find_report(f"{folder}", "q") == ""


def test_another_installations_report_is_not_shown(tmp_path: Path) -> None:
    """Two versions beside each other share the folder, and may count differently."""
    folder = tmp_path / "reports"
    keep_report(f"{folder}", "q", "told", paths=[], names=[], began_ns=1)
    (place,) = folder.iterdir()
    kept = json.loads(place.read_text())
    place.write_text(json.dumps(kept))
    assert find_report(f"{folder}", "q") == "told"
    place.write_text(json.dumps(kept | {"program": f"{tmp_path}/kept_reports.py"}))
    assert find_report(f"{folder}", "q") == ""
