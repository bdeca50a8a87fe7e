"""Every command of the shell explains itself, and refuses what it does not take, doing nothing."""

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace

import pytest

from agent_relay.client.connection import find_daemon_pid
from agent_relay.domain.errors import RelayError
from agent_relay.faces.cli.commands import SHELL_COMMANDS
from agent_relay.faces.cli.dispatch import run as run_command
from agent_relay.faces.shell._commands import run_line
from agent_relay.system.disk.folders import get_folders

SESSION = "01K0000000000000000000000A"
FIRST = {"use": "/use demo"}
"""The words before what is tried, for commands that need some."""


class IdleShell:
    """A shell in which nothing may happen; it keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.models: dict[str, str] = {}
        self.conversation = SimpleNamespace(agent="demo", session=SESSION, models=self.models)
        self.turns = SimpleNamespace(wait_over=self.wait_over)

    async def wait_over(self) -> None:
        """No turn is under way."""

    def say(self, *lines: str) -> None:
        self.shown += [f"said: {line}" for line in lines]

    def show(self, *lines: str) -> None:
        self.shown += lines

    def run_plain(self, words: Sequence[str]) -> int:
        return run_command([*words])

    def lend_terminal(self) -> AbstractContextManager[None]:
        raise AssertionError("the terminal is lent")

    def do_soon(self, act: object) -> None:
        raise AssertionError(f"{act} is done")

    def leave(self) -> None:
        raise AssertionError("the shell is left")


@pytest.fixture
def shell(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> IdleShell:
    """A shell of a user without sessions."""
    monkeypatch.setenv("AGENT_RELAY_HOME", f"{tmp_path}/home")
    os.makedirs(f"{tmp_path}/work")
    monkeypatch.chdir(f"{tmp_path}/work")
    return IdleShell()


def type_line(shell: IdleShell, line: str) -> None:
    asyncio.run(run_line(shell, line))  # type: ignore[arg-type]  # its parts are stand-ins


def test_who_asks_a_command_for_its_help_gets_that_and_nothing_else(
    shell: IdleShell, capsys: pytest.CaptureFixture[str]
) -> None:
    """`/use codex --help` handed over, with `--help` as the message."""
    failed = []
    for name in SHELL_COMMANDS:
        for words in (f"/{name} --help", f"/{name} -h", *([f"{FIRST[name]} -h"] if name in FIRST else [])):
            shell.shown.clear()
            if name != "help":
                type_line(shell, words)
                shown = "\n".join(shell.shown) or capsys.readouterr().out
                if not re.match(rf"usage: [^\n]*{name}", shown, re.IGNORECASE):
                    failed.append((words, shown[:100]))
    assert failed == []
    assert find_daemon_pid(get_folders()) is None


def test_an_option_a_command_does_not_take_is_refused(
    shell: IdleShell, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped option is no message, no model and never a reason to leave."""
    failed = []
    for name in SHELL_COMMANDS:
        for word in ("--nope", "-x"):
            try:
                type_line(shell, f"{FIRST.get(name, f'/{name}')} {word}")
                told = capsys.readouterr().err
            except RelayError as error:
                told = error.sentence
            if word not in told and told != f"/{name} takes no arguments":
                failed.append((name, word, told))
    assert failed == []
    assert (shell.shown, shell.models) == ([], {})
    assert find_daemon_pid(get_folders()) is None


def test_words_a_command_does_not_take_are_refused(shell: IdleShell) -> None:
    """What is ignored was meant somehow."""
    for line in ("/exit now", "/new fix it", "/model large small", "/undo-handoff x"):
        with pytest.raises(RelayError):
            type_line(shell, line)


def test_before_the_first_message_each_command_says_what_it_lacks(shell: IdleShell) -> None:
    """Whoever wants a handoff undone wants to hand nothing over."""
    shell.conversation = SimpleNamespace(agent="demo", session="", root="", refresh=dict)
    shell.turns = SimpleNamespace(wait_over=shell.wait_over, is_working=False)
    for line, sentence in (
        ("/relay", "there is nothing to hand over yet"),
        ("/handoff", "there is nothing to hand over yet"),
        ("/undo-handoff", "there is no handoff to undo yet"),
    ):
        with pytest.raises(RelayError) as caught:
            type_line(shell, line)
        assert caught.value.sentence == sentence, line


class AskingShell(IdleShell):
    """A shell that keeps the plain commands it is asked to run."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.conversation.refresh = lambda: None

    def run_plain(self, words: Sequence[str]) -> int:
        self.asked.append(" ".join(words).replace(SESSION, "S"))
        return 0


def test_a_command_about_handoffs_is_about_the_shells_session() -> None:
    """With an option it was about the newest session of the folder."""
    shell = AskingShell()
    for line in ("history", "history --json", "history 01ABC", "plan --json", "list"):
        type_line(shell, f"/handoff {line}")
    assert shell.asked == [
        "handoff history S",
        "handoff history S --json",
        "handoff history 01ABC",
        "handoff plan --json --session S",
        "handoff list",
    ]
