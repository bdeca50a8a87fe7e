"""What the child wrote: the emulated screen, the tail by byte offset, the states it announced."""

from collections import deque

from agent_relay.logic.agent_state import AgentStateScanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.logic.emulator import Emulator

TAIL_BYTES = 1 << 20
# Small enough to come from the allocator's own store: one large buffer costs a read five times as much.
_BLOCK_BYTES = 64 << 10
# Without an emulator the last bytes are replayed and the program is nudged to repaint, as dtach does.
_REPLAYED_BYTES = 64 << 10


class Tail:
    """The last MiB written (up to two blocks more), addressed by the bytes written before it."""

    __slots__ = ("_blocks", "_closed", "_open", "total")

    def __init__(self) -> None:
        self._blocks: deque[bytearray] = deque()
        self._closed = 0
        self._open = bytearray()
        self.total = 0

    def append(self, data: bytes) -> None:
        """Take the next bytes; what no longer fits is forgotten."""
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
        """At most `limit` bytes from `offset` or the oldest byte kept, with the offset they begin at."""
        at = self.start
        begin = min(max(offset, at), self.total)
        parts = []
        for block in (*self._blocks, self._open):
            parts.append(block[max(0, begin - at) : max(0, begin + limit - at)])
            at += len(block)
        return begin, b"".join(parts)


class Output:
    """Everything known from the child's output. `emulator` is `None` where its library is missing."""

    __slots__ = ("emulator", "scanner", "tail")

    def __init__(self, emulator: "Emulator | None") -> None:
        self.emulator = emulator
        self.scanner = AgentStateScanner()
        self.tail = Tail()

    def take(self, data: bytes) -> bytes:
        """Take the next bytes; returns what a terminal would answer to them."""
        self.tail.append(data)
        self.scanner.feed(data)
        if self.emulator is None:
            return b""
        self.emulator.feed(data)
        return self.emulator.take_replies()

    def resize(self, *, rows: int, cols: int, width_px: int, height_px: int) -> None:
        """The terminal changed its size."""
        if self.emulator is not None:
            self.emulator.resize(cols, rows, width_px=width_px, height_px=height_px)

    def repaint(self) -> bytes:
        """What brings a terminal in any state to this one's."""
        if self.emulator is not None:
            return self.emulator.repaint()
        from agent_relay.logic.repaint import BEGIN, END_SYNC

        return BEGIN + END_SYNC + self.tail.read(self.tail.total - _REPLAYED_BYTES, _REPLAYED_BYTES)[1]

    def see_colors(self) -> None:
        """Terminals may miss from now on that colors they have are given up."""
        if self.emulator is not None:
            self.emulator.see_colors()

    def uncolor(self) -> bytes:
        """What a terminal that is let go must be told of the palette; empty if nothing."""
        return b"" if self.emulator is None else self.emulator.uncolor()

    def wants_marks(self) -> bool:
        """Whether the program asked for marks around pastes; unknown without an emulator, and then yes."""
        return self.emulator is None or self.emulator.mode(2004)

    def title(self) -> str:
        """The window title, empty if none."""
        return "" if self.emulator is None else self.emulator.title()

    def screen(self, *, peek: bool) -> dict[str, object] | None:
        """The screen as `logic.screen` reads it; `None` without an emulator.

        Rows scrolled away and states announced are handed out once, unless this is only a `peek`.
        """
        if self.emulator is None:
            return None
        from agent_relay.logic.capture import snapshot

        if peek:
            return snapshot(self.emulator, self.scanner)
        return snapshot(
            self.emulator,
            self.scanner,
            scrolled=self.emulator.take_scrolled(),
            seen=self.scanner.take_seen(),
        )
