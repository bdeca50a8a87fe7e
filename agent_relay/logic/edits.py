"""What a user changed in a packet's text, and how that meets what was changed elsewhere meanwhile."""

from collections.abc import Iterator
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise

_CONTEXT_LINES = 2


def diff_texts(before: str, after: str, *, names: tuple[str, str]) -> tuple[str, ...]:
    """The lines of a unified diff from `before` to `after`, without line ends; empty for no change."""
    lines = unified_diff(before.splitlines(), after.splitlines(), *names, n=_CONTEXT_LINES, lineterm="")
    return tuple(lines)


def merge_texts(base: str, mine: str, theirs: str) -> str:
    """`mine` with what `theirs` changed in `base`, line by line.

    What either of them deleted is gone. Where both changed the same lines, mine stand.
    """
    old, kept = base.splitlines(keepends=True), mine.splitlines(keepends=True)
    places = _find_places(old, kept)
    gone: set[int] = set()
    added: dict[int, list[str]] = {}
    new = theirs.splitlines(keepends=True)
    for _, start, end, begin, stop in _list_changes(old, new):
        touched = [places[line] for line in range(start, end) if line in places]
        gone |= set(touched)
        is_free = len(touched) == end - start and all(b - a == 1 for a, b in pairwise(touched))
        if stop > begin and is_free:
            at = touched[0] if touched else _find_gap(places, start)
            if at is not None:
                added[at] = new[begin:stop]
    merged: list[str] = []
    for at in range(len(kept) + 1):
        merged += added.get(at, [])
        if at < len(kept) and at not in gone:
            merged.append(kept[at])
    return "".join(merged)


def _list_changes(old: list[str], new: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return (change for change in matcher.get_opcodes() if change[0] != "equal")


def _find_places(old: list[str], new: list[str]) -> dict[int, int]:
    """Where each line of `old` that was left alone stands in `new`."""
    places: dict[int, int] = {}
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        places |= {block.a + step: block.b + step for step in range(block.size)}
    return places


def _find_gap(places: dict[int, int], line: int) -> int | None:
    """Where something between `line` and the one before it belongs; `None` where that place was changed."""
    before, after = places.get(line - 1, -1 if line == 0 else None), places.get(line)
    return after if before is None else before + 1
