"""Diff and merge a packet's text as its user edited it, and apply the edit to the document."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from typing import cast

import msgspec

from agent_relay.domain.documents.document import Document
from agent_relay.domain.documents.packet import Quote, ResumePacket
from agent_relay.domain.text.plain import quote_text
from agent_relay.packet.extract.sentences import is_alike

_CONTEXT_LINES = 2
_MARK = re.compile(r"^[ \t>]+", re.MULTILINE)
_FIELDS = (
    "limit", "task", "task_pasted", "focus", "next_task", "decisions", "constraints", "blockers", "narrative",
    "exchanges", "attempts", "remarks", "touched_files", "validation_runs", "plan", "background",
    "expectations", "rollback", "last_lines", "last_screen", "recent_turns", "unprocessed_prompt",
)  # fmt: skip
"""The fields with texts, in the order in which the templates show them."""
_PARTS: dict[str, tuple[str, ...]] = {
    "limit": ("evidence",),
    "decisions": ("summary", "why"),
    "exchanges": ("on", "said", "ended_by", "revisited_by", "pasted", "failed", "measured", "told"),
    "constraints": ("text", "ended_by", "revisited_by"),
    "blockers": ("summary", "evidence"),
    "attempts": ("summary", "outcome"),
    "remarks": ("text",),
    "touched_files": ("path",),
    "validation_runs": ("command", "output_tail"),
    "plan": ("text",),
    "background": ("text",),
    "recent_turns": ("text",),
    "unprocessed_prompt": ("text", "pasted"),
}
"""The texts of the documents in a packet."""
_NEEDED = ("summary", "text", "path", "command")
"""The texts without which there is no entry."""
_NAMES = ("path", "command")
"""The texts beside which a line says what the record has of them."""
# What the templates put before a text on its line (the marks of quotations, lists and steps, a word for its
# kind, a file's old name), and behind it (the grounds, the counts, the turn).
_HEAD = re.compile(r"[ \t>]*(?:[-*+] )?(?:\[.\] )?(?:\w[\w ]{0,40}: )?(?:[^\n]{1,200} → )?`?")
_TAIL = re.compile(r"(?:`.*| — .*| \(.*)?")
_LONGEST_HEAD = 300
_QUOTED = re.compile(r"[ \t>]*")
_NOTHING = re.compile("")
_LISTED = re.compile(r"[ \t>]*(?:[-*+] )?(?:\[.\] )?")
_ITEM = re.compile(r"[ \t]*[-*+] ")
_TURN = re.compile(r" \((?:[\w-]+, )?turn \d+\)$")
_FENCE, _GROUNDS = "```", " — "
_NEXT, _PROMPT = ("next_task",), ("unprocessed_prompt", "text")


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


_Path = tuple[str | int, ...]


class _Passage(msgspec.Struct, frozen=True):
    """A text of the document, and the lines of the packet's text that show it.

    `head` is what stands before it on the first line, `tail` what stands behind it on the last.
    """

    path: _Path
    text: str
    start: int
    end: int
    head: str
    tail: str

    @property
    def mark(self) -> str:
        """The text before every line but the first."""
        return "  " if _ITEM.match(self.head) else self.head

    def is_followed_by(self, line: str) -> bool:
        """Check whether `line`, which was added, begins another item of the list."""
        item = _ITEM.match(self.head)
        return item is not None and line.startswith(item[0])


class _Shares(msgspec.Struct):
    """The lines of the edited text: those `given` to each passage, and those `added` that are of none."""

    given: dict[_Path, list[str]]
    changed: set[_Path] = msgspec.field(default_factory=set)
    added: list[str] = msgspec.field(default_factory=list)

    def give(self, passage: _Passage | None, line: str) -> None:
        """Give a new line to the passage; it stands for itself if there is none, or if it is another item."""
        if passage is None or (self.given[passage.path] and passage.is_followed_by(line)):
            self.added.append(line)
        else:
            self.given[passage.path].append(line)
            self.changed.add(passage.path)


def absorb_edit(packet: ResumePacket, before: str, after: str) -> ResumePacket:
    """Apply to the packet what the user changed in its text, from `before` to `after`.

    A text that was changed where it stands is changed in the document, what was removed is removed, and a
    line that was added becomes a rule of the user.
    """
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return packet
    texts = dict(_list_texts(packet))
    passages = list(_find_passages(texts, old))
    shares = _share_lines(passages, old, new)
    changes: dict[_Path, str] = {}
    for passage in passages:
        if passage.path in shares.changed:
            changes |= _read_change(passage, texts, old[passage.start : passage.end], shares)
    shown = {passage.text: passage.path for passage in passages}
    flat, left = _flatten(before), _flatten(after)
    for path in texts.keys() - changes.keys() - {one.path for one in passages}:
        twin = shown.get(texts[path])
        if twin in changes:
            changes[path] = changes[twin]
        elif twin is None and _is_gone(texts[path], flat, left):
            changes[path] = ""
    changed = _write_changes(packet, changes)
    known = {line.strip() for line in old}
    fresh = (line for line in shares.added if line.strip() not in known)
    rules = [text for text in (_MARK.sub("", line).removeprefix("- ").strip() for line in fresh) if text]
    if rules:
        quote = Quote(text="\n".join(dict.fromkeys(rules)))
        changed = changed.model_copy(update={"constraints": (*changed.constraints, quote)})
    return changed


def _list_texts(packet: ResumePacket) -> Iterator[tuple[_Path, str]]:
    """Yield the packet's texts with their paths in the document, in the order in which they are shown."""
    for name in _FIELDS:
        for path, text in _walk(getattr(packet, name), (name,)):
            if text.strip():
                yield path, text


def _walk(value: object, path: _Path) -> Iterator[tuple[_Path, str]]:
    match value:
        case str():
            yield path, value
        case Document():
            for part in _PARTS[str(path[0])]:
                yield from _walk(getattr(value, part), (*path, part))
        case dict():
            for key, inner in cast("dict[str, object]", value).items():
                yield from _walk(inner, (*path, key))
        case list() | tuple():
            for at, inner in enumerate(cast("Sequence[object]", value)):
                yield from _walk(inner, (*path, at))
        case _:
            pass


def _find_passages(texts: Mapping[_Path, str], lines: Sequence[str]) -> Iterator[_Passage]:
    """Find where each text stands: at the first free place behind the text before it, else at any."""
    free = [True] * len(lines)
    at = 0
    # A next step that is the waiting prompt is shown as that; the grounds are on their decision's line.
    places = sorted(texts.items(), key=lambda item: item[0] == _NEXT and item[1] == texts.get(_PROMPT))
    for path, text in places:
        if path[-1] == "why":
            continue
        for line in (*range(at, len(lines)), *range(at)):
            passage = _match(path, text, lines, line) if free[line] else None
            if passage is not None and all(free[passage.start : passage.end]):
                yield passage
                at = passage.end
                free[passage.start : at] = [False] * (at - passage.start)
                break


def _match(path: _Path, text: str, lines: Sequence[str], start: int) -> _Passage | None:
    """Match the text, as the templates show it, with the lines from `start` on."""
    shown = quote_text(text).strip()
    for form in dict.fromkeys((shown, shown.replace("\n", "\\n"))):
        parts = form.split("\n")
        head = tail = ""
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            line = lines[start + at] if start + at < len(lines) else ""
            around = _cut_line(line, part.rstrip(), _QUOTED if at else _HEAD, _TAIL if is_last else _NOTHING)
            if around is None:
                break
            head, tail = head if at else around[0], around[1]
            if is_last:
                return _Passage(path, text, start, start + len(parts), head, tail)
    return None


def _cut_line(line: str, part: str, head: re.Pattern[str], tail: re.Pattern[str]) -> tuple[str, str] | None:
    """Return what stands before and behind `part` on the line, or None if other words stand there."""
    at = line.find(part)
    while 0 <= at <= _LONGEST_HEAD:
        if head.fullmatch(line, 0, at) and tail.fullmatch(line, at + len(part)):
            return line[:at], line[at + len(part) :]
        at = line.find(part, at + 1)
    return None


def _share_lines(passages: Sequence[_Passage], old: Sequence[str], new: Sequence[str]) -> _Shares:
    """Find to which passage each line of the edited text belongs."""
    owners = {line: passage for passage in passages for line in range(passage.start, passage.end)}
    shares = _Shares({passage.path: [] for passage in passages})
    for kind, start, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        owned = [line for line in range(start, end) if line in owners]
        if kind == "equal":
            for line in owned:
                shares.given[owners[line].path].append(old[line])
            continue
        shares.changed |= {owners[line].path for line in owned}
        if kind == "insert":
            for text in new[begin:stop]:
                shares.give(_find_room(owners, old, start, text), text)
        elif kind == "replace":
            for at, text in _pair_lines(owners, old, range(start, end), new[begin:stop]):
                if at in owners or at < 0 or not _is_part(text, old[at]):
                    shares.give(owners.get(at), text)
    return shares


def _find_room(owners: Mapping[int, _Passage], old: Sequence[str], at: int, line: str) -> _Passage | None:
    """Return the passage in which `line` was put, before the line `at` of the old text; else None."""
    above, below = owners.get(at - 1), owners.get(at)
    if above is not None:
        is_fenced = above.start > 0 and old[above.start - 1].startswith(_FENCE)
        is_quoted = ">" in above.mark and line.startswith(above.mark.rstrip())
        return above if above is below or is_fenced or is_quoted else None
    return below if at and old[at - 1].startswith(_FENCE) else None


def _pair_lines(
    owners: Mapping[int, _Passage], old: Sequence[str], place: range, new: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield each new line with the number of the old line in `place` that it replaces, or -1."""
    told = [line for line in place if old[line].strip()]
    if told and told[0] in owners and all(owners.get(line) is owners[told[0]] for line in told):
        yield from ((told[0], line) for line in new)
    elif len(place) == len(new):
        yield from zip(place, new, strict=True)
    else:
        left = list(place)
        for line in new:
            at = next((at for at in left if line.strip() and is_alike(_flatten(old[at]), _flatten(line))), -1)
            left = [one for one in left if one > at]
            yield at, line


def _is_part(line: str, old: str) -> bool:
    """Check whether `line` is what is left of the line `old` after words were taken out."""
    words = iter(_flatten(old).replace(",", " ").split())
    return all(word in words for word in _flatten(line).replace(",", " ").split())


def _read_change(
    passage: _Passage, texts: Mapping[_Path, str], old: Sequence[str], shares: _Shares
) -> dict[_Path, str]:
    """Return the passage's new text, and that of its grounds, by their paths; a text removed is empty.

    Lines that do not tell a new name are added to those that stand for themselves.
    """
    lines = shares.given[passage.path]
    if not any(line.strip(" \t>") for line in lines):
        is_moved = {line.strip() for line in old} <= {line.strip() for line in shares.added}
        return {} if is_moved else {passage.path: ""}
    has_tail = lines[-1].endswith(passage.tail)
    if passage.path[-1] in _NAMES and not (has_tail and lines[0].startswith(passage.head)):
        shares.added += [line for line in lines if not _is_part(line, " ".join(old))]
        name = quote_text(passage.text).strip().replace("\n", "\\n")
        return {} if name in "\n".join(lines) else {passage.path: ""}
    value = _read_lines(passage, lines)
    if len(old) == 1 and "\n" in passage.text.strip():
        value = value.replace("\\n", "\n")
    if has_tail or not passage.tail.startswith(_GROUNDS):
        return {passage.path: value}
    summary = passage.text.strip()
    known = value.startswith(summary + _GROUNDS)
    summary, _, why = (summary, "", value[len(summary + _GROUNDS) :]) if known else value.partition(_GROUNDS)
    grounds = (*passage.path[:-1], "why")
    return {passage.path: summary.strip()} | ({grounds: why.strip()} if grounds in texts else {})


def _read_lines(passage: _Passage, lines: Sequence[str]) -> str:
    """Return what the lines say, without what the template put around it."""
    first = lines[0].removeprefix(passage.head)
    if not lines[0].startswith(passage.head):
        first = _LISTED.sub("", first, count=1)
    mark = passage.mark
    rest = (line.removeprefix(mark if line.startswith(mark) else mark.rstrip()) for line in lines[1:])
    text = "\n".join((first, *rest))
    turn = _TURN.search(passage.tail)
    for tail in (passage.tail, turn[0] if turn else ""):
        if tail and text.endswith(tail):
            return text.removesuffix(tail).strip()
    return text.strip()


def _write_changes(packet: ResumePacket, changes: Mapping[_Path, str]) -> ResumePacket:
    """Return the packet with its texts changed; an empty one is removed, and what needs it goes with it."""
    update: dict[str, object] = {}
    for name in {str(path[0]) for path in changes}:
        inner = {path[1:]: text for path, text in changes.items() if path[0] == name}
        update[name] = _change(getattr(packet, name), inner)
    return packet.model_copy(update=update) if update else packet


def _change(value: object, changes: Mapping[_Path, str]) -> object:
    """Return `value` with its texts at the paths of `changes` changed; None if it goes altogether."""
    if not changes or () in changes:
        return changes.get((), value) or None

    def change(key: str | int, inner: object) -> object:
        return _change(inner, {path[1:]: text for path, text in changes.items() if path[0] == key})

    match value:
        case Document():
            parts = {str(path[0]): text for path, text in changes.items()}
            is_gone = any(not text and part in _NEEDED for part, text in parts.items())
            return None if is_gone else value.model_copy(update=parts)
        case dict():
            items = ((key, change(key, inner)) for key, inner in cast("dict[str, object]", value).items())
            return {key: inner for key, inner in items if inner is not None} or None
        case list() | tuple():
            changed = [change(at, inner) for at, inner in enumerate(cast("Sequence[object]", value))]
            kept = [inner for inner in changed if inner is not None]
            return kept if isinstance(value, list) else tuple(kept)
        case _:
            return value


def _is_gone(text: str, old: str, new: str) -> bool:
    """Check whether a text stands in `old`, on lines of its own or in one, and no longer in `new`."""
    shown = quote_text(text).strip()
    forms = (_flatten(shown), _flatten(shown.replace("\n", "\\n")))
    return any(flat and flat in old and flat not in new for flat in forms)


def _flatten(text: str) -> str:
    """Return `text` in one line, without the marks of quotations and the indentation of lists."""
    return " ".join(_MARK.sub("", text).split())
