"""Find out early whether two runners change the same lines.

Early, because the changes of one of the two will not fit on top of the other's. What two runners share is
computed from their changes alone.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from agent_relay.domain.errors import RelayError
from agent_relay.race._events import OverlapSeen
from agent_relay.race._workspace import RaceWorkspace, RunnerChanges
from agent_relay.race._writer import SerialJournalWriter
from agent_relay.race.model import Overlap, Runner, RunnerState
from agent_relay.system.git.changes import Change, ChangeKind, LineSpan


def find_overlaps(changes: Mapping[int, Sequence[Change]]) -> list[Overlap]:
    """Return every path that two runners change in the same place, by runner's number; once for each pair."""
    found = []
    for first, second in combinations(sorted(changes), 2):
        theirs = {change.path: change for change in changes[second]}
        for ours in changes[first]:
            other = theirs.get(ours.path)
            what = "" if other is None else _describe(ours, other)
            if what:
                found.append(Overlap(first, second, ours.path, what))
    return found


def _describe(ours: Change, theirs: Change) -> str:
    """Describe what the two have in common; empty if nothing, or if both deleted it."""
    kinds = (ours.kind, theirs.kind)
    if kinds == (ChangeKind.DELETED, ChangeKind.DELETED):
        return ""
    if ChangeKind.DELETED in kinds:
        return "one deletes it, the other changes it"
    same = ", to the same contents" if ours.blob == theirs.blob else ""
    if kinds == (ChangeKind.ADDED, ChangeKind.ADDED):
        return f"both add it{same}"
    if not ours.spans or not theirs.spans:
        return f"both change it as a whole{same}"
    shared = list(_find_shared(ours.spans, theirs.spans))
    return f"both change {_render(shared)}{same}" if shared else ""


def _find_shared(ours: Sequence[LineSpan], theirs: Sequence[LineSpan]) -> Iterator[LineSpan]:
    """Yield the parts of the base that both change, in order; both lists must be in order, too."""
    one, other = 0, 0
    while one < len(ours) and other < len(theirs):
        shared = _intersect(ours[one], theirs[other])
        if shared is not None:
            yield shared
        if ours[one].last <= theirs[other].last:
            one += 1
        else:
            other += 1


def _intersect(ours: LineSpan, theirs: LineSpan) -> LineSpan | None:
    """Return the lines both replace, or the place of an insertion within or beside the other's lines."""
    if ours.is_insertion or theirs.is_insertion:
        point = ours if ours.is_insertion else theirs
        other = theirs if ours.is_insertion else ours
        return point if other.first - 1 <= point.last <= other.last else None
    first, last = max(ours.first, theirs.first), min(ours.last, theirs.last)
    return LineSpan(first, last) if first <= last else None


def _render(spans: Sequence[LineSpan]) -> str:
    """Render as `line 3`, `lines 3-7 and 12`, or the line below which both insert."""
    lines = [span for span in spans if not span.is_insertion]
    if not lines:
        places = " and ".join(dict.fromkeys(str(span.last) for span in spans))
        return f"what follows line {places}"
    parts = [str(span.first) if span.first == span.last else f"{span.first}-{span.last}" for span in lines]
    many = len(parts) > 1 or lines[0].first != lines[0].last
    return f"line{'s' if many else ''} {' and '.join(parts)}"


_MOST = 200
"""The most overlaps that are journalled; more would not be read."""


class OverlapFinder:
    """Finds overlaps of one race's runners as they come; `latest` gets what each has changed so far."""

    def __init__(
        self, writer: SerialJournalWriter, workspace: RaceWorkspace, latest: dict[int, RunnerChanges]
    ) -> None:
        self._writer, self._workspace, self._latest = writer, workspace, latest
        self._results: dict[int, tuple[Change, ...]] = {}

    async def find_new(self) -> None:
        """Read every runner's changes and journal new overlaps. Raise RelayError if it cannot be written."""
        changes: dict[int, tuple[Change, ...]] = {}
        for runner in self._writer.race.runners:
            with contextlib.suppress(RelayError):
                found = await self._read(runner)
                if found is not None:
                    changes[runner.number] = found
        known = {(overlap.first, overlap.second, overlap.path) for overlap in self._writer.race.overlaps}
        for overlap in find_overlaps(changes):
            if (overlap.first, overlap.second, overlap.path) not in known and len(known) < _MOST:
                known.add((overlap.first, overlap.second, overlap.path))
                seen = OverlapSeen(overlap.first, overlap.second, overlap.path, overlap.what)
                await self._writer.write(seen)

    async def _read(self, runner: Runner) -> tuple[Change, ...] | None:
        """Return what the runner has changed; `None` if it neither runs nor has a result."""
        race, number = self._writer.race, runner.number
        if runner.state is RunnerState.RUNNING:
            self._latest[number] = await asyncio.to_thread(self._workspace.look, race, runner)
            return self._latest[number].changes
        if runner.result and number not in self._results:
            self._results[number] = await asyncio.to_thread(self._workspace.read_result, race, runner)
        return self._results.get(number)
