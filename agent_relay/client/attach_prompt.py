"""The one-line prompt behind the relay key, at the bottom of whatever the agent shows."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.terminal import Terminal

# Keys must arrive plain while the prompt is open; the repaint afterwards brings back what the agent had set.
_PLAIN = (
    b"\x18\x1b[?2026l\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[=0;1u\x1b[>4m\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1004l\x1b[?2004l\x1b[4l\x1b[0 q\x1b[?25h"
)
LABEL = " relay "
_HELP = "/use AGENT  /handoff  /status  /detach   Esc leaves"
_LONGEST = 4096
_ESCAPE, _ENTER, _INTERRUPT, _KILL, _WORD = b"\x1b", b"\r\n", b"\x03", b"\x15", b"\x17"
_ERASE = b"\x08\x7f"


class Again:
    """What the prompt ended in: the relay key again (`key`), or nothing to do."""

    __slots__ = ("key",)

    def __init__(self, *, key: bool) -> None:
        self.key = key


class Prompt:
    """Asks for one line. `read` returns the next bytes typed, `None` when the leg ended meanwhile."""

    __slots__ = ("_key", "_line", "_read", "_terminal")

    def __init__(self, terminal: "Terminal", read: "Callable[[], bytes | None]", relay_key: int) -> None:
        self._terminal = terminal
        self._read = read
        self._key = bytes((relay_key,))
        self._line = b""

    def ask(self, typed: bytes) -> "str | Again":
        """The line, stripped and not empty, or how it was left. `typed` came right after the relay key."""
        self._terminal.write(_PLAIN)
        data: bytes | None = typed
        self._draw()
        while data is not None:
            done = self._type(data)
            if done is not None:
                return done
            self._draw()
            data = self._read()
        return Again(key=False)

    def _type(self, data: bytes) -> "str | Again | None":
        if data.startswith(_ESCAPE):
            # A lone Escape leaves; arrows, mouse and late answers of the terminal are nothing here.
            return Again(key=False) if data == _ESCAPE else None
        for sign in (data[at : at + 1] for at in range(len(data))):
            if sign in (self._key, _INTERRUPT):
                return Again(key=sign == self._key and not self._line)
            if sign in _ENTER:
                line = self._line.decode("utf-8", "replace").strip()
                return line or Again(key=False)
            self._edit(sign)
        return None

    def _edit(self, sign: bytes) -> None:
        if sign in _ERASE:
            self._line = self._line.decode("utf-8", "replace")[:-1].encode()
        elif sign == _KILL:
            self._line = b""
        elif sign == _WORD:
            self._line = self._line.rstrip().rpartition(b" ")[0]
        elif sign >= b" " and len(self._line) < _LONGEST:
            self._line += sign

    def _draw(self) -> None:
        rows, cols, _, _ = self._terminal.size() or (24, 80, 0, 0)
        line = self._line.decode("utf-8", "ignore")
        room = max(1, cols - len(LABEL) - 2)
        shown = line[-room:]
        hint = f"\x1b[2m{_HELP[:room]}\x1b[0m\x1b[{rows};{len(LABEL) + 2}H" if not line else ""
        self._terminal.write(f"\x1b[{rows};1H\x1b[0m\x1b[2K\x1b[7m{LABEL}\x1b[0m {shown}{hint}".encode())

    def show(self, lines: "Sequence[str]") -> None:
        """Show what came of the line until a key is pressed; control characters are made harmless."""
        rows, cols, _, _ = self._terminal.size() or (24, 80, 0, 0)
        shown = [clean(line)[: cols - 1] for line in lines][-(rows - 1) :]
        first = rows - len(shown)
        painted = "".join(f"\x1b[{first + at};1H\x1b[2K{line}" for at, line in enumerate(shown))
        self._terminal.write(f"\x1b[0m{painted}\x1b[{rows};1H\x1b[2K\x1b[7m any key \x1b[0m".encode())
        self._read()


def clean(text: str) -> str:
    """The text without control characters, which could move the cursor or worse."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
