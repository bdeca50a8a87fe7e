"""Looks at the runners' worktrees while they work, and says early where two touch the same lines."""

import asyncio
import contextlib
import itertools
import logging
import time
from typing import Protocol

from agent_relay.app.race.ground import Look, Place
from agent_relay.domain.errors import RelayError
from agent_relay.domain.race import Race, Runner, RunnerState
from agent_relay.domain.race_event import OverlapSeen, RaceBody
from agent_relay.logic.race.changes import Change
from agent_relay.logic.race.overlaps import find_overlaps

_log = logging.getLogger(__name__)
_EVERY_S = 2.0
_SHARE = 10
"""Looking takes at most a tenth of the time, however big the tree is."""
_COUNTED = 5
"""How many looks come before what was used is counted again: records are read for it."""
_MOST = 200
"""Overlaps journalled; beyond that nobody reads them."""


class Watched(Protocol):
    """The race that is looked at."""

    place: Place
    looks: dict[int, Look]

    @property
    def race(self) -> Race:
        """The race now."""
        ...

    async def count(self, runner: Runner) -> None:
        """What the runner has used so far is in the journal."""
        ...

    async def write(self, body: RaceBody) -> None:
        """The race after `body`. Raises RelayError."""
        ...


async def watch_overlaps(watched: Watched) -> None:
    """Looks again and again until it is cancelled; each overlap is journalled once, when it is first seen."""
    results: dict[int, tuple[Change, ...]] = {}
    for number in itertools.count(1):
        began = time.monotonic()
        await look_once(watched, results)
        if number % _COUNTED == 0:
            for runner in watched.race.runners:
                if runner.state is RunnerState.RUNNING:
                    await watched.count(runner)
        await asyncio.sleep(max(_EVERY_S, (time.monotonic() - began) * _SHARE))


async def look_once(watched: Watched, results: dict[int, tuple[Change, ...]]) -> None:
    """Every runner's changes as they are now, and new overlaps journalled. `results` are those at their end.

    Raises RelayError where the journal cannot be written.
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
