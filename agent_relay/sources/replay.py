"""Play a recording through emulator and detector: the same signals however its bytes are cut.

The recorded leg's start by the clock is found from the lines typed into it, which its records repeat.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.record_matching import iter_strings, squeeze
from agent_relay.domain.limits import Kind, Record, Signal
from agent_relay.domain.screen import Screen, parse_screen
from agent_relay.domain.values import replace
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.output_scanner import AgentStateScanner
from agent_relay.terminal.emulation.snapshot import snapshot

# Without times, a frame is taken for settled where its painter says so: at the end of a synchronised
# update, and before the run of line erasures that begins the next frame.
_FRAME_EDGE = re.compile(rb"(?<=\x1b\[\?2026l)|(?<!\x1b\[1A)(?=\x1b\[2K\x1b\[1A)")
_EDGE_CONTEXT = 12
_LONGEST_FRAME = 16_384
# Single bytes are not searched one by one.
_STEP = 64
_SAME_RESET = timedelta(minutes=10)


class Timing(msgspec.Struct, frozen=True):
    """The times of a recording's bytes.

    `settled` are byte offsets at which output paused, empty if the recording does not say; `marks`
    are (offset, seconds since the start) pairs, ascending; `sizes` are (offset, cols, rows) changes.
    """

    settled: tuple[int, ...] = ()
    marks: tuple[tuple[int, float], ...] = ()
    sizes: tuple[tuple[int, int, int], ...] = ()
    length_s: float = 0.0

    def find_time(self, offset: int, total: int) -> float:
        """Return the seconds since the start at which the byte before `offset` was written.

        Without marks, the bytes are taken to be evenly spread.
        """
        if not self.marks:
            return self.length_s * offset / total if total else 0.0
        return max((seconds for mark, seconds in self.marks if mark < offset), default=0.0)


class FrameCutter:
    """Cuts a stream where the screen is looked at: at known offsets or, without any, by its content alone."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self._due = deque(sorted({offset for offset in offsets if offset > 0}))
        self._by_content = not self._due
        self._waiting = bytearray()
        self._searched = 1
        self._at = self._enough = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the pieces that are complete, each ending where a look is due."""
        self._waiting += chunk
        if len(self._waiting) >= self._enough:
            yield from self._take_complete()
            self._enough = len(self._waiting) + _STEP

    def flush(self) -> Iterator[bytes]:
        """Yield the complete pieces, and what is left as the last piece."""
        yield from self._take_complete()
        if self._waiting:
            yield self._take(len(self._waiting))

    def _take_complete(self) -> Iterator[bytes]:
        find_end = self._find_edge if self._by_content else self._find_due
        while (end := find_end()) is not None:
            yield self._take(end)

    def _take(self, end: int) -> bytes:
        piece = bytes(self._waiting[:end])
        del self._waiting[:end]
        self._searched = 1
        self._at += end
        return piece

    def _find_due(self) -> int | None:
        if not self._due or self._due[0] - self._at > len(self._waiting):
            return None
        return self._due.popleft() - self._at

    def _find_edge(self) -> int | None:
        """Find the next edge whose surroundings have all arrived, wherever the bytes were cut."""
        limit = min(len(self._waiting) - _EDGE_CONTEXT, _LONGEST_FRAME)
        if limit < self._searched:
            return None
        match = _FRAME_EDGE.search(self._waiting, self._searched, limit + _EDGE_CONTEXT)
        edge = match.start() if match is not None else None
        if edge is not None and edge <= limit:
            return edge
        self._searched = limit + 1
        return _LONGEST_FRAME if limit == _LONGEST_FRAME else None


def capture(emulator: Emulator, scanner: AgentStateScanner | None = None) -> Screen:
    """Return the emulator's screen now, with rows scrolled off and agent states since the last capture."""
    scanner = scanner or AgentStateScanner()
    return parse_screen(
        snapshot(emulator, scanner, scrolled=emulator.take_scrolled(), seen=scanner.take_seen())
    )


def play(
    chunks: Iterator[bytes],
    *,
    total: int,
    timing: Timing,
    emulator: Emulator,
    detector: Detector,
    records: Sequence[Record],
    started_at: datetime,
) -> tuple[Signal, ...]:
    """Play a recording, and return every signal in order.

    A signal from a record has the offset reached when the record was processed. `records` are in the order in
    which they are processed; one without a time belongs to its predecessor.
    """
    scanner = AgentStateScanner()
    cutter = FrameCutter([*timing.settled, *(offset for offset, _, _ in timing.sizes)])
    sizes = {offset: (cols, rows) for offset, cols, rows in timing.sizes}
    waiting = _Queue(records, started_at)
    signals: list[Signal] = []
    offset = 0
    for piece in _cut(cutter, chunks):
        emulator.feed(piece)
        scanner.feed(piece)
        offset += len(piece)
        now = started_at + timedelta(seconds=timing.find_time(offset, total))
        for at, record in waiting.take(until=now):
            signals += _stamp(detector.hear(record, now=at), offset)
        signals += _stamp(detector.look(capture(emulator, scanner), now=now, at_offset=offset), offset)
        if offset in sizes:
            emulator.resize(*sizes[offset])
    end = started_at + timedelta(seconds=timing.length_s)
    for at, record in waiting.take(until=None):
        signals += _stamp(detector.hear(record, now=at), offset)
    signals += _stamp(detector.tick(now=max(end, waiting.last)), offset)
    return tuple(signals)


def keep_best(signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """Keep one signal for each limit: the newest, at the place where the limit was first seen."""
    kept: list[Signal] = []
    for signal in signals:
        same = next((index for index, other in enumerate(kept) if _is_same(other, signal)), None)
        if same is None:
            kept.append(signal)
        else:
            first = kept[same]
            kept[same] = replace(signal, at_offset=first.at_offset, model=signal.model or first.model)
    return tuple(kept)


def _is_same(one: Signal, other: Signal) -> bool:
    """Check whether two signals are of one limit; if both decide, one of them may lack the model."""
    if (_family(one), one.scope, one.decides) != (_family(other), other.scope, other.decides):
        return False
    if one.model != other.model and not (one.decides and "" in {one.model, other.model}):
        return False
    if one.resets_at is None or other.resets_at is None:
        return True
    return abs(one.resets_at - other.resets_at) <= _SAME_RESET


def _family(signal: Signal) -> Kind:
    return Kind.LIMIT if signal.kind is Kind.SILENT_LIMIT else signal.kind


def _stamp(signals: Sequence[Signal], offset: int) -> list[Signal]:
    return [
        signal if signal.at_offset is not None else replace(signal, at_offset=offset) for signal in signals
    ]


def _cut(cutter: FrameCutter, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from cutter.feed(chunk)
    yield from cutter.flush()


class _Queue:
    """Records waiting for their moment; a record without a time comes right after its predecessor."""

    def __init__(self, records: Sequence[Record], started_at: datetime) -> None:
        self._records: list[tuple[datetime, Record]] = []
        at = started_at
        for record in records:
            at = record.at or at
            self._records.append((at, record))
        self._records.sort(key=lambda pair: pair[0])
        self._next = 0
        self.last = self._records[-1][0] if self._records else started_at

    def take(self, *, until: datetime | None) -> Iterator[tuple[datetime, Record]]:
        """Yield the records due by `until`, or all that are left."""
        while self._next < len(self._records):
            at, record = self._records[self._next]
            if until is not None and at > until:
                return
            self._next += 1
            yield at, record


# The record of a prompt is written a little after its last key.
_SLACK = timedelta(seconds=0.5)
_TOLERANCE = timedelta(seconds=2)


def find_start(
    records: Sequence[Record], *, typed: Sequence[tuple[str, float]], length_s: float
) -> datetime | None:
    """Find the leg's start; return `None` if no record carries a time.

    `typed` are the lines people submitted, each with its time in seconds. A line found again as a whole
    string of a record ties the two clocks, as early as the leg's length allows. If prompts were typed and
    none is found, the records are those of earlier legs and the start is after all of them. With nothing
    typed, the leg is taken to have ended with its newest record; if the length is not known either (0), to
    have begun with its oldest.
    """
    times = [record.at for record in records if record.at is not None]
    if not times:
        return None
    newest = max(times)
    if not length_s and not typed:
        return min(times)
    reckoned = newest - timedelta(seconds=length_s)
    found = _find_lines(records, {line for line, _ in typed})
    prompts = [line for line, _ in typed if not line.startswith("/")]
    if prompts and not any(line in found for line in prompts):
        return newest + timedelta(microseconds=1)
    starts = [at - timedelta(seconds=seconds) for line, seconds in typed for at in found.get(line, ())]
    return min((start for start in starts if start >= reckoned - _TOLERANCE), default=reckoned) - _SLACK


def _find_lines(records: Sequence[Record], lines: set[str]) -> dict[str, list[datetime]]:
    """Return the times of the records that contain each line.

    These may be of earlier legs, of the leg itself, or later quotations.
    """
    found: dict[str, list[datetime]] = {}
    for record in records:
        if record.at is None:
            continue
        for string in iter_strings(record.data):
            line = squeeze(string)
            if line in lines:
                found.setdefault(line, []).append(record.at)
    return found
