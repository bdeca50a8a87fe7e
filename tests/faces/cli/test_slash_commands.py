"""Every command behind the relay key explains itself, and refuses what it does not take, doing nothing."""

from pathlib import Path

import pytest

from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.cli.commands import KEY_COMMANDS
from agent_relay.faces.cli.dispatch import run
from agent_relay.faces.cli.session.relay_prompt import PromptContext, run_prompt_line
from agent_relay.faces.cli.session.slash_commands import find_plain, take_text
from agent_relay.system.disk.folders import get_folders

SESSION = "01K0000000000000000000000A"
FIRST = {"use": "/use codex"}
"""The words before what is tried, for commands that need some."""


def refuse_to_connect() -> Connection:
    raise AssertionError("something is asked of the daemon")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromptContext:
    """The prompt of a session; neither a daemon nor a process is needed: its folder is gone."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")
    return PromptContext(SESSION, f"{tmp_path}/tree/gone", refuse_to_connect, size=(24, 80))


def read(line: str, context: PromptContext, capsys: pytest.CaptureFixture[str]) -> str:
    """What is shown for the line; of what another process would be started for, what that one would say."""
    try:
        found = run_prompt_line(line, context)
    except RelayError as error:
        if "cannot be started" not in error.sentence:
            raise
        word, _, rest = line.partition(" ")
        run([*find_plain(word, rest, SESSION)])
        shown = capsys.readouterr()
        return shown.out + shown.err
    assert isinstance(found, tuple)
    return "\n".join(found)


@pytest.mark.parametrize("name", KEY_COMMANDS)
def test_help_and_options_a_command_does_not_take_do_nothing(
    context: PromptContext, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`/stop --help` ended the agent, `/relay --help` handed over; a mistyped option is no focus either."""
    for option in ("--help", "-h"):
        shown = read(f"/{name} {option}", context, capsys)
        assert shown.lower().startswith("usage: ")
        assert name in shown.splitlines()[0]
        if name in FIRST:
            assert read(f"{FIRST[name]} {option}", context, capsys) == shown
            assert read(f"{FIRST[name]} --model m {option}", context, capsys) == shown
    for word in ("--nope", "-x"):
        try:
            shown = read(f"{FIRST.get(name, f'/{name}')} {word}", context, capsys)
        except WrongUseError as error:
            shown = error.sentence
        assert word in shown or shown == f"/{name} takes no arguments"
    assert find_daemon_pid(get_folders()) is None


def test_words_a_command_does_not_take_are_refused(context: PromptContext) -> None:
    """What is ignored was meant somehow."""
    for line in ("/stop x y", "/log x", "/detach x"):
        with pytest.raises(WrongUseError, match="takes no arguments"):
            run_prompt_line(line, context)


def test_help_names_the_command_line_as_it_is_typed_there(
    context: PromptContext, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that on the command line one types /use."""
    assert read("/use --help", context, capsys).splitlines()[-1] == (
        "On the command line: agent-relay AGENT --session ID"
    )


def test_a_misspelt_sub_command_is_no_focus() -> None:
    """`/handoff shwo list` handed over; the command line refuses it."""
    for text in ("shwo list", "shwo", "lst", "narative --json", "retri 01K"):
        with pytest.raises(WrongUseError, match="/handoff has no command"):
            take_text("handoff", text, words=KEY_COMMANDS["handoff"].words)


def test_all_else_is_a_focus() -> None:
    """And behind two dashes everything is."""
    texts = {
        **dict.fromkeys(["lint the code", "the tests", "tests", "- one\n- two", ""]),
        "-- --help is broken": "--help is broken",
        "-- lint first": "lint first",
        "--": "",
    }
    for text, focus in texts.items():
        told = take_text("handoff", text, words=KEY_COMMANDS["handoff"].words)
        assert told == (text if focus is None else focus)
