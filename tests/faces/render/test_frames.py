"""What comes within one frame is one write; a slow terminal holds the agent's words back."""

import threading

import pytest

from agent_relay.faces.render.turn_view import FrameWriter


class Terminal:
    """Takes writes when it is allowed to."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.is_free = threading.Event()
        self.is_asked = threading.Event()

    def write(self, text: str) -> None:
        self.is_asked.set()
        assert self.is_free.wait(120)
        self.writes.append(text)


def test_what_comes_meanwhile_is_one_write() -> None:
    """Every write makes the prompt be painted anew."""
    terminal = Terminal()
    frames = FrameWriter(terminal.write)
    frames.add("first")
    assert terminal.is_asked.wait(120)
    for number in range(100):
        frames.add(str(number))
    terminal.is_free.set()
    frames.finish()
    assert terminal.writes == ["first\n", "".join(f"{number}\n" for number in range(100))]


def test_no_write_is_larger_than_a_terminal_takes_at_once() -> None:
    """Between two of them keys get their turn."""
    terminal = Terminal()
    terminal.is_free.set()
    frames = FrameWriter(terminal.write, most=8192)
    for _ in range(1000):
        frames.add("x" * 99)
    frames.finish()
    assert "".join(terminal.writes) == ("x" * 99 + "\n") * 1000
    assert max(map(len, terminal.writes)) < 8192 + 100


def test_a_terminal_that_takes_nothing_stops_the_flow() -> None:
    """Ten gigabytes of output are no reason to hold them."""
    terminal = Terminal()
    frames = FrameWriter(terminal.write, most=8192)
    line = "x" * 1023
    is_done = threading.Event()

    def flood() -> None:
        for _ in range(40):
            frames.add(line)
        is_done.set()

    flooding = threading.Thread(target=flood)
    flooding.start()
    assert terminal.is_asked.wait(120)
    assert not is_done.wait(0.2)
    terminal.is_free.set()
    flooding.join(120)
    frames.finish()
    assert len("".join(terminal.writes)) == 40 * 1024


def test_without_output_nobody_wakes() -> None:
    """A finished turn leaves no thread, and a new one may begin."""
    terminal = Terminal()
    terminal.is_free.set()
    frames = FrameWriter(terminal.write)
    before = threading.active_count()
    frames.finish()
    frames.add("one")
    frames.finish()
    assert threading.active_count() == before
    frames.add("two")
    frames.finish()
    assert terminal.writes == ["one\n", "two\n"]


def test_a_terminal_that_is_gone_is_told_to_who_shows() -> None:
    """The turn's driver must end the turn, not wait for a reader that never comes back."""

    def refuse(_text: str) -> None:
        raise BrokenPipeError(32, "gone")

    frames = FrameWriter(refuse)
    frames.add("one")
    with pytest.raises(BrokenPipeError):
        frames.finish()
    with pytest.raises(BrokenPipeError):
        frames.add("two")
