"""The folders and names of one race, and what is done in them; every function here reads or writes disk."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from agent_relay.domain.race import Race, Runner
from agent_relay.domain.variables import RACE_VARIABLE
from agent_relay.logic.race.changes import Change
from agent_relay.system.applying import apply_plan, plan_apply, undo_apply
from agent_relay.system.carrying import Luggage, pack_changes
from agent_relay.system.files import cannot_write
from agent_relay.system.processes import end_marked
from agent_relay.system.race_git import Store, count_lines, open_store, read_changes, write_snapshot
from agent_relay.system.removing import remove_tree
from agent_relay.system.worktrees import make_worktree, remove_worktree


@dataclass(frozen=True, slots=True)
class Look:
    """What a runner has made of its worktree so far."""

    result: str
    changes: tuple[Change, ...]
    files: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class Place:
    """One race's folder and the user's working tree."""

    folder: str
    root: str
    race: str

    def branch_of(self, runner: Runner) -> str:
        """The branch of a runner: flat, so that no branch of the user's can be in its way."""
        return f"agent-relay-race-{self.race}-{runner.name}"

    def tree_of(self, runner: Runner) -> str:
        """The worktree of a runner."""
        return os.path.join(self.folder, "trees", f"race-{self.race[-6:].lower()}-{runner.name}")

    @property
    def luggage(self) -> str:
        """Where uncommitted files wait for the runners' trees."""
        return os.path.join(self.folder, "luggage")

    def get_test_folder(self, number: int) -> str:
        """Where the output of a runner's test stands."""
        return os.path.join(self.folder, "tests", str(number))

    def carry(self) -> Luggage:
        """What is not committed, packed. Raises RelayError."""
        return pack_changes(self.root, self.luggage)

    def make_tree(self, race: Race, runner: Runner) -> str:
        """The commit that holds what the runner finds in its new worktree. Raises RelayError."""
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
        """Whether the runner's worktree is still there."""
        return os.path.isdir(runner.tree)

    def drop_luggage(self) -> None:
        """The packed files are gone: every runner has its own."""
        remove_tree(self.luggage)

    def look(self, race: Race, runner: Runner) -> Look:
        """What the runner has changed since the base. Raises RelayError."""
        store = self.open_store()
        result = write_snapshot(runner.tree, store, parent=race.base)
        changes = read_changes(self.root, store, race.base, result)
        return Look(result, changes, *count_lines(self.root, store, race.base, result))

    def read_result(self, race: Race, runner: Runner) -> tuple[Change, ...]:
        """What a measured runner changed. Raises RelayError."""
        return read_changes(self.root, self.open_store(), race.base, runner.result)

    def apply(self, race: Race, runner: Runner) -> int:
        """How many files of the user's tree were written. Raises RelayError; then none was."""
        undo_apply(self.folder)
        store = self.open_store()
        plan = plan_apply(self.root, store, base=race.base, result=runner.result)
        apply_plan(self.root, store, plan, folder=self.folder)
        return len(plan.changes)

    def end_tests(self, runner: Runner) -> None:
        """No process of a test in the runner's worktree lives. Blocks for seconds where one resists."""
        end_marked(RACE_VARIABLE, f"{self.race}/{runner.number}")

    def mark(self, environ: Mapping[str, str], runner: Runner) -> dict[str, str]:
        """The user's environment for a test, by which its processes can be found."""
        return {**environ, RACE_VARIABLE: f"{self.race}/{runner.number}"}

    def clear_test(self, number: int) -> str:
        """The runner's test folder, empty. Raises RelayError."""
        folder = self.get_test_folder(number)
        remove_tree(folder)
        _make_folder(folder)
        return folder

    def remove(self, race: Race) -> list[str]:
        """Nothing is left of the race but its journal; says what had to stay. Raises RelayError."""
        said = []
        undo_apply(self.folder)
        for runner in race.runners:
            self.end_tests(runner)
            if runner.tree:
                said.append(remove_worktree(self.root, runner.tree, branch=runner.branch))
        for name in os.listdir(self.folder):
            if name != "journal.jsonl":
                remove_tree(os.path.join(self.folder, name))
        return [text for text in said if text]

    def open_store(self) -> Store:
        """The race's own objects. Raises RelayError."""
        return open_store(os.path.join(self.folder, "objects"), self.root)


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
