"""The help of the command line: it fits a terminal, and is that of what was asked about."""

import os

import pytest

from agent_relay.faces.cli.command_help import render_help
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.dispatch import run


@pytest.fixture(autouse=True)
def home(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without sessions."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")


def test_the_help_fits_a_terminal_of_80_columns_and_names_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line broken in the middle of a word looks careless; a command nobody can find does not exist."""
    lines = render_help().splitlines()
    assert [line for line in lines if len(line) > 79] == []
    assert all(any(line.startswith(f"  {name}") for line in lines) for name in COMMANDS)
    assert (run(["--help"]), run([])) == (0, 0)
    assert capsys.readouterr().out == 2 * render_help()


def test_help_is_about_the_command_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """It was about all of them."""
    for words, first in (
        ("help run", "usage: agent-relay run AGENT TASK"),
        ("help packet show", "Usage: agent-relay packet show"),
        ("help claude", "usage: agent-relay AGENT [TASK]"),
        ("help", "A coding agent"),
        ("help --help", "A coding agent"),
        ("AGENT --help", "usage: agent-relay AGENT"),
        ("agent --help", "usage: agent-relay AGENT"),
        ("help agent", "usage: agent-relay AGENT"),
    ):
        assert run(words.split()) == 0, words
        assert capsys.readouterr().out.startswith(first), words


def test_help_on_what_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that looks for a command by its help took the status for a yes."""
    for words in ("help nosuch", "nosuch install --help", "nosuch -h"):
        assert run(words.split()) == 2, words
        shown = capsys.readouterr()
        assert (shown.out, shown.err[:45]) == ("", "agent-relay: there is no agent and no command"), words


def test_no_sub_command_is_explained_by_half_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """A text that ends in "what was..." tells nobody which of them to try."""
    for name in ("handoff", "packet", "hooks", "adapters"):
        assert run([name, "--help"]) == 0
        listed = capsys.readouterr().out.partition("Commands:")[2]
        assert listed, name
        assert "..." not in listed, name
