"""Diff and merge a packet's text as its user edited it, and apply the edit to the document."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from typing import cast

from agent_relay.domain.documents.packet import Quote, ResumePacket
from agent_relay.domain.text.plain import quote_text

_CONTEXT_LINES = 2
_MARK = re.compile(r"^[ \t>]+", re.MULTILINE)
_PARTS = {
    "constraints": "text",
    "decisions": "summary",
    "attempts": "summary",
    "remarks": "text",
    "blockers": "summary",
    "plan": "text",
    "touched_files": "path",
    "validation_runs": "command",
    "recent_turns": "text",
    "background": "text",
}
"""The lists of a packet, and which part of an entry names it."""
_TEXTS = ("task", "focus", "next_task", "narrative")


def diff_texts(before: str, after: str, *, names: tuple[str, str]) -> tuple[str, ...]:
    """Return the lines of a unified diff from `before` to `after`, without line ends; empty for no change."""
    lines = unified_diff(before.splitlines(), after.splitlines(), *names, n=_CONTEXT_LINES, lineterm="")
    return tuple(lines)


def merge_texts(base: str, mine: str, theirs: str) -> str:
    """Apply to `mine`, line by line, what `theirs` changed in `base`.

    What either of them deleted is gone. Where both changed the same lines, `mine` wins.
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
    """Map each line of `old` that is unchanged to its place in `new`."""
    places: dict[int, int] = {}
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        places |= {block.a + step: block.b + step for step in range(block.size)}
    return places


def _find_gap(places: dict[int, int], line: int) -> int | None:
    """Return where text between `line` and the one before it belongs, or `None` if that place was changed."""
    before, after = places.get(line - 1, -1 if line == 0 else None), places.get(line)
    return after if before is None else before + 1


def absorb_edit(packet: ResumePacket, before: str, after: str) -> ResumePacket:
    """Apply to the packet what the user changed in its text, from `before` to `after`.

    What the user removed from the text is removed from the document, too; what was added becomes a rule of
    the user.
    """
    old, new = _flatten(before), _flatten(after)

    def is_gone(text: str) -> bool:
        # As the templates show it: made harmless, on lines of its own or with its line feeds written out.
        shown = quote_text(text).strip()
        forms = (_flatten(shown), _flatten(shown.replace("\n", "\\n")))
        return any(flat and flat in old and flat not in new for flat in forms)

    changes: dict[str, object] = {}
    for field, part in _PARTS.items():
        entries: tuple[object, ...] = getattr(packet, field)
        kept = tuple(entry for entry in entries if not is_gone(getattr(entry, part)))
        if len(kept) < len(entries):
            changes[field] = kept
    for field in _TEXTS:
        if is_gone(getattr(packet, field) or ""):
            changes[field] = None
    if packet.unprocessed_prompt is not None and is_gone(packet.unprocessed_prompt.text):
        changes["unprocessed_prompt"] = None
    known = {line.strip() for line in before.splitlines()}
    fresh = (line for line in after.splitlines() if line.strip() not in known)
    added = [text for text in (_MARK.sub("", line).removeprefix("- ").strip() for line in fresh) if text]
    if added:
        rules = changes.get("constraints", packet.constraints)
        changes["constraints"] = (*cast("tuple[Quote, ...]", rules), Quote(text="\n".join(added)))
    return packet.model_copy(update=changes) if changes else packet


def _flatten(text: str) -> str:
    """Return `text` in one line, without the marks of quotations and the indentation of lists."""
    return " ".join(_MARK.sub("", text).split())
