"""`agent-relay hooks` says which files it changes, changes nothing else, and tells what became of them."""

import json
import os
from pathlib import Path

import pytest

from tests.faces.cli_run import Done, World, create_world
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal

pytestmark = pytest.mark.size("test")

PLAIN = '{\n  "theme": "dark"\n}\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A user with two agents and a file of settings."""
    world = create_world(f"{tmp_path}")
    for name in ("claude", "codex", "opencode"):
        path = Path(world.home, "bin", name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n", "utf-8")
        path.chmod(0o700)
    settings = Path(world.home, ".claude", "settings.json")
    settings.parent.mkdir()
    settings.write_text(PLAIN, "utf-8")
    return world


def run(world: World, *words: str) -> Done:
    """A command of ours in a script."""
    return world.run_with({"PATH": f"{world.home}/bin:{os.defpath}"}, "hooks", *words)


def read_states(world: World) -> dict[tuple[str, str], str]:
    """What `hooks status` says of each file."""
    rows = json.loads(run(world, "status", "--json").out)["hooks"]
    return {(row["agent"], row["scope"]): row["state"] for row in rows}


def test_install_says_what_it_changed_and_uninstall_brings_it_back(world: World) -> None:
    """In a script nobody is asked; what the user should know of an agent is said once."""
    settings = f"{world.home}/.claude/settings.json"
    done = run(world, "install")
    assert (done.status, done.err) == (0, "")
    assert f"claude: {settings} was changed." in done.out
    assert f"codex: {world.home}/.codex/hooks.json was changed." in done.out
    assert "Codex asks you once to review the new hook" in done.out
    assert not os.path.exists(f"{world.home}/.gemini")
    states = read_states(world)
    assert states["claude", "user"] == states["codex", "user"] == "installed"
    assert states["claude", "project"] == states["gemini", "user"] == "absent"
    assert states["opencode", ""] == "unsupported"
    assert f"claude: {settings} is already up to date." in run(world, "install", "claude").out
    assert run(world, "uninstall").status == 0
    assert Path(settings).read_text("utf-8") == PLAIN
    assert not os.path.exists(f"{world.home}/.codex")


def test_a_dry_run_shows_the_change_and_makes_none(world: World) -> None:
    """As a difference that people and programs can read."""
    done = run(world, "install", "claude", "--dry-run")
    assert "+++ " in done.out
    assert "StopFailure" in done.out
    assert json.loads(run(world, "install", "--dry-run", "--json").out)["changes"][0]["agent"] == "claude"
    assert Path(world.home, ".claude", "settings.json").read_text("utf-8") == PLAIN
    assert not os.path.exists(f"{world.home}/.codex")
    assert "Nothing would be changed." in run(world, "uninstall", "--dry-run").out


def test_one_file_that_is_refused_keeps_no_other_from_its_hooks(world: World) -> None:
    """One sentence says which, and why; the status is that of a failure."""
    settings = Path(world.home, ".claude", "settings.json")
    settings.write_text('{"theme": ', "utf-8")
    done = run(world, "install")
    assert done.status != 0
    assert f"{settings} was left alone: it is not JSON" in done.err
    assert read_states(world)["codex", "user"] == "installed"
    assert read_states(world)["claude", "user"] == "unreadable"
    assert settings.read_text("utf-8") == '{"theme": '


def test_a_project_has_hooks_of_its_own(world: World) -> None:
    """In the file an agent keeps out of the repository; the user's own stays as it is."""
    assert run(world, "install", "--project").status == 0
    local = Path(world.cwd, ".claude", "settings.local.json")
    assert "StopFailure" in json.loads(local.read_bytes())["hooks"]
    assert Path(world.home, ".claude", "settings.json").read_text("utf-8") == PLAIN
    assert run(world, "uninstall", "--project").status == 0
    assert not local.parent.exists()


def test_wrong_words_are_refused_in_one_sentence(world: World) -> None:
    """And change nothing."""
    rows = [
        (("install", "nobody"), "there is no agent 'nobody'"),
        (("install", "opencode"), "opencode does not support relay's hooks: with any plugin"),
        (("install", "demo"), "demo does not support relay's hooks"),
        (("install", "codex", "--project"), "codex has no private settings for a single repository"),
        (("frobnicate",), "unknown command"),
    ]
    for words, why in rows:
        done = run(world, *words)
        assert (words, done.status, why in done.err) == (words, 2, True)
    assert not os.path.exists(f"{world.home}/.codex")


def test_on_a_terminal_the_files_are_named_and_a_person_is_asked(world: World) -> None:
    """They are that person's files."""
    environ = {**world.environ(), "PATH": f"{world.home}/bin:{os.defpath}", "TERM": "xterm"}
    for answer, is_changed in (("n\r", False), ("y\r", True)):
        terminal = Terminal(Command(["hooks", "install", "claude"], environ, world.cwd))
        try:
            terminal.wait_for(r"Continue\? \[y/N\]")
            assert ".claude/settings.json" in terminal.screen
            terminal.send(answer)
            assert terminal.wait_exit() == 0
        finally:
            terminal.close()
        changed = Path(world.home, ".claude", "settings.json").read_text("utf-8") != PLAIN
        assert (answer, changed) == (answer, is_changed)


def test_doctor_says_when_hooks_point_to_an_installation_that_is_gone(world: World) -> None:
    """It was moved or upgraded; to install again renews them."""
    run(world, "install", "claude")
    settings = Path(world.home, ".claude", "settings.json")
    settings.write_text(settings.read_text("utf-8").replace("/hook.py", "/gone.py"), "utf-8")
    findings = json.loads(world.run("doctor", "--json").out)["findings"]
    [found] = [one for one in findings if "hooks in" in one["what"]]
    assert "point to an installation that is gone" in found["what"]
    assert found["remedy"].startswith("Run: agent-relay hooks install claude")
    assert read_states(world)["claude", "user"] == "gone"
    assert run(world, "install", "claude").status == 0
    assert read_states(world)["claude", "user"] == "installed"
