"""The relay key the user configured, and the one-line prompt behind it, below whatever the agent shows."""

import time

from agent_relay.client.attach.tty import LABEL, erase_rows
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.names import DEFAULT_RELAY_KEY, parse_relay_key
from agent_relay.system.disk.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.attach.prompt_input import Read
    from agent_relay.client.attach.tty import UserTerminal

    Command = Callable[[str], Sequence[str] | "PendingAnswer"]


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

    def __init__(self, *, key: bool) -> None:
        self.key = key


class LinePrompt:
    """Asks for one line.

    `left` is input for the agent: whatever came after the line, after the key that ends a notice, or from
    the terminal itself. No other text is lost: it is in the line, or the bell rings.
    """

    def __init__(self, terminal: "UserTerminal", read: "Read", relay_key: int) -> None:
        # Imported when the relay key was pressed: what it costs is not to be paid by every attaching client.
        from agent_relay.client.attach.prompt_input import PromptInput

        self._terminal = terminal
        self._input = PromptInput(read)
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
            self._terminal.write(erase_rows(1, self._terminal.cells()[0]))
        else:
            self._draw()
        self.left += self._input.take_rest()
        return done

    def _type(self, unit: bytes) -> "str | PromptExit | None":
        if unit.startswith(_ESCAPE):
            from agent_relay.terminal.query_answers import is_answer

            # A lone Escape leaves; arrows and mouse are nothing here.
            if is_answer(unit):
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

    def answer(self, line: str, run: "Command", is_wanted: "Callable[[], bool]") -> None:
        """Show what `run` returns for the line, or the RelayError it raises; nothing if there is nothing."""
        try:
            lines = self.wait(run(line), is_wanted)
        except RelayError as error:
            lines = [error.sentence, error.hint] if error.hint else [error.sentence]
        if lines:
            self.show(lines)

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
        from agent_relay.client.attach.prompt_input import show_pages

        self.left += show_pages(self._terminal, self._input, lines)


_CONFIG_BYTES = 1 << 20


def read_relay_key(config_folder: str) -> int:
    """Return the control byte of `relay_key` in the user's `config.toml`, or of the default.

    Raises ConfigurationError if it is set to something that cannot be a relay key.
    """
    path = f"{config_folder}/config.toml"
    try:
        data = read_bounded(path, limit_bytes=_CONFIG_BYTES)
    except FileNotFoundError:
        return parse_relay_key(DEFAULT_RELAY_KEY)
    if b"relay_key" not in data:
        return parse_relay_key(DEFAULT_RELAY_KEY)
    import tomllib

    try:
        found = tomllib.loads(data.decode()).get("relay_key", DEFAULT_RELAY_KEY)
        return parse_relay_key(str(found))
    except ValueError as error:
        # A TOML error and bytes that are no UTF-8 are ValueErrors as well.
        raise ConfigurationError(f"{path}: relay_key: {error}") from None
    except RecursionError:
        raise ConfigurationError(
            f"{path} cannot be read: its lists or tables are nested too deeply"
        ) from None
