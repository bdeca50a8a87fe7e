"""One person's terminal attached to a leg: what waits for it, its state, and the bar it may show."""

import time
from collections import deque

from agent_relay.terminal.keystrokes import HeldKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.terminal._bar_frame import BarFrame
    from agent_relay.terminal.keystrokes import KeyScanner


MOST_TEXTS = 8
LONGEST_TEXT = 2000


class Bar:
    """A bar: `texts` say the same in falling length; with `holds_keys` typed keys do not reach the agent."""

    __slots__ = ("holds_keys", "texts")

    def __init__(self, texts: "Sequence[str]", *, holds_keys: bool) -> None:
        self.texts = [text[:LONGEST_TEXT] for text in texts[:MOST_TEXTS]]
        self.holds_keys = holds_keys


class Terminal:
    """One person's terminal: `fd` is its tty, opened for us alone, or one end of a socket pair.

    `size` is rows, columns and pixels of width and height; `modes` are the settings of the tty's line
    discipline at the attach. `lagging` terminals get a repaint instead of what they missed; `covered` ones
    get nothing, because their client shows something else on them, and of these `paused` ones are not read
    either. `form` is how the terminal takes notifications, empty for not at all. While it shows the bar it is
    painted by its `frame`; while it `holds` keys they go to `held`. If it `keeps`, what it shows moves into
    its scrollback before the agent's first picture.
    """

    __slots__ = (
        *("covered", "ended", "fd", "form", "frame", "held", "holds", "keeps", "keys", "lagging", "modes"),
        *("_owed", "_taken", "out", "owes_end", "paused", "progress", "size", "tell"),
    )

    def __init__(
        self,
        fd: int,
        keys: "KeyScanner",
        size: tuple[int, int, int, int],
        tell: "Callable[[dict[str, object]], None]",
        modes: object = None,
    ) -> None:
        self.modes = modes
        self.form = ""
        self.fd = fd
        self.keys = keys
        self.size = size
        self.tell = tell
        self.out = bytearray()
        self._taken = 0
        self._owed: deque[tuple[int, bytes]] = deque()
        self.lagging = True
        self.covered = False
        self.paused = False
        self.ended = False
        self.frame: BarFrame | None = None
        self.holds = False
        self.held = HeldKeys()
        self.keeps = False
        self.owes_end = False
        self.progress = time.monotonic()

    @property
    def keeps_up(self) -> bool:
        """True if it gets the child's output as it comes."""
        return not (self.lagging or self.covered or self.frame is not None)

    def take(self, size: int) -> None:
        """Remove that many bytes, which the terminal took, from those that wait."""
        del self.out[:size]
        self._taken += size
        self.progress = time.monotonic()
        while self._owed and self._owed[0][0] <= self._taken:
            self._owed.popleft()

    def owe(self, answers: bytes) -> None:
        """Record that its own answers, like these of the emulator, follow once it was shown what waits."""
        if self.out:
            self._owed.append((self._taken + len(self.out), answers))

    def drop(self) -> bytes:
        """Drop what waits for the terminal; return the answers that it cannot give then."""
        answers = b"".join(answer for _, answer in self._owed)
        self._owed.clear()
        self._taken += len(self.out)
        self.out.clear()
        return answers
