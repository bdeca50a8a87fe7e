"""Show the relay prompt over the agent's screen: the line typed there, and longer answers by the page."""

import time

from agent_relay.domain.text.plain import count_columns
from agent_relay.terminal.query_answers import is_answer

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.attach.prompt_input import PromptInput, Read
    from agent_relay.client.attach.tty import UserTerminal

LABEL = " relay "
SHORTEST_S = 2.0
"""The least time a message stays, so that a person who is typing sees it, too; keys reach the agent."""
LONGEST_S = 10.0
"""The most time a message stays: an agent's screen must not stay covered when nobody is there."""
# The screen's state is put aside for painting; input modes stay, since keys are the agent's all the time.
_PAINTING = b"\x18\x1b[?2026l\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[?25l"


def render_line(text: str, rows: int, cols: int) -> bytes:
    """Return what paints `text` over the lowest of `rows`, cut to what they hold.

    A repaint afterwards brings back what was covered.
    """
    parts = split_line(text, rows, cols)
    first = rows - len(parts) + 1
    painted = "".join(
        f"\x1b[{first + at};1H\x1b[2K\x1b[7m{' ' * len(LABEL) if at else LABEL}\x1b[0m {part}"
        for at, part in enumerate(parts)
    )
    return _PAINTING + painted.encode()


def split_line(text: str, rows: int, cols: int) -> list[str]:
    """Return `text` in as many pieces as it takes rows, at most all rows but one."""
    # Loaded where something is said: attaching must not pay for it.
    from agent_relay.domain.text.plain import split_columns

    room = max(1, cols - len(LABEL) - 2)
    return split_columns(clean(text), room)[: max(1, rows - 1)]


def clean(text: str) -> str:
    """Return the text without control characters, which could move the cursor or worse."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


# Keys must arrive plain while the prompt is open, and pastes between marks, since a line end within one is no
# Enter; the repaint afterwards brings back what the agent had set.
_PLAIN = (
    b"\x18\x1b[?2026l\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[=0;1u\x1b[>4m\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1004l\x1b[?2004h\x1b[4l\x1b[0 q\x1b[?25h"
)
DETACH = "/detach"
_HELP = "/use AGENT  /handoff  /log  /status  /help  /detach   Esc leaves"
_LONGEST = 4096
_ESCAPE, _ENTER, _INTERRUPT, _KILL, _WORD = b"\x1b", b"\r\n", b"\x03", b"\x15", b"\x17"
_ERASE = b"\x08\x7f"
_BELL = b"\x07"
_SPACE = 0x20


_TICK_S = 0.1
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class PendingAnswer:
    """The answer to a line that takes a while; `label` says what is being done."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label

    def poll(self) -> "Sequence[str] | None":
        """Return the lines to show once it is over, `None` before. Raise RelayError if it cannot be done."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Ask for an early end; harmless when it is over."""
        raise NotImplementedError

    def leave(self) -> None:
        """Go on without a caller: nobody waits for it any more, because the agent or its terminal is gone."""
        self.cancel()


class PromptExit:
    """The end of a prompt without a line: by the relay key again (`key`), or with nothing to do."""

    __slots__ = ("key",)

    def __init__(self, *, key: bool) -> None:
        self.key = key


class LinePrompt:
    """Asks for one line.

    `left` is input for the agent: whatever came after the line, after the key that ends a notice, or from
    the terminal itself. No other text is lost: it is in the line, or the bell rings.
    """

    __slots__ = ("_input", "_key", "_line", "_terminal", "left")

    def __init__(self, terminal: "UserTerminal", read: "Read", relay_key: int) -> None:
        self._terminal = terminal
        self._input = _open_input(read)
        self._key = bytes((relay_key,))
        self._line = b""
        self.left = b""

    def ask(self, typed: bytes) -> "str | PromptExit":
        """Return the line, stripped and not empty, or how the prompt was left.

        `typed` came right after the relay key.
        """
        self._terminal.write(_PLAIN)
        self._input.push(typed)
        done: str | PromptExit | None = None
        while done is None:
            if self._input.is_empty:
                self._draw()
            pasted = self._input.in_paste
            unit = self._input.take()
            if unit is None:
                return PromptExit(key=False)
            if pasted or self._input.in_paste:
                self._paste(unit)
            else:
                done = self._type(unit)
        if done == DETACH:
            # What comes next on this terminal begins on a row of its own.
            self._terminal.write(b"\r\x1b[2K")
        else:
            self._draw()
        self.left += self._input.take_rest()
        return done

    def _type(self, unit: bytes) -> "str | PromptExit | None":
        if unit.startswith(_ESCAPE):
            # A lone Escape leaves; arrows and mouse are nothing here.
            if _is_answer(unit):
                self.left += unit
            return PromptExit(key=False) if unit == _ESCAPE else None
        if unit in (self._key, _INTERRUPT):
            return PromptExit(key=unit == self._key and not self._line)
        if unit in _ENTER:
            line = self._line.decode("utf-8", "replace").strip()
            return line or PromptExit(key=False)
        self._edit(unit)
        return None

    def _paste(self, piece: bytes) -> None:
        """Add a paste to the line as text, its control characters as blanks."""
        if piece == _ESCAPE or not piece.startswith(_ESCAPE):
            self._add(bytes(max(sign, _SPACE) for sign in piece))

    def _edit(self, unit: bytes) -> None:
        if unit in _ERASE:
            self._line = self._line.decode("utf-8", "replace")[:-1].encode()
        elif unit == _KILL:
            self._line = b""
        elif unit == _WORD:
            self._line = self._line.rstrip().rpartition(b" ")[0]
        elif unit >= b" ":
            self._add(unit)

    def _add(self, text: bytes) -> None:
        if len(self._line) + len(text) > _LONGEST:
            self._terminal.write(_BELL)
        self._line = (self._line + text)[:_LONGEST]

    def _draw(self) -> None:
        rows, cols = self._terminal.cells()
        line = self._line.decode("utf-8", "ignore")
        room = max(1, cols - len(LABEL) - 2)
        shown = line[-room:]
        hint = f"\x1b[2m{_HELP[:room]}\x1b[0m\x1b[{rows};{len(LABEL) + 2}H" if not line else ""
        self._terminal.write(f"\x1b[{rows};1H\x1b[0m\x1b[2K\x1b[7m{LABEL}\x1b[0m {shown}{hint}".encode())

    def wait(
        self, found: "Sequence[str] | PendingAnswer", is_wanted: "Callable[[], bool]"
    ) -> "Sequence[str]":
        """Return the lines of `found`, with a spinner until they come; none if the terminal `is_wanted`.

        Escape and Ctrl-C cancel it; whatever else is typed is for the agent.
        """
        if not isinstance(found, PendingAnswer):
            return found
        began, is_cancelled = time.monotonic(), False
        lines: Sequence[str] | None = None
        try:
            while (lines := found.poll()) is None:
                if is_wanted():
                    return ()
                self._draw_waiting("cancelling" if is_cancelled else found.label, time.monotonic() - began)
                typed = self._input.take_within(_TICK_S)
                if typed.endswith((_ESCAPE, _INTERRUPT)):
                    typed = typed[:-1]
                    is_cancelled = True
                    found.cancel()
                self.left += typed
        finally:
            if lines is None:
                found.leave()
        return lines

    def _draw_waiting(self, label: str, past_s: float) -> None:
        rows, cols = self._terminal.cells()
        sign = _SPINNER[int(past_s / _TICK_S) % len(_SPINNER)]
        shown = f"{sign} {label} {past_s:.0f} s   Esc cancels"[: max(1, cols - len(LABEL) - 2)]
        self._terminal.write(f"\x1b[{rows};1H\x1b[0m\x1b[2K\x1b[7m{LABEL}\x1b[0m {shown}".encode())

    def show(self, lines: "Sequence[str]") -> None:
        """Show the lines until a key is pressed, page by page if there are many."""
        self.left += show(self._terminal, self._input, lines)


def _open_input(read: "Read") -> "PromptInput":
    # Imported when the relay key was pressed: what it costs is not to be paid by every attaching client.
    from agent_relay.client.attach.prompt_input import PromptInput

    return PromptInput(read)


def _is_answer(unit: bytes) -> bool:
    from agent_relay.terminal.query_answers import is_answer

    return is_answer(unit)


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
