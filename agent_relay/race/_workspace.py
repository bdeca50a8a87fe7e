"""Manage the folders, branches and worktrees of one race, and run its test in them.

Every function here reads or writes disk. A test has a time limit, its output is kept, and none of its
processes is left running.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values.environment import RACE_VARIABLE
from agent_relay.engine.threads import finish
from agent_relay.race.journal import JOURNAL
from agent_relay.race.model import Race, Runner
from agent_relay.redact.rules import PLACEHOLDER
from agent_relay.system.disk.files import cannot_write
from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.git.apply import apply_plan, plan_apply, undo_apply
from agent_relay.system.git.changes import Change
from agent_relay.system.git.snapshot import Store, count_lines, open_store, read_changes, write_snapshot
from agent_relay.system.git.worktree import DirtyTree, make_worktree, pack_changes, remove_worktree
from agent_relay.system.headless import run_headless
from agent_relay.system.processes import end_marked


@dataclass(frozen=True, slots=True)
class RunnerChanges:
    """What a runner has changed in its worktree so far."""

    result: str
    changes: tuple[Change, ...]
    files: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class RaceWorkspace:
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
        """Where uncommitted files are kept until every runner's tree has them."""
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
            self.root,
            runner.tree,
            branch=runner.branch,
            head=race.head,
            reason=reason,
            luggage=self.luggage,
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
