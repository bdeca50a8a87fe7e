"""Output of the child: the emulated screen, the tail by byte offset, the states it announced."""

from collections import deque

from agent_relay.terminal.emulation.output_scanner import AgentStateScanner
from agent_relay.terminal.emulation.repaint import BEGIN, END_SYNC
from agent_relay.terminal.emulation.snapshot import snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from agent_relay.terminal._bar_frame import BarFrame
    from agent_relay.terminal.emulation.emulator import Emulator
    from agent_relay.terminal.holder._event_loop import Faults
    from agent_relay.terminal.holder._terminal import Bar

    Found = TypeVar("Found")
    Given = TypeVar("Given")

TAIL_BYTES = 1 << 20
# Small enough to come from the allocator's own store: one large buffer costs a read five times as much.
_BLOCK_BYTES = 64 << 10
# Without an emulator the last bytes are replayed and the program is nudged to repaint, as dtach does.
_REPLAYED_BYTES = 64 << 10
# One that breaks more often would be built anew with every read.
_MOST_RENEWED = 8


class Tail:
    """The last MiB written (up to two blocks more), addressed by the number of bytes written before it."""

    __slots__ = ("_blocks", "_closed", "_open", "total")

    def __init__(self) -> None:
        self._blocks: deque[bytearray] = deque()
        self._closed = 0
        self._open = bytearray()
        self.total = 0

    def append(self, data: bytes) -> None:
        """Append the next bytes; forget what no longer fits."""
        self._open += data
        self.total += len(data)
        if len(self._open) >= _BLOCK_BYTES:
            self._blocks.append(self._open)
            self._closed += len(self._open)
            self._open = bytearray()
            while self._closed - len(self._blocks[0]) >= TAIL_BYTES:
                self._closed -= len(self._blocks.popleft())

    @property
    def start(self) -> int:
        """The offset of the oldest byte kept."""
        return self.total - self._closed - len(self._open)

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return the offset of the first byte, and at most `limit` bytes from `offset` or the oldest kept."""
        at = self.start
        begin = min(max(offset, at), self.total)
        parts = []
        for block in (*self._blocks, self._open):
            parts.append(block[max(0, begin - at) : max(0, begin + limit - at)])
            at += len(block)
        return begin, b"".join(parts)


class Output:
    """Everything known from the child's output. `emulator` is `None` if its library is missing.

    An emulator that raises is replaced by one that shows nothing yet, which `take_lost` reports once; if that
    happens again and again, it is not replaced any more.
    """

    __slots__ = ("_faults", "_renewed", "_scanning", "_was_lost", "emulator", "scanner", "tail")

    def __init__(self, emulator: "Emulator | None", faults: "Faults") -> None:
        self.emulator = emulator
        self.scanner = AgentStateScanner()
        self.tail = Tail()
        self._faults = faults
        self._scanning = faults.guard("reading the agent's states")
        self._renewed = 0
        self._was_lost = False

    def take(self, data: bytes) -> bytes:
        """Process the next bytes; return what a terminal would answer to them."""
        self.tail.append(data)
        with self._scanning:
            self.scanner.feed(data)
        if self._scanning.failed:
            self.scanner = AgentStateScanner()

        def feed(emulator: "Emulator") -> bytes:
            emulator.feed(data)
            return emulator.take_replies()

        return self._ask("feeding the screen", feed, b"")

    def resize(self, *, rows: int, cols: int, width_px: int, height_px: int) -> None:
        """Set the size of the emulated terminal."""

        def resize(emulator: "Emulator") -> None:
            emulator.resize(cols, rows, width_px=width_px, height_px=height_px)

        self._ask("resizing the screen", resize, None)
        if self._was_lost:
            self._ask("resizing the screen", resize, None)

    def repaint(self) -> bytes:
        """Return what brings a terminal in any state to this one's."""
        return self._ask("repainting", lambda emulator: emulator.repaint(), b"") or self._replay()

    def paint_frame(self, frame: "BarFrame", bar: "Bar", *, rows: int, cols: int) -> bytes:
        """Return what brings a terminal of that size with the bar up to date; empty if it is or cannot be."""

        def paint(emulator: "Emulator") -> bytes:
            return frame.paint(
                emulator,
                bar.texts,
                rows=rows,
                cols=cols,
                holds_keys=bar.holds_keys,
                is_drawn=self.tail.total > 0,
            )

        return self._ask("painting the bar", paint, b"")

    def _replay(self) -> bytes:
        return BEGIN + END_SYNC + self.tail.read(self.tail.total - _REPLAYED_BYTES, _REPLAYED_BYTES)[1]

    def see_colors(self) -> None:
        """Record the colors set now: a terminal may miss from now on that the program resets them."""
        self._ask("reading colors", lambda emulator: emulator.see_colors(), {})

    def uncolor(self) -> bytes:
        """Return what resets the palette of a terminal that is removed; empty if nothing."""
        return self._ask("reading colors", lambda emulator: emulator.uncolor(), b"")

    def wants_marks(self) -> bool:
        """Return whether the program asked for marks around pastes; true without an emulator."""
        return self._ask("reading modes", lambda emulator: emulator.mode(2004), otherwise=True)

    def wants_kitty_keys(self) -> bool:
        """Return whether the program asked for the kitty keyboard protocol; false without an emulator."""
        return self._ask("reading modes", lambda emulator: bool(emulator.modes()["kitty"]), otherwise=False)

    def is_within(self) -> bool:
        """Return whether the child is in the middle of a sequence; false without an emulator."""
        return self._ask(
            "reading what has begun", lambda emulator: bool(emulator.unfinished()), otherwise=False
        )

    def is_alternate(self) -> bool:
        """Return whether the alternate screen is shown; false without an emulator."""
        return self._ask("reading modes", lambda emulator: emulator.alternate(), otherwise=False)

    def title(self) -> str:
        """Return the window title, empty if none."""
        return self._ask("reading the title", lambda emulator: emulator.title(), "")

    def screen(self, *, peek: bool) -> dict[str, object] | None:
        """Return the screen as `domain.screen` reads it; `None` without an emulator.

        Rows scrolled away and states announced are handed out once, unless this is only a `peek`.
        """

        def read(emulator: "Emulator") -> dict[str, object]:
            if peek:
                return snapshot(emulator, self.scanner)
            seen = self.scanner.take_seen()
            return snapshot(emulator, self.scanner, scrolled=emulator.take_scrolled(), seen=seen)

        return self._ask("reading the screen", read, None)

    def take_lost(self) -> bool:
        """Return whether the screen was lost since the last call; it then has only what is drawn since."""
        was_lost, self._was_lost = self._was_lost, False
        return was_lost

    def _ask(self, doing: str, ask: "Callable[[Emulator], Found]", otherwise: "Given") -> "Found | Given":
        """Return `ask(emulator)`; `otherwise` if there is no emulator, or if that raises."""
        emulator = self.emulator
        if emulator is None:
            return otherwise
        with self._faults.guard(doing):
            return ask(emulator)
        self._was_lost, self._renewed, self.emulator = True, self._renewed + 1, None
        # What broke is not freed: freeing it may end the process.
        if self._renewed <= _MOST_RENEWED:
            with self._faults.guard("renewing the screen"):
                self.emulator = emulator.renew()
        return otherwise
