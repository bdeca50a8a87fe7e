"""Every command behind the relay key explains itself, and refuses what it does not take, doing nothing."""

import os
import time

import pytest

from agent_relay.client.attach.prompt import PendingAnswer
from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.commands import KEY_COMMANDS
from agent_relay.faces.cli.session.relay_prompt import PromptContext, run_prompt_line
from agent_relay.faces.cli.session.slash_commands import take_text
from agent_relay.system.disk.folders import get_folders

SESSION = "01K0000000000000000000000A"
LIMIT_S = 60.0
FIRST = {"use": "/use codex"}
"""The words before what is tried, for commands that need some."""


def refuse_to_connect() -> Connection:
    raise AssertionError("something is asked of the daemon")


@pytest.fixture
def context(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> PromptContext:
    """The prompt of a session; the daemon must not be needed."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")
    folder = f"{tmp_path}/tree/.agent-relay/sessions/{SESSION}"
    os.makedirs(folder)
    return PromptContext(SESSION, folder, refuse_to_connect, size=(24, 80))


def read(line: str, context: PromptContext) -> str:
    """What is shown for the line, once it is complete."""
    found = run_prompt_line(line, context)
    if isinstance(found, PendingAnswer):
        end = time.monotonic() + LIMIT_S
        while (lines := found.poll()) is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        found = tuple(lines)
    return "\n".join(found)


@pytest.mark.size("test")
@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("name", KEY_COMMANDS)
def test_who_asks_a_command_for_its_help_gets_that_and_nothing_else(
    context: PromptContext, name: str, option: str
) -> None:
    """`/stop --help` ended the agent, and `/relay --help` spent quota on a handover."""
    shown = read(f"/{name} {option}", context)
    assert shown.lower().startswith("usage: ")
    assert name in shown.splitlines()[0]
    if name in FIRST:
        assert read(f"{FIRST[name]} {option}", context) == shown
        assert read(f"{FIRST[name]} --model m {option}", context) == shown
    assert find_daemon_pid(get_folders()) is None


@pytest.mark.size("test")
@pytest.mark.parametrize("word", ["--nope", "-x"])
@pytest.mark.parametrize("name", KEY_COMMANDS)
def test_an_option_a_command_does_not_take_is_refused(context: PromptContext, name: str, word: str) -> None:
    """A mistyped option is no focus, and never a reason to end or hand over anything."""
    try:
        shown = read(f"{FIRST.get(name, f'/{name}')} {word}", context)
    except WrongUseError as error:
        shown = error.sentence
    assert word in shown or shown == f"/{name} takes no arguments"
    assert find_daemon_pid(get_folders()) is None


@pytest.mark.size("test")
@pytest.mark.parametrize("line", ["/stop x y", "/log x", "/detach x"])
def test_words_a_command_does_not_take_are_refused(context: PromptContext, line: str) -> None:
    """What is ignored was meant somehow."""
    with pytest.raises(WrongUseError, match="takes no arguments"):
        run_prompt_line(line, context)


@pytest.mark.size("test")
def test_help_names_the_command_line_as_it_is_typed_there(context: PromptContext) -> None:
    """It said that on the command line one types /use."""
    assert read("/use --help", context).splitlines()[-1] == (
        "On the command line: agent-relay AGENT --session ID"
    )


@pytest.mark.parametrize("text", ["shwo list", "shwo", "lst", "narative --json", "retri 01K"])
def test_a_misspelt_sub_command_is_no_focus(text: str) -> None:
    """`/handoff shwo list` handed over; the command line refuses it."""
    with pytest.raises(WrongUseError, match="/handoff has no command"):
        take_text("handoff", text, words=KEY_COMMANDS["handoff"].words)


@pytest.mark.parametrize(
    ("text", "focus"),
    [
        ("lint the code", "lint the code"),
        ("the tests", "the tests"),
        ("tests", "tests"),
        ("- one\n- two", "- one\n- two"),
        ("-- --help is broken", "--help is broken"),
        ("-- lint first", "lint first"),
        ("", ""),
        ("--", ""),
    ],
)
def test_all_else_is_a_focus(text: str, focus: str) -> None:
    """And behind two dashes everything is."""
    assert take_text("handoff", text, words=KEY_COMMANDS["handoff"].words) == focus
