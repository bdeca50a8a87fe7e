"""Show text over an agent's screen page by page; a repaint brings the screen back."""

from agent_relay.client.attach._overlay import clean
from agent_relay.domain.text.plain import count_columns
from agent_relay.terminal.query_answers import is_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.client.attach.prompt_input import PromptInput
    from agent_relay.client.attach.tty import UserTerminal

_ON = frozenset((b" ", b"\r", b"\n", b"\x1b[B", b"\x1bOB", b"\x1b[6~"))
_BACK = frozenset((b"\x7f", b"\x08", b"\x1b[A", b"\x1bOA", b"\x1b[5~"))


def show(terminal: "UserTerminal", typed: "PromptInput", lines: "Sequence[str]") -> bytes:
    """Show the lines until the person has seen them; return what was typed meanwhile for the agent.

    Lines too long for the window go on in the next row. What fits is shown at the bottom until any key is
    pressed; longer text is turned page by page, and any key that turns no page ends it. Control characters
    are made harmless.
    """
    # What was typed before there was anything to see does not end it.
    left = typed.take_rest()
    at = 0
    while True:
        rows, cols = terminal.cells()
        folded = [part for line in lines for part in fold(clean(line).rstrip(), max(1, cols - 1))]
        room = max(1, rows - 1)
        at = min(at, len(folded) - 1)
        terminal.write(_paint(folded, at, room, cols))
        while (unit := typed.take()) is not None and is_answer(unit):
            left += unit
        if unit in _ON and at + room < len(folded):
            at += room
        elif unit in _BACK and len(folded) > room:
            at = max(0, at - room)
        else:
            break
    # The first mark of a paste is no key: the paste is for the agent, and whole.
    if unit is not None and typed.in_paste:
        left += unit
    return left + typed.take_rest()


def _paint(folded: "Sequence[str]", at: int, room: int, cols: int) -> bytes:
    """Return what paints the rows from `at` and, below them, what the keys do.

    If there is more than one page, the rows take the whole screen.
    """
    shown = folded[at : at + room]
    has_pages = len(folded) > room
    labels = [" any key "]
    if has_pages:
        place = f" {at + 1}-{at + len(shown)} of {len(folded)} "
        labels = [f"{place}  Space goes on   any other key returns ", " Space, any key ", *labels]
        shown = [*shown, *[""] * (room - len(shown))]
    label = next((one for one in labels if len(one) < cols), labels[-1])
    first = room + 1 - len(shown)
    painted = "".join(f"\x1b[{first + row};1H\x1b[2K{text}" for row, text in enumerate(shown))
    # Nothing may wrap in the last row: the screen would move up, and its first row into the scrollback.
    return f"\x1b[?7l\x1b[0m{painted}\x1b[{room + 1};1H\x1b[2K\x1b[7m{label[: cols - 1]}\x1b[0m".encode()


def fold(text: str, width: int) -> list[str]:
    """Return the text in pieces of at most `width` columns, cut between words if there are any."""
    parts, line, used, space = [], "", 0, 0
    for sign in text:
        columns = count_columns(sign)
        if used + columns > width and line:
            cut = space if space and sign != " " else len(line)
            parts.append(line[:cut].rstrip())
            line = line[cut:].lstrip()
            used, space = count_columns(line), 0
            if not line and sign == " ":
                continue
        line += sign
        used += columns
        if sign == " ":
            space = len(line)
    return [*parts, line]
