"""Into a pipe goes text alone: no command writes a terminal's sequences to whoever is none."""

import json
import os
import shutil
from pathlib import Path

import pexpect
import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from agent_relay.store.session_index import write_entry
from tests.faces.cli.test_json_everywhere import list_commands
from tests.faces.terminals import Spawned, Terminals
from tests.support.preloaded import Command

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
def coloured(terminals: Terminals) -> Terminals:
    """A user with a session that was handed over once, and with an agent, whose words are coloured."""
    world = terminals.world
    folder = Path(world.cwd) / ".agent-relay"
    shutil.copytree(find_example_folder(), folder, symlinks=True)
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        place.chmod(0o700)
    (journal,) = folder.glob("sessions/*/journal.jsonl")
    journal.chmod(0o600)
    lines = journal.read_text().splitlines()
    created = json.loads(lines[0])
    created["data"] |= {"task": RED, "root": world.cwd, "cwd": world.cwd}
    journal.write_text("".join(f"{line}\n" for line in (json.dumps(created), *lines[1:])))
    os.makedirs(f"{world.home}/state", mode=0o700)
    write_entry(f"{world.home}/state/sessions", journal.parent.name, root=world.cwd, cwd=world.cwd)
    play = {"scenes": [{"again": True, "do": [{"say": RED}]}]}
    Path(f"{world.home}/demo.json").write_text(json.dumps(play))
    return terminals


@pytest.mark.size("every")
def test_no_command_writes_an_escape_sequence_into_a_pipe(coloured: Terminals) -> None:
    """A log or a `grep` with `[31m` in it; and a file of a stranger's words that repaints who reads it."""
    commands = [words for words in list_commands() if words not in LAST]
    shown = ""
    found = []
    for words in [*commands, ("agent", "demo", "--json"), *LAST, ()]:
        done = coloured.world.run_with(coloured.environ() | FORCED, *words, *WORDS.get(words, ()))
        shown += done.out
        if "\x1b" in done.out + done.err or "\x07" in done.out + done.err:
            found.append(words)
    assert found == []
    # The words that could have been obeyed were there to be shown.
    assert "red" in shown


def test_colour_is_used_on_a_terminal_and_never_against_the_users_wish(terminals: Terminals) -> None:
    """NO_COLOR is one variable for every program, and is meant."""
    for wish in ("", "1"):
        child = Spawned(Command(["agents"], terminals.environ() | {"NO_COLOR": wish}, terminals.world.cwd))
        child.expect(pexpect.EOF)
        child.close()
        text = str(child.before)
        assert ("claude" in text, "\x1b[" in text) == (True, not wish)
