"""Programs are asked side by side, within limits, and none of them is left running."""

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import pytest

from agent_relay.system.processes import born, children, is_alive
from agent_relay.system.programs import Ending, ProgramAnswer, ask_programs
from tests.support.relay_world import wait_until


def ask(
    commands: Mapping[str, Sequence[str]], *, limit_s: float = 60, limit_bytes: int = 1 << 16
) -> dict[str, ProgramAnswer]:
    return dict(ask_programs(commands, limit_s=limit_s, limit_bytes=limit_bytes))


def test_every_end_is_told_apart() -> None:
    """Slow, broken, killed and missing have each another remedy."""
    found = ask(
        {
            "said": ["sh", "-c", "echo one; echo two >&2"],
            "failed": ["sh", "-c", "echo why >&2; exit 3"],
            "killed": ["sh", "-c", "kill -9 $$"],
            "missing": ["/nonexistent/program"],
            "endless": ["yes"],
        }
    )
    assert found["said"] == ProgramAnswer(Ending.ANSWERED, 0, b"one\n", b"two\n")
    assert found["failed"] == ProgramAnswer(Ending.ANSWERED, 3, b"", b"why\n")
    assert found["killed"] == ProgramAnswer(Ending.ANSWERED, -9)
    assert found["missing"] == ProgramAnswer(Ending.NOT_STARTED, why="No such file or directory", errno=2)
    assert found["endless"].ending is Ending.LONG


@pytest.mark.parametrize("size", [0, 1, 65535, 65536])
def test_all_that_was_said_within_the_limit_is_there(size: int) -> None:
    """A program that ends right after its last word has said it."""
    found = ask({"it": [sys.executable, "-S", "-c", f"import os; os.write(1, b'x' * {size})"]})["it"]
    assert (found.ending, found.output) == (Ending.ANSWERED, b"x" * size)


def test_one_byte_too_many_is_too_long() -> None:
    """The limit is where it says."""
    command = [sys.executable, "-S", "-c", "import os; os.write(1, b'x' * 65537)"]
    assert ask({"it": command})["it"].ending is Ending.LONG


@pytest.mark.size("test")
def test_those_who_are_late_are_killed_with_what_they_started() -> None:
    """Who answered has answered, whoever else hangs; one who closes its output and stays is late too."""
    mine = {pid for pid, _ in children(os.getpid())}
    hang = ["sh", "-c", "sleep 7201 & echo begun; wait"]
    shut = ["sh", "-c", "exec >&- 2>&-; sleep 7201"]
    found = ask({"hang": hang, "shut": shut, "quick": ["echo", "here"]}, limit_s=2)
    assert list(found) == ["quick", "hang", "shut"]
    assert found["quick"].output == b"here\n"
    assert found["hang"] == ProgramAnswer(Ending.LATE, output=b"begun\n")
    assert found["shut"] == ProgramAnswer(Ending.LATE)
    assert {pid for pid, _ in children(os.getpid())} == mine


def test_an_answer_does_not_wait_for_what_a_program_leaves_behind() -> None:
    """An agent that renews itself in the background has answered, and what it left is not ours to end."""
    found = ask({"it": ["sh", "-c", "sleep 7202 & echo $!"]})["it"]
    pid = int(found.output)
    when = born(pid)
    assert found.ending is Ending.ANSWERED
    assert when is not None
    assert is_alive(pid, when)
    os.kill(pid, 9)


def test_whoever_stops_listening_leaves_nothing_running() -> None:
    """Ctrl-C comes in the middle."""
    asked = ask_programs({"quick": ["echo"], "hang": ["sh", "-c", "echo; sleep 7203"]}, limit_s=600)
    mine = children(os.getpid())
    with contextlib.closing(asked):
        assert next(asked)[0] == "quick"
        assert len(children(os.getpid())) == len(mine) + 1
    wait_until(lambda: children(os.getpid()) == mine, "it is gone")


class EndedError(Exception):
    """A signal came."""


@pytest.mark.size("test")
def test_a_signal_right_after_a_start_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the program runs for a while before the call that started it is back."""
    start = os.posix_spawn
    mine = children(os.getpid())

    def start_and_be_told(*words: object, **options: object) -> int:
        pid = start(*words, **options)  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGUSR1)
        return pid

    def end(_number: int, _frame: object) -> None:
        raise EndedError

    monkeypatch.setattr(os, "posix_spawn", start_and_be_told)
    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(EndedError):
            ask({"it": ["sleep", "7204"]}, limit_s=5)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert children(os.getpid()) == mine
