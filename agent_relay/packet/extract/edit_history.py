"""Find which turns took back, or replaced, what an earlier turn edited: by the edited lines alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agent_relay.domain.facts import FileChange


@dataclass(frozen=True, slots=True)
class Ending:
    """The edits of turn `earlier` are all gone since turn `later`, or its words are corrected there.

    They were `taken back` if the lines that had stood there before came back, else `replaced`.
    """

    earlier: int
    later: int
    how: Literal["taken back", "replaced", "corrected"]


def find_endings(changes: Iterable[FileChange]) -> list[Ending]:
    """Find the turns whose edits are gone; `changes` are in the order in which they were made.

    A turn of which anything is left is not among them. One that took back its own edits ends in itself.
    """
    written: dict[int, dict[tuple[str, str], bool]] = {}
    replaced: dict[int, set[tuple[str, str]]] = {}
    found: dict[int, Ending] = {}
    for change in changes:
        added = {(change.path, line) for line in change.added_lines}
        removed = {(change.path, line) for line in change.removed_lines}
        gone = removed - added
        for turn, lines in written.items():
            if turn == change.turn or turn in found or not lines.keys() & gone:
                continue
            lines.update(dict.fromkeys(lines.keys() & gone, False))
            if not any(lines.values()):
                came_back = bool(added & replaced[turn])
                found[turn] = Ending(turn, change.turn, "taken back" if came_back else "replaced")
        own = written.setdefault(change.turn, {})
        before = replaced.setdefault(change.turn, set())
        if own.keys() & gone and not own.keys() - gone and added <= before:
            found[change.turn] = Ending(change.turn, change.turn, "taken back")
        elif added:
            found.pop(change.turn, None)
        for line in gone:
            own.pop(line, None)
        own |= dict.fromkeys(added - removed - before, True)
        before |= gone
    return list(found.values())
