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

    A turn of which anything is left is not among them.
    """
    written: dict[int, dict[tuple[str, str], bool]] = {}
    replaced: dict[int, set[tuple[str, str]]] = {}
    found: dict[int, Ending] = {}
    for change in changes:
        added = {(change.path, line) for line in change.added_lines}
        removed = {(change.path, line) for line in change.removed_lines}
        for turn, lines in written.items():
            hit = removed - added
            if turn == change.turn or turn in found or not lines.keys() & hit:
                continue
            for line in lines.keys() & hit:
                lines[line] = False
            if not any(lines.values()):
                came_back = bool(added & replaced[turn])
                found[turn] = Ending(turn, change.turn, "taken back" if came_back else "replaced")
        own = written.setdefault(change.turn, {})
        for line in removed - added:
            own.pop(line, None)
        own |= dict.fromkeys(added - removed, True)
        replaced.setdefault(change.turn, set()).update(removed - added)
    return list(found.values())
