"""Save working trees as commits in a race's own store, and read the differences between them."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import cannot_write, read_bounded, write_atomic
from agent_relay.system.git.run import GitMissingError, ask_git
from agent_relay.system.programs import Ending, ProgramAnswer

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
    """Kind of change to a path."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


class LineSpan(msgspec.Struct, frozen=True):
    """Lines `first` to `last` of the base, from 1; an insertion after `last` where `first` is beyond it."""

    first: int
    last: int

    @property
    def is_insertion(self) -> bool:
        """True if no line of the base is replaced or removed."""
        return self.first > self.last


class Change(msgspec.Struct, frozen=True):
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


_SOME_LEFT_OUT = 1
"""The exit status of `git add --ignore-errors` if single files could not be read or stored."""
_TRIES = 3
"""Most tries: git fails if a file is deleted between two looks at it, and a process may still write."""
WORK_S = 600.0
"""Longest time for git on a big tree, in seconds; far more than it takes for one it has read before."""
_INDEX_BYTES = 256 << 20
_PATCH_BYTES = 64 << 20
_OLDEST = (2, 38)
"""The oldest version of git with `merge-tree --write-tree`."""
# Nothing of ours may be written beside the user's index, and no warning may be taken for an error.
_PLAIN = (
    "-c", "core.splitIndex=false", "-c", "core.untrackedCache=false", "-c", "core.safecrlf=false",
    "-c", "advice.addEmbeddedRepo=false", "-c", "index.sparse=false",
)  # fmt: skip
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "agent-relay"), ("EMAIL", "race@agent-relay.invalid"), ("DATE", "@0 +0000"))
}
"""Always the same, so that the same tree is always the same commit."""


class Store(msgspec.Struct, frozen=True):
    """The race's own object store in `folder`; it also reads the repository's objects in `repository`.

    A race saves working trees here, so that the user's repository keeps nothing of them.
    """

    folder: str
    repository: str

    def variables(self, index: str = "") -> dict[str, str]:
        """Return variables that make git write here, and use the file `index` instead of the tree's own."""
        quoted = self.repository.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        found = {"GIT_OBJECT_DIRECTORY": self.folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}
        return found | ({"GIT_INDEX_FILE": index} if index else {})


def run_git(
    cwd: str, *command: str, environ: Mapping[str, str] | None = None, limit_bytes: int = _PATCH_BYTES
) -> bytes:
    """Return the output of one git command. Raise RelayError with git's own reason if it failed."""
    answer = try_git(cwd, *command, environ=environ, limit_bytes=limit_bytes)
    if not answer.ok:
        raise RelayError(f"git {command[0]} failed in {cwd}: {render_failure(answer)}")
    return answer.output


def try_git(
    cwd: str, *command: str, environ: Mapping[str, str] | None = None, limit_bytes: int = _PATCH_BYTES
) -> ProgramAnswer:
    """Return the answer of one git command, a failed one too. Raise RelayError if git cannot be started."""
    try:
        (answer,) = ask_git(
            cwd, (*_PLAIN, *command), environ=environ or {}, timeout_s=WORK_S, limit_bytes=limit_bytes
        )
    except GitMissingError as error:
        raise RelayError(f"git cannot be run in {cwd}: {error}") from None
    return answer


def render_failure(answer: ProgramAnswer) -> str:
    """Return git's own reason in one line."""
    if answer.ending is Ending.LATE:
        return f"it took longer than {WORK_S:g} s"
    if answer.is_cut:
        return "its output is too long"
    lines = answer.errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ").removeprefix("error: ") if lines else "it gave no reason"


def read_line(cwd: str, *command: str) -> str:
    """Return the one line that git prints; empty if it fails."""
    answer = try_git(cwd, *command)
    return os.fsdecode(answer.output.removesuffix(b"\n")) if answer.ok else ""


def check_version(cwd: str) -> None:
    """Raise RelayError if git is too old to merge without a working tree."""
    said = read_line(cwd, "version").split(" ")
    numbers = said[2].split(".") if len(said) > 2 else []  # noqa: PLR2004 - "git version 2.39.5"
    found = tuple(int(number) for number in numbers[:2] if number.isdigit())
    if found < _OLDEST:
        have = ".".join(numbers) or "unknown"
        raise RelayError(f"a race needs git 2.38 or newer, this is {have}", hint="Upgrade git.")


def open_store(folder: str, root: str) -> Store:
    """Open the store in `folder` beside the repository of `root`; create it if missing. Raise RelayError."""
    objects = read_line(root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    if not objects:
        raise RelayError(f"{root} is no longer a git repository")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return Store(folder, objects)


@contextmanager
def own_index(store: Store) -> Iterator[dict[str, str]]:
    """Yield variables for commands on `store` with an index that nobody else writes; delete it afterwards.

    Two reads of one tree may overlap, and git of a killed daemon may still be at work: with one file for
    both, or with the lock such a git has left, half a tree would be taken for the whole. Raise RelayError.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="index-", dir=store.folder, ignore_cleanup_errors=True)
    except OSError as error:
        raise cannot_write(store.folder, error) from error
    with folder as path:
        yield store.variables(os.path.join(path, "index"))


def write_snapshot(tree: str, store: Store, *, parent: str = "") -> str:
    """Save all files of the working tree `tree` that git does not ignore as a commit; return the commit.

    Written to `store` only. What cannot be read is left out. The same files under the same parent give the
    same commit. Raise RelayError.
    """
    with own_index(store) as variables:
        _add_all(tree, variables)
        written = run_git(tree, "write-tree", environ=variables).decode("ascii").strip()
        parents = ("-p", parent) if parent else ()
        message = ("-m", "agent-relay race")
        commit = run_git(tree, "commit-tree", written, *parents, *message, environ=variables | _IDENTITY)
    return commit.decode("ascii").strip()


def _add_all(tree: str, variables: Mapping[str, str]) -> None:
    """Add every file of `tree` that can be read to the index of `variables`. Raise RelayError."""
    for _ in range(_TRIES):
        copy_index(tree, variables["GIT_INDEX_FILE"])
        added = try_git(tree, "add", "--all", "--ignore-errors", ".", environ=variables)
        if added.ok or (added.status == _SOME_LEFT_OUT and _has_all(tree, variables)):
            return
        if added.ending is Ending.LATE:
            break
    raise RelayError(f"git add failed in {tree}: {render_failure(added)}")


def _has_all(tree: str, variables: Mapping[str, str]) -> bool:
    """Return whether git left out only what it cannot add: nested repositories and unreadable files."""
    words = ("ls-files", "--modified", "--others", "--exclude-standard", "-z")
    paths = run_git(tree, *words, environ=variables).split(b"\0")[:-1]
    return not any(_is_readable(os.path.join(os.fsencode(tree), path)) for path in paths)


def _is_readable(path: bytes) -> bool:
    return os.path.islink(path) or (os.path.isfile(path) and os.access(path, os.R_OK))


def copy_index(tree: str, target: str) -> None:
    """Copy the index of `tree` to file `target`; delete `target` if the tree has none. Raise RelayError."""
    path = read_line(tree, "rev-parse", "--path-format=absolute", "--git-path", "index")
    try:
        data = read_bounded(path, limit_bytes=_INDEX_BYTES)
    except FileNotFoundError:
        if os.path.lexists(target):
            os.unlink(target)
        return
    write_atomic(target, data, durable=False)


def read_changes(cwd: str, store: Store, base: str, result: str) -> tuple[Change, ...]:
    """Return the changes from commit `base` to commit `result`. Raise RelayError."""
    common = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    marks = ("--src-prefix=a/", "--dst-prefix=b/", "--full-index")
    variables = store.variables()
    raw = run_git(cwd, *common, "--raw", "-z", "--full-index", base, result, environ=variables)
    patch = try_git(cwd, *common, *marks, "-p", "--unified=0", base, result, environ=variables)
    if not patch.ok and not patch.is_cut:
        raise RelayError(f"git diff-tree failed in {cwd}: {render_failure(patch)}")
    return parse_changes(raw, patch.output)


def count_lines(cwd: str, store: Store, base: str, result: str) -> tuple[int, int, int]:
    """Count files, added and removed lines between two commits; a renamed file counts by its changes."""
    out = run_git(
        cwd, "diff-tree", "-r", "--find-renames", "--no-ext-diff", "--shortstat", base, result,
        environ=store.variables(),
    )  # fmt: skip
    counts = dict.fromkeys(("file", "insertion", "deletion"), 0)
    for part in out.decode("ascii", "replace").split(","):
        number, _, word = part.strip().partition(" ")
        name = next((name for name in counts if word.startswith(name)), "")
        if name:
            counts[name] = int(number)
    return counts["file"], counts["insertion"], counts["deletion"]


def read_patch(cwd: str, store: Store, base: str, result: str, words: Sequence[str] = ()) -> bytes:
    """Return the diff from commit `base` to commit `result` as git prints it, binary files included."""
    command = ("diff-tree", "-r", "-p", "--find-renames", "--no-ext-diff", "--no-textconv", *words)
    return run_git(cwd, *command, base, result, environ=store.variables())
