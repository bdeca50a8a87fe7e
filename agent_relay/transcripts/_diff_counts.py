"""Count added and removed lines in the forms in which agents record an edit."""

from collections.abc import Iterable


def count_hunks(lines: Iterable[object]) -> tuple[int, int]:
    """Count added and removed lines among the body lines of a diff, without file headers."""
    added = removed = 0
    for line in lines:
        if isinstance(line, str):
            added += line.startswith("+")
            removed += line.startswith("-")
    return added, removed


def count_unified(diff: str) -> tuple[int, int]:
    """Count added and removed lines of one file's unified diff, without headers before the first hunk."""
    lines = diff.split("\n")
    first = next((index for index, line in enumerate(lines) if line.startswith("@@")), None)
    if first is None:
        # Without hunk marks the two header lines are told by their own form.
        return count_hunks(line for line in lines if not line.startswith(("+++ ", "--- ")))
    return count_hunks(lines[first:])


def count_lines(text: str) -> int:
    """Count lines of `text` as a diff does: a last line without a line feed is a line."""
    return text.count("\n") + bool(text and not text.endswith("\n"))


def count_replacement(old: str, new: str) -> tuple[int, int]:
    """Count added and removed lines when `new` replaces `old`, without equal lines at both ends."""
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in (old, new))
    shorter = min(len(before), len(after))
    same = 0
    while same < shorter and before[same] == after[same]:
        same += 1
    tail = 0
    while tail < shorter - same and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return len(after) - same - tail, len(before) - same - tail
