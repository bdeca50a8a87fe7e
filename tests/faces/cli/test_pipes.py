"""Into a pipe goes text alone: no command writes a terminal's sequences to whoever is none."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from agent_relay.store.session_index import write_entry
from tests.faces.cli.test_json_everywhere import list_commands
from tests.faces.cli_run import create_world
from tests.faces.terminals import Terminals

pytestmark = pytest.mark.size("test")

FORCED = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "PY_COLORS": "1", "TTY_COMPATIBLE": "1", "COLUMNS": "70"}
RED = "\x1b[31mred\x1b[0m \x1b]0;title\x07"
WORDS = {
    ("watch",): ("--no-follow", "--all"),
    ("run",): ("demo", "hello"),
    ("demo",): ("--help",),
    ("status",): ("--all",),
    ("metrics",): ("--all",),
    ("export",): ("--help",),
}
"""What a command needs to say something, and to end."""
LAST = [("stop",), ("daemon", "restart"), ("daemon", "stop")]


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    """A user with a session that was handed over once, and with an agent, whose words are coloured."""
    found = Terminals(create_world(f"{tmp_path}"))
    folder = Path(found.world.cwd) / ".agent-relay"
    shutil.copytree(find_example_folder(), folder, symlinks=True)
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        place.chmod(0o700)
    (journal,) = folder.glob("sessions/*/journal.jsonl")
    journal.chmod(0o600)
    lines = journal.read_text().splitlines()
    created = json.loads(lines[0])
    created["data"] |= {"task": RED, "root": found.world.cwd, "cwd": found.world.cwd}
    journal.write_text("".join(f"{line}\n" for line in (json.dumps(created), *lines[1:])))
    index = f"{found.world.home}/state/sessions"
    os.makedirs(f"{found.world.home}/state", mode=0o700)
    write_entry(index, journal.parent.name, root=found.world.cwd, cwd=found.world.cwd)
    play = {"scenes": [{"again": True, "do": [{"say": RED}]}]}
    Path(f"{found.world.home}/demo.json").write_text(json.dumps(play))
    yield found
    found.close()


def test_no_command_writes_an_escape_sequence_into_a_pipe(terminals: Terminals) -> None:
    """A log or a `grep` with `[31m` in it; and a file of a stranger's words that repaints who reads it."""
    commands = [words for words in list_commands() if words not in LAST]
    shown = b""
    found = []
    for words in [*commands, ("agent", "demo", "--json"), *LAST, ()]:
        done = subprocess.run(
            [sys.executable, "-m", "agent_relay", *words, *WORDS.get(words, ())],
            cwd=terminals.world.cwd,
            env=terminals.environ() | FORCED,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=180,
            check=False,
        )
        shown += done.stdout
        if b"\x1b" in done.stdout + done.stderr or b"\x07" in done.stdout + done.stderr:
            found.append(words)
    assert found == []
    # The words that could have been obeyed were there to be shown.
    assert b"red" in shown


def test_colour_is_used_on_a_terminal_and_never_against_the_users_wish(terminals: Terminals) -> None:
    """NO_COLOR is one variable for every program, and is meant."""
    code = "import sys; from agent_relay.__main__ import main; sys.argv[1:] = ['agents']; sys.exit(main())"
    seen = {}
    for wish in ("", "1"):
        child = terminals.spawn("-c", f"import os; os.environ['NO_COLOR'] = {wish!r}; {code}")
        child.expect(pexpect.EOF)
        text = child.before or ""
        assert "claude" in text
        seen[wish] = "\x1b[" in text
    assert seen == {"": True, "1": False}
