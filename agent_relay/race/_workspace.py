"""Manage a race's folders, branches and worktrees; run its test there; find what two runners both change."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import RACE_VARIABLE
from agent_relay.engine.threads import finish
from agent_relay.race._events import OverlapSeen
from agent_relay.race.journal import JOURNAL
from agent_relay.race.model import Overlap, Race, Runner, RunnerState
from agent_relay.redact.rules import PLACEHOLDER
from agent_relay.system.disk.files import cannot_write
from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.git.apply import apply_plan, plan_apply, undo_apply
from agent_relay.system.git.snapshot import (
    Change,
    ChangeKind,
    LineSpan,
    Store,
    count_lines,
    open_store,
    read_changes,
    write_snapshot,
)
from agent_relay.system.git.worktree import DirtyTree, make_worktree, pack_changes, remove_worktree
from agent_relay.system.headless import run_headless
from agent_relay.system.processes import end_marked


class RunnerChanges(msgspec.Struct, frozen=True):
    """Changes a runner has made in its worktree so far."""

    result: str
    changes: tuple[Change, ...]
    files: int
    added: int
    removed: int


class RaceWorkspace(msgspec.Struct, frozen=True):
    """One race's folder and the user's working tree."""

    folder: str
    root: str
    race: str

    def branch_of(self, runner: Runner) -> str:
        """Return the branch of a runner: flat, so that no branch of the user's can conflict with it."""
        return f"agent-relay-race-{self.race}-{runner.name}"

    def tree_of(self, runner: Runner) -> str:
        """Return the path of a runner's worktree."""
        return os.path.join(self.folder, "trees", f"race-{self.race[-6:].lower()}-{runner.name}")

    @property
    def luggage(self) -> str:
        """The folder of uncommitted files, kept until every runner's tree has them."""
        return os.path.join(self.folder, "luggage")

    def carry(self) -> DirtyTree:
        """Pack the uncommitted changes of the user's tree. Raise RelayError on failure."""
        return pack_changes(self.root, self.luggage)

    def make_tree(self, race: Race, runner: Runner) -> str:
        """Make the runner's worktree and return the commit of its contents. Raise RelayError on failure."""
        trees = os.path.dirname(runner.tree)
        _make_folder(trees)
        reason = f"agent-relay race {self.race}"
        make_worktree(
            self.root, runner.tree, branch=runner.branch, head=race.head, reason=reason, luggage=self.luggage
        )
        return write_snapshot(runner.tree, self.open_store())

    def has_tree(self, runner: Runner) -> bool:
        """Tell whether the runner's worktree still exists."""
        return os.path.isdir(runner.tree)

    def drop_luggage(self) -> None:
        """Remove the packed changes: every runner has its own copy."""
        remove_tree(self.luggage)

    def look(self, race: Race, runner: Runner) -> RunnerChanges:
        """Return what the runner has changed since the base. Raise RelayError on failure."""
        store = self.open_store()
        result = write_snapshot(runner.tree, store, parent=race.base)
        changes = read_changes(self.root, store, race.base, result)
        return RunnerChanges(result, changes, *count_lines(self.root, store, race.base, result))

    def read_result(self, race: Race, runner: Runner) -> tuple[Change, ...]:
        """Return what a measured runner changed. Raise RelayError on failure."""
        return read_changes(self.root, self.open_store(), race.base, runner.result)

    def apply(self, race: Race, runner: Runner) -> int:
        """Apply the runner's changes to the user's tree and return how many files were written.

        Raises RelayError; then none was written.
        """
        undo_apply(self.folder)
        store = self.open_store()
        plan = plan_apply(self.root, store, base=race.base, result=runner.result)
        apply_plan(self.root, store, plan, folder=self.folder)
        return len(plan.changes)

    def end_tests(self, runner: Runner) -> None:
        """End every process of a test in the runner's worktree. Blocks for seconds if one resists."""
        end_marked(RACE_VARIABLE, f"{self.race}/{runner.number}")

    def mark(self, environ: Mapping[str, str], runner: Runner) -> dict[str, str]:
        """Return the user's environment for a test, with a variable by which its processes can be found."""
        return {**environ, RACE_VARIABLE: f"{self.race}/{runner.number}"}

    def clear_test(self, number: int) -> str:
        """Empty the runner's test folder and return its path. Raise RelayError on failure."""
        folder = os.path.join(self.folder, "tests", str(number))
        remove_tree(folder)
        _make_folder(folder)
        return folder

    def remove(self, race: Race) -> list[str]:
        """Remove all of the race but its journal; return what had to stay. Raise RelayError on failure."""
        left = []
        undo_apply(self.folder)
        for runner in race.runners:
            self.end_tests(runner)
            if runner.tree:
                left.append(remove_worktree(self.root, runner.tree, branch=runner.branch))
        for name in os.listdir(self.folder):
            if name != JOURNAL:
                remove_tree(os.path.join(self.folder, name))
        return [text for text in left if text]

    def open_store(self) -> Store:
        """Open the race's own object store. Raise RelayError on failure."""
        return open_store(os.path.join(self.folder, "objects"), self.root)


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


_SHELL = "/bin/sh"
_NEVER_RAN = -1


async def run_test(
    place: RaceWorkspace, race: Race, runner: Runner, environ: Mapping[str, str], command: str
) -> tuple[int, int, str]:
    """Run the test; return its exit status, its time in ms, and why it did not end by itself (else empty).

    Raises RelayError if the race's own folder cannot be written.
    """
    # A daemon that was killed may have left the same test running.
    await finish(place.end_tests, runner)
    folder = await finish(place.clear_test, runner.number)
    cwd = os.path.join(runner.tree, race.below)
    if not place.has_tree(runner):
        return _NEVER_RAN, 0, "not run: its worktree was removed"
    if PLACEHOLDER in command:
        # Another daemon began the race: what the journal knows of the command is not what the user wrote.
        return _NEVER_RAN, 0, "not run: the secret in its command is not kept on disk"
    began = time.monotonic()
    try:
        ran = await run_headless(
            [_SHELL, "-c", command],
            env=place.mark(environ, runner),
            cwd=cwd,
            folder=folder,
            text="",
            limit_s=race.test_limit_s,
        )
        status, why = ran.status, ""
    except RelayError as error:
        status, why = _NEVER_RAN, error.sentence.replace("no answer came", "not done")
    finally:
        await finish(place.end_tests, runner)
    return status, int((time.monotonic() - began) * 1000), why


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

    def __init__(self, workspace: RaceWorkspace, latest: dict[int, RunnerChanges]) -> None:
        self._workspace, self._latest = workspace, latest
        self._results: dict[int, tuple[Change, ...]] = {}

    async def find_new(self, race: Race) -> list[OverlapSeen]:
        """Read every runner's changes and return the overlaps that the race does not know yet."""
        changes: dict[int, tuple[Change, ...]] = {}
        for runner in race.runners:
            with contextlib.suppress(RelayError):
                found = await self._read(race, runner)
                if found is not None:
                    changes[runner.number] = found
        known = {(overlap.first, overlap.second, overlap.path) for overlap in race.overlaps}
        new = [one for one in find_overlaps(changes) if (one.first, one.second, one.path) not in known]
        room = max(0, _MOST - len(known))
        return [OverlapSeen(one.first, one.second, one.path, one.what) for one in new[:room]]

    async def _read(self, race: Race, runner: Runner) -> tuple[Change, ...] | None:
        """Return what the runner has changed; `None` if it neither runs nor has a result."""
        number = runner.number
        if runner.state is RunnerState.RUNNING:
            self._latest[number] = await asyncio.to_thread(self._workspace.look, race, runner)
            return self._latest[number].changes
        if runner.result and number not in self._results:
            self._results[number] = await asyncio.to_thread(self._workspace.read_result, race, runner)
        return self._results.get(number)
