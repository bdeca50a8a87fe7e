"""Every command has `--json`, and writes no terminal's sequences to whoever is none."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.typer_runner import load_functions
from agent_relay.store.session_index import write_entry
from tests.faces.cli_run import World
from tests.faces.terminals import Spawned, Terminals
from tests.support.preloaded import Command

pytestmark = pytest.mark.size("test")


def list_commands() -> Iterator[tuple[str, ...]]:
    """The words of every command and sub-command."""
    for name, command in COMMANDS.items():
        words = ["", *command.words] if command.takes_words and name != "handoff" else load_functions(command)
        yield from ((name, word) if word else (name,) for word in words or command.words)


ELSEWHERE = {("mcp",), ("demo",)}
"""Commands that speak with a program by a protocol that is JSON already, or are tried in `test_demo.py`."""
ENDS_SOON = {
    # A second option that is wrong is refused before anything is done; one that is not known comes first.
    ("agent", "demo"): "--not-an-option",
    ("demo",): "--not-an-option",
    ("watch",): "--no-follow",
}


def test_every_command_takes_json(world: World) -> None:
    """The page of commands says so; a script must not have to find out which ones do."""
    refused, not_json = [], []
    for words in [*sorted({*list_commands()} - ELSEWHERE), ("agent", "demo")]:
        done = world.run(*words, "--json", *([ENDS_SOON[words]] if words in ENDS_SOON else []))
        if "'--json'" in done.err:
            refused.append(words)
        if not _is_json(done.out):
            not_json.append((words, done.out))
    assert (refused, not_json) == ([], [])


def _is_json(text: str) -> bool:
    """Whether it is nothing, one JSON document, or one a line."""
    for part in (text,), text.splitlines():
        try:
            found = [json.loads(one) for one in part if one.strip()]
        except ValueError:
            continue
        return all(isinstance(one, dict) for one in found)
    return False


def test_what_is_printed_is_json(world: World) -> None:
    """An option that is taken and not heeded would be worse than none."""
    os.makedirs(f"{world.cwd}/.agent-relay/adapters/zed")
    with open(f"{world.cwd}/.agent-relay/adapters/zed/adapter.toml", "w", encoding="utf-8") as stream:
        stream.write("name = 1\n")
    for words, keys in (
        ("adapters trust --yes", {"folder", "fingerprint", "files"}),
        ("adapters list", {"adapters", "broken", "project"}),
        ("order", {"order"}),
        ("model", {"models"}),
        ("status", {"sessions"}),
        ("race list", {"races"}),
    ):
        done = world.run(*words.split(), "--json")
        assert (words, done.status, done.err) == (words, 0, "")
        assert keys <= set(json.loads(done.out))


def test_nobody_is_asked_where_json_is_wanted(world: World) -> None:
    """A question on standard output is no JSON, and a script has nobody to answer it."""
    os.makedirs(f"{world.cwd}/.agent-relay/adapters/zed")
    done = world.run("adapters", "trust", "--json")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "agent-relay adapters trust: --json cannot ask for confirmation; add --yes\n"
        "  Read the files in .agent-relay/adapters first\n"
    )


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
