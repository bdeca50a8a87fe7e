import asyncio

import pytest
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from agent_relay.faces.shell._prompt import ShellPrompt, gather_text
from tests.support.shells import ShellPerson, list_prompts


class Counting:
    """Nobody works; what stands above the prompt was asked for `asked` times."""

    def __init__(self) -> None:
        self.asked = 0

    def list_waiting(self) -> list[str]:
        """Nothing waits."""
        return []

    def render_status(self, width: int) -> str:
        """A line, whose making is counted."""
        del width
        self.asked += 1
        return "demo"

    def interrupt(self) -> None:
        """Nobody is there."""

    def take_back(self) -> str:
        """Nothing."""
        return ""

    def is_working(self) -> bool:
        """Nobody."""
        return False


def test_a_line_of_thousands_of_rows_asks_once_what_stands_above_it() -> None:
    """Asked for at every row, a pasted line of 280 KB took seconds, and as long again with every key."""
    behind = Counting()

    async def ask() -> str:
        with create_pipe_input() as source:
            prompt = ShellPrompt(
                behind,
                history=InMemoryHistory(),
                completer=DummyCompleter(),
                output=DummyOutput(),
                source=source,
            )

            def press_enter(_app: object) -> None:
                if prompt.app.current_buffer.text:
                    source.send_text("\r")

            prompt.app.after_render += press_enter
            source.send_text("\x1b[200~" + "word " * 10_000 + "\x1b[201~")
            return await asyncio.wait_for(prompt.ask(), 60)

    assert len(asyncio.run(ask())) == 50_000
    assert 0 < behind.asked < 20


def test_much_text_at_once_is_one_paste_with_its_lines() -> None:
    """A terminal that brackets no pastes must not make each letter a key, nor each tab a completion."""
    keys = [*"x" * 70, Keys.ControlJ, Keys.ControlI, "y", Keys.ControlM, *"z" * 63, Keys.Left, "é"]
    gathered = list(gather_text(KeyPress(key) for key in keys))
    assert (gathered[0].key, gathered[0].data) == (Keys.BracketedPaste, "x" * 70 + "\n\ty")
    assert [key.key for key in gathered[1:]] == [Keys.ControlM, *"z" * 63, Keys.Left, "é"]


@pytest.mark.size("test")
def test_a_long_paste_without_brackets_is_one_message_that_can_be_edited(person: ShellPerson) -> None:
    """It stands there within a moment, whole, and goes on being a line to edit."""
    text = "\n".join(f"row {number} of a log somebody pastes" for number in range(8000))
    data = text.encode()
    for at in range(0, len(data), 1024):
        person.terminal.send(data[at : at + 1024])
        person.terminal.pump(0)
    person.wait_for("row 7999 of a log somebody pastes")
    person.press("!\x1b[D?\r", shows="demo heard you")
    assert list_prompts(person.world, person.session()) == [f"{text}?!"]
