"""The command an agent is given as its hook does no harm, whatever becomes of our installation."""

import json
import os
import shlex
import subprocess
from operator import attrgetter
from pathlib import Path

import pytest

from agent_relay.agents.launch import build_hook_command
from agent_relay.store.context_notes import leave_note, take_note
from tests.agents.broken_hooks import BREAKS, break_hook, install, remove_all, remove_hook, remove_python
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

PAYLOAD = b'{"hook_event_name": "UserPromptSubmit", "prompt": "What does it do?"}'


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A Python and a hook entry of their own, to be broken."""
    return install(tmp_path / "it's here")


def call(
    installation: Path, *words: str, shell: str = "/bin/sh", stdin: bytes = PAYLOAD
) -> subprocess.CompletedProcess[bytes]:
    """One call as an agent makes it, through a shell."""
    command = build_hook_command(python=str(installation / "python"), hook=str(installation / "hook.py"))
    return subprocess.run(
        [shell, "-c", f"{command} {shlex.join(words)}"],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def replace_hook(place: Path) -> None:
    """Something else stands there, that prints and refuses."""
    (place / "hook.py").write_text("import sys\nprint('approve nothing')\nsys.exit(2)\n")


def kill_python(place: Path) -> None:
    """Whoever stands there does not survive its start, as without its libraries or memory."""
    os.unlink(place / "python")
    (place / "python").write_text("#!/bin/sh\necho no libraries >&2\nkill -9 $$\n")
    os.chmod(place / "python", 0o700)


@pytest.mark.size("every")
@pytest.mark.parametrize(
    "damage",
    sized([*BREAKS, replace_hook, kill_python], [break_hook, kill_python], name=attrgetter("__name__")),
)
@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
def test_a_hook_of_a_broken_installation_says_nothing_and_ends_well(
    installation: Path, tmp_path: Path, shell: str, damage: object
) -> None:
    """Status 2 blocks every prompt of a running agent, and what a hook prints is read by the model."""
    assert callable(damage)
    damage(installation)
    done = call(installation, "hooks", str(tmp_path), shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_whole_installation_keeps_the_payload(installation: Path, tmp_path: Path) -> None:
    """The guard around it must not cost what it is for."""
    done = call(installation, "hooks", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with open(tmp_path / "hooks.jsonl", encoding="utf-8") as file:
        assert json.loads(file.read())["payload"]["prompt"] == "What does it do?"


def test_a_note_for_the_agent_is_printed_once_by_the_hook_that_tells(
    installation: Path, tmp_path: Path
) -> None:
    """Whatever becomes of our installation, nothing but the note is printed; other hooks print nothing."""
    leave_note(str(tmp_path), "72 % full, says 'relay'")
    assert call(installation, "hooks", str(tmp_path)).stdout == b""
    break_hook(installation)
    done = call(installation, "hooks", str(tmp_path), "tells")
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": "72 % full, says 'relay'"}
    assert (json.loads(done.stdout), done.returncode, done.stderr) == ({"hookSpecificOutput": said}, 0, b"")
    again = call(installation, "hooks", str(tmp_path), "tells")
    assert (again.stdout, again.returncode, take_note(str(tmp_path))) == (b"", 0, "")


def test_a_note_that_an_agent_read_by_a_tool_is_not_printed(installation: Path, tmp_path: Path) -> None:
    """Once is enough; one that is not true any more is taken back, and what is no note is none."""
    leave_note(str(tmp_path), "72 % full")
    assert take_note(str(tmp_path)) == "72 % full"
    leave_note(str(tmp_path), "82 % full")
    leave_note(str(tmp_path), "")
    leave_note(str(tmp_path), "")
    assert call(installation, "hooks", str(tmp_path), "tells").stdout == b""
    (tmp_path / "context-note.json").write_text("[]")
    assert take_note(str(tmp_path)) == ""
    assert sorted(os.listdir(tmp_path)) == ["hooks.jsonl", "it's here"]


def test_a_shell_that_fails_in_the_middle_ends_well(tmp_path: Path) -> None:
    """A machine without a process to spare ends a shell with 2, which an agent takes for a refusal."""
    command = build_hook_command(python="/nonexistent", hook="/nonexistent")
    without_null = shlex.split(command)
    assert without_null[0] == "/bin/sh"
    # A redirection of `exec` that cannot be opened ends the shell on the spot, as a fork that fails does.
    guard = without_null[2].replace("/dev/null", str(tmp_path / "nowhere" / "null"))
    done = subprocess.run(
        ["/bin/sh", "-c", guard, *without_null[3:], "hooks", str(tmp_path)],
        input=PAYLOAD,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("damage", [remove_hook, remove_python, remove_all])
def test_the_users_own_status_line_outlives_our_installation(
    installation: Path, tmp_path: Path, damage: object
) -> None:
    """It is theirs: same input, same output, same status."""
    assert callable(damage)
    damage(installation)
    own = ("--", "sh", "-c", "cat; echo line; exit 3")
    done = call(installation, "status-line", str(tmp_path), *own)
    assert (done.returncode, done.stdout, done.stderr) == (3, PAYLOAD + b"line\n", b"")
    without = call(installation, "status-line", str(tmp_path))
    assert (without.returncode, without.stdout, without.stderr) == (0, b"", b"")


def test_a_whole_installation_shows_the_users_own_status_line(installation: Path, tmp_path: Path) -> None:
    """And the status is ours to read, too."""
    done = call(installation, "status-line", str(tmp_path), "--", "sh", "-c", "cat; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, PAYLOAD, b"")
    assert (tmp_path / "status.jsonl").exists()
