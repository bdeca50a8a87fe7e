"""A command that a hint names works as it stands: it exists, and it reaches the agent that is meant."""

import ast
import functools
import re
from collections.abc import Iterator

import pytest

from agent_relay.domain.text.hints import KEY_COMMANDS
from agent_relay.domain.text.names import (
    COMMAND_NAMES,
    agent_command,
    continue_command,
    retry_command,
)
from agent_relay.faces.cli.command_help import render_key_help
from agent_relay.faces.cli.commands import COMMANDS, SHELL_COMMANDS
from agent_relay.faces.cli.options import parse_open_words
from tests.house import tree

PROSE = {"is", "made", "lacks"}
"""Words that go on a sentence about agent-relay itself."""
PLACEHOLDERS = {"AGENT", "<agent>", "COMMAND"}
SUB_COMMANDS = {name: {*command.words} for name, command in COMMANDS.items() if command.words}
NAMED = re.compile(r"agent-relay (<agent>|[A-Za-z][A-Za-z-]*)(?: ([a-z][a-z-]+))?")
WRITERS = {
    "agent_relay/domain/text/names.py",
    # Their values are commands of ours, or our version, never an agent.
    "agent_relay/client/pending_answers.py",
    "agent_relay/faces/cli/session/agent.py",
    "agent_relay/faces/cli/doctor.py",
    "agent_relay/faces/cli/options.py",
    "agent_relay/faces/cli/typer_runner.py",
    "agent_relay/domain/text/hints.py",
    "agent_relay/session/ownership.py",
    "agent_relay/system/crash_reports.py",
    "agent_relay/faces/cli/commands.py",
    "agent_relay/__main__.py",
}


@functools.cache
def list_texts(name: str) -> tuple[str, ...]:
    """Every string of a module that is no docstring; what is filled in stands as a brace."""
    return tuple(_iterate_texts(name))


def _iterate_texts(name: str) -> Iterator[str]:
    module = tree.parse(name)
    parts = {
        id(part) for node in tree.walk(module) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    prose = {id(node.value) for node in tree.walk(module) if isinstance(node, ast.Expr)}
    for node in tree.walk(module):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | prose:
            yield node.value


def test_nobody_but_the_one_function_writes_a_command_with_an_agents_name() -> None:
    """An agent may be called like a command of ours: then the short form runs that command instead."""
    found = {
        name
        for name in tree.python_files("agent_relay")
        for text in list_texts(name)
        if "agent-relay {" in text
    }
    assert found - WRITERS == set()


def test_every_command_a_text_names_exists() -> None:
    """A hint is what somebody types who has just been stopped by something."""
    unknown = [
        f"{name}: agent-relay {first} {second or ''}"
        for name in tree.python_files("agent_relay")
        for text in list_texts(name)
        for first, second in NAMED.findall(text)
        if first in {*COMMANDS, *PLACEHOLDERS}
        and second
        and first in SUB_COMMANDS
        and second not in SUB_COMMANDS[first]
    ]
    assert unknown == []


def test_every_command_after_a_colon_is_a_command_or_an_agents() -> None:
    """`See: agent-relay hadoff` would be typed as it stands."""
    unknown = [
        f"{name}: agent-relay {first}"
        for name in tree.python_files("agent_relay")
        for text in list_texts(name)
        for first in re.findall(
            r"(?:: |see: |then |use: )agent-relay (<agent>|[A-Za-z][\w-]*)(?=[ .,;)]|$)", text
        )
        if first not in {*COMMANDS, *PLACEHOLDERS, "agent"} and first not in PROSE
    ]
    assert unknown == []


def test_every_command_that_is_named_behind_the_relay_key_is_known_there() -> None:
    """One types it there, and reads that there is no such command."""
    named = {
        word
        for name in tree.python_files("agent_relay")
        for text in list_texts(name)
        for word in re.findall(r"press\s+the\s+relay\s+key(?:\s+\([^)]*\))?\s+and\s+type\s+/([a-z-]+)", text)
    }
    assert {"use", "handoff", "detach"} <= named
    assert named <= {*KEY_COMMANDS, "detach", "help"}


def test_the_commands_hints_give_behind_the_relay_key_are_those_it_has() -> None:
    """What is rendered there is what that prompt and its help know."""
    told = {
        word[1:]
        for line in render_key_help()
        for word in line.replace("|", " ").split()
        if word.startswith("/")
    }
    assert told - {"detach"} == set(KEY_COMMANDS)


def test_every_slash_command_the_shell_names_is_one_of_its_own() -> None:
    """The shell says `/help` in a dozen places; a command that was renamed must be renamed in all."""
    unknown = [
        f"{name}: /{word}"
        for name in tree.python_files("agent_relay/faces/shell")
        for text in list_texts(name)
        for word in re.findall(r"(?:^|[ (])/([a-z][a-z-]+)(?=[ .,:;)]|$)", text)
        # Those of the relay prompt, in the agent's own screen.
        if word not in {*SHELL_COMMANDS, "detach", "log"}
    ]
    assert unknown == []


def test_the_names_hints_know_are_the_commands_there_are() -> None:
    """A command that is added takes its name from an agent that has it already."""
    assert {*COMMANDS, "agent", "help"} == COMMAND_NAMES


@pytest.mark.parametrize("agent", ["ada", *sorted(COMMAND_NAMES)])
def test_the_command_of_an_agent_reaches_that_agent_whatever_it_is_called(agent: str) -> None:
    """`agent-relay demo --session ID` was a hint for the demo agent, and ran the demonstration."""
    program, *words = continue_command(agent, "S", "--yes").split()
    assert program == "agent-relay"
    if words[0] == "agent":
        words = words[1:]
    else:
        assert words[0] not in COMMANDS
    assert words[0] == agent
    assert parse_open_words(words[1:]) == {"session": "S", "yes": True}


def test_the_other_commands_are_the_ones_there_are() -> None:
    """Each is one word of the table and what its own help lists."""
    assert agent_command("ada") == "agent-relay ada"
    assert retry_command("H", "--yes") == "agent-relay handoff retry H --yes"
    assert "retry" in COMMANDS["handoff"].words
