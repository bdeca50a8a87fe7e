"""Commands on ground that is not as it should be: a folder that is gone, a parent's odd signals, odd text."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.dispatch import run
from agent_relay.store.session_index import write_entry
from tests.faces.cli_run import World
from tests.house import tree
from tests.support.sizes import sized

MORE_WORDS = {
    "run": ("demo", "a task"),
    "chat": ("demo", "understudy", "a task"),
    "race": ("demo", "understudy", "a task"),
    "handoff": ("list",),
    "packet": ("show",),
    "replay": ("none", "--agent", "demo"),
    "adapters": ("list",),
    "daemon": ("status",),
    "watch": ("--no-follow",),
}
"""What a command needs to do its work, where it needs words."""
READING = {
    "journal.jsonl": (
        *(("status", "--all"), ("status", "--json"), ("sessions",), ("metrics",), ("handoff", "list")),
        *(("handoff", "history"), ("watch", "--no-follow"), ("packet", "show")),
    ),
    "resume/0001-understudy.json": (
        *(("packet", "show"), ("packet", "verify"), ("packet", "export"), ("packet", "diff")),
        *(("status", "--all"), ("handoff", "history")),
    ),
}
"""By what others wrote, the commands that read it."""
WORKING = [*(name for name in COMMANDS if name != "demo"), "demo-agent", "understudy"]
AGENT_RELAY = (sys.executable, "-m", "agent_relay")
HALF = "\ud800"


@pytest.fixture
def told(world: World) -> Path:
    """The folder of a session of the user's, as the example tells one."""
    shutil.copytree(find_example_folder(), f"{world.cwd}/.agent-relay")
    (session,) = os.listdir(f"{world.cwd}/.agent-relay/sessions")
    write_entry(f"{world.home}/state/sessions", session, root=world.cwd, cwd=world.cwd)
    return Path(f"{world.cwd}/.agent-relay/sessions/{session}")


def run_from_deleted(world: World, folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """How a command ends that is started in a folder which was deleted."""
    return subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *AGENT_RELAY, *words],
        cwd=folder,
        env=world.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def find_crashes(world: World) -> list[str]:
    """The crash reports that were written."""
    folder = f"{world.home}/state/crashes"
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.mark.size("every")
@pytest.mark.parametrize("name", sized(WORKING, {"status", "understudy", "packet"}))
def test_a_command_in_a_deleted_folder_says_that_or_does_its_work(world: World, name: str) -> None:
    """Another terminal removed the worktree; that is no mistake of ours, and none of the agent's either."""
    done = run_from_deleted(world, world.cwd, name, *MORE_WORDS.get(name, ()))
    assert done.returncode in {0, 1, 2, 69}
    assert done.returncode != 1 or done.stderr == (
        "agent-relay: the folder you are in has been deleted, so nobody can tell which project is meant\n"
        "  Go to one that is there: cd FOLDER\n"
    )
    assert find_crashes(world) == []


@pytest.mark.size("test")
def test_a_named_session_is_found_from_a_deleted_folder(world: World, told: Path) -> None:
    """Where somebody stands says nothing about a session that is elsewhere and named."""
    gone = f"{world.home}/gone"
    os.mkdir(gone)
    done = run_from_deleted(world, gone, "packet", "show", told.name)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_working_folder_is_asked_for_in_one_place() -> None:
    """A command that asks the system itself would crash where the folder is gone."""
    asking = [name for name in tree.python_files("agent_relay") if "os.getcwd()" in tree.read_text(name)]
    assert asking == ["agent_relay/system/disk/folders.py"]


@pytest.mark.size("every")
def test_a_parent_that_ignores_the_ends_of_its_children_changes_nothing(world: World) -> None:
    """Some supervisors start us so; the kernel then keeps no status for anybody below them."""

    def run_ignoring(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*AGENT_RELAY, *words],
            cwd=world.cwd,
            env=world.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )

    assert run_ignoring("demo", "--fast").returncode == 0
    done = run_ignoring("run", "demo", "say hello")
    assert (done.returncode, done.stderr[:11]) == (0, "→ Session 0")
    assert find_crashes(world) == []


def spoil(value: object) -> Iterator[object]:
    """Copies of `value`, each with half a surrogate pair in another one of its texts."""
    if isinstance(value, str):
        yield value + HALF
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for one in spoil(value[key]):  # type: ignore[index]  # a key of its own
            spoilt = copy.copy(value)
            spoilt[key] = one  # type: ignore[index]  # as above
            yield spoilt


@pytest.mark.size("every")
@pytest.mark.parametrize("name", READING)
def test_half_a_surrogate_pair_in_what_others_wrote_is_no_mistake_of_ours(
    world: World, told: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    r"""JSON can say `\ud800`; no stream, name or document can."""
    path = told / name
    text = path.read_text("utf-8")
    lines = text.splitlines() if name.endswith("l") else [text]
    for variable, value in world.environ().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(world.cwd)
    healthy = {words: run([*words]) for words in READING[name]}
    # The checkout is not the one the packet was made in, which `verify` says, and nothing was edited.
    assert healthy.pop(("packet", "verify"), 1) == 1
    assert set(healthy.values()) <= {0, 1}
    assert healthy["packet", "show"] == healthy["status", "--all"] == 0
    for number, line in enumerate(lines):
        for spoilt in spoil(json.loads(line)):
            path.write_text("\n".join([*lines[:number], json.dumps(spoilt), *lines[number + 1 :]]) + "\n")
            statuses = {words: run([*words]) for words in READING[name]}
            capsys.readouterr()
            assert {words for words, status in statuses.items() if status not in {0, 1, 2, 65}} == set()
    assert find_crashes(world) == []
