"""What a runner changed, from git's own diff: which paths, and which lines of the base."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
_REPOSITORY = b"160000"
_EXECUTABLE = {b"100644": False, b"100755": True}


class ChangeKind(StrEnum):
    """How a path changed."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Lines `first` to `last` of the base, from 1; an insertion after `last` where `first` is beyond it."""

    first: int
    last: int

    @property
    def is_insertion(self) -> bool:
        """Whether no line of the base is replaced or removed."""
        return self.first > self.last


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs from the base; `path` with undecodable bytes as surrogate escapes.

    `spans` are in order, and empty for changes without lines: binary files, links, modes, empty files. `blob`
    names the new contents. `is_repository` marks a submodule or a repository made by the runner. `executable`
    is whether the file may be run from now on, `None` if nothing about that has changed.
    """

    path: str
    kind: ChangeKind
    blob: str = ""
    spans: tuple[LineSpan, ...] = ()
    added: int = 0
    removed: int = 0
    is_repository: bool = False
    executable: bool | None = None


def parse_changes(raw: bytes, patch: bytes) -> tuple[Change, ...]:
    """Parse the changes from `git diff-tree --raw -z` and the same command's `-p -U0`, one for each path.

    Neither may detect renames. A patch that was cut short costs spans and counts, not paths.
    """
    hunks = _gather_hunks(patch)
    return tuple(_build_change(*entry, hunks) for entry in _split_raw(raw))


def _split_raw(raw: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    fields = raw.split(b"\0")[:-1]
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        yield head.removeprefix(b":").split(b" "), path


def _build_change(
    parts: list[bytes], path: bytes, hunks: Mapping[bytes, list[tuple[LineSpan, int]]]
) -> Change:
    old_mode, new_mode, _, blob, letter = parts
    kind = {b"A": ChangeKind.ADDED, b"D": ChangeKind.DELETED}.get(letter[:1], ChangeKind.CHANGED)
    found = hunks.get(path, [])
    return Change(
        path=path.decode("utf-8", "surrogateescape"),
        kind=kind,
        blob=blob.decode("ascii"),
        spans=tuple(span for span, _ in found),
        added=sum(added for _, added in found),
        removed=sum(span.last - span.first + 1 for span, _ in found),
        is_repository=_REPOSITORY in (old_mode, new_mode),
        executable=None if old_mode == new_mode or old_mode not in _EXECUTABLE else _EXECUTABLE.get(new_mode),
    )


def _gather_hunks(patch: bytes) -> dict[bytes, list[tuple[LineSpan, int]]]:
    """Return the base's spans by path, each with the number of lines that replaced it.

    The lines below a hunk's header are counted off, so that none of them is taken for a header.
    """
    found: dict[bytes, list[tuple[LineSpan, int]]] = {}
    lines = iter(patch.split(b"\n"))
    path = b""
    for line in lines:
        if line.startswith(b"diff --git "):
            path = b""
        elif line.startswith((b"--- ", b"+++ ")):
            path = _parse_name(line[4:]) or path
        elif (head := _HUNK.match(line)) is not None:
            start, removed, added = int(head[1]), int(head[2] or 1), int(head[4] or 1)
            found.setdefault(path, []).append((_build_span(start, removed), added))
            _skip(lines, removed + added)
    return found


def _build_span(start: int, removed: int) -> LineSpan:
    return LineSpan(start, start + removed - 1) if removed else LineSpan(start + 1, start)


def _skip(lines: Iterator[bytes], count: int) -> None:
    for _ in range(count):
        next(lines, b"")


def _parse_name(text: bytes) -> bytes:
    """Return the path of a `---` or `+++` line without its `a/` or `b/`; empty for `/dev/null`."""
    text = text.removesuffix(b"\t")
    if text.startswith(b'"') and text.endswith(b'"'):
        text = _QUOTED.sub(_unquote, text[1:-1])
    return text[2:] if text.startswith((b"a/", b"b/")) else b""


def _unquote(found: re.Match[bytes]) -> bytes:
    mark = found[1]
    return _ESCAPES[mark] if mark in _ESCAPES else bytes([int(mark, 8) & 0xFF])
