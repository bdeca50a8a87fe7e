"""Every command has `--json`: what a person reads, a script can."""

import json
import os
from collections.abc import Iterator

import pytest

from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.typer_runner import load_functions
from tests.faces.cli_run import World

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
