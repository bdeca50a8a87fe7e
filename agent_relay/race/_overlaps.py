"""Watch the worktrees of running agents and report early if two change the same lines.

Early, because the changes of one of the two will not fit on top of the other's. What two runners share is
computed from their changes alone; reading the worktrees takes at most a tenth of the time.
"""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Protocol

from agent_relay.domain.errors import RelayError
from agent_relay.race._events import OverlapSeen, RaceBody
from agent_relay.race._workspace import RaceWorkspace, RunnerChanges
from agent_relay.race.model import Overlap, Race, Runner, RunnerState
from agent_relay.system.git.changes import Change, ChangeKind, LineSpan

_log = logging.getLogger(__name__)


def find_overlaps(changes: Mapping[int, Sequence[Change]]) -> list[Overlap]:
    """Return every path that two runners change in the same place, by runner's number; once for each pair."""
    found = []
    for first, second in combinations(sorted(changes), 2):
        theirs = {change.path: change for change in changes[second]}
        for ours in changes[first]:
            other = theirs.get(ours.path)
            what = "" if other is None else _tell(ours, other)
            if what:
                found.append(Overlap(first, second, ours.path, what))
    return found


def _tell(ours: Change, theirs: Change) -> str:
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


_EVERY_S = 2.0
_SHARE = 10
"""Reading the worktrees takes at most a tenth of the time, however big the tree is."""
_COUNTED = 5
"""Usage is counted on every fifth look: counting reads the agents' records."""
_MOST = 200
"""The most overlaps that are journalled; nobody reads more."""


class WatchedRace(Protocol):
    """The race that is watched."""

    place: RaceWorkspace
    looks: dict[int, RunnerChanges]

    @property
    def race(self) -> Race:
        """The race now."""
        ...

    async def count(self, runner: Runner) -> None:
        """Journal what the runner has used so far."""
        ...

    async def write(self, body: RaceBody) -> None:
        """Write `body` to the journal. Raise RelayError on failure."""
        ...


async def watch_overlaps(watched: WatchedRace) -> None:
    """Find overlaps repeatedly until cancelled; journal each one when it is first seen."""
    results: dict[int, tuple[Change, ...]] = {}
    for number in itertools.count(1):
        began = time.monotonic()
        await find_new_overlaps(watched, results)
        if number % _COUNTED == 0:
            for runner in watched.race.runners:
                if runner.state is RunnerState.RUNNING:
                    await watched.count(runner)
        await asyncio.sleep(max(_EVERY_S, (time.monotonic() - began) * _SHARE))


async def find_new_overlaps(watched: WatchedRace, results: dict[int, tuple[Change, ...]]) -> None:
    """Read every runner's changes and journal new overlaps; `results` caches those of finished runners.

    Raises RelayError if the journal cannot be written.
    """
    changes: dict[int, tuple[Change, ...]] = {}
    for runner in watched.race.runners:
        with contextlib.suppress(RelayError):
            if runner.state is RunnerState.RUNNING:
                look = await asyncio.to_thread(watched.place.look, watched.race, runner)
                watched.looks[runner.number] = look
                changes[runner.number] = look.changes
            elif runner.result:
                if runner.number not in results:
                    found = await asyncio.to_thread(watched.place.read_result, watched.race, runner)
                    results[runner.number] = found
                changes[runner.number] = results[runner.number]
    known = {(overlap.first, overlap.second, overlap.path) for overlap in watched.race.overlaps}
    for overlap in find_overlaps(changes):
        if (overlap.first, overlap.second, overlap.path) not in known and len(known) < _MOST:
            known.add((overlap.first, overlap.second, overlap.path))
            await watched.write(OverlapSeen(overlap.first, overlap.second, overlap.path, overlap.what))
