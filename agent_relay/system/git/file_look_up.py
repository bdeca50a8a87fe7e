"""Look up files of a tree: whether they match HEAD or are gone, their lines, and when they were written."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.values import Tree, TreeFile, replace
from agent_relay.system.disk.files import open_stream
from agent_relay.system.git import run as git

# At most this many files are looked up by name: the operating system limits the length of a command.
_ASKED_FILES = 500
_ASKED_BYTES = 1 << 20
# No file has a longer path, but agents' records may name anything.
_LONGEST_PATH = 4096
_COUNTED_FILE_BYTES = 1 << 20
_COUNTED_TOTAL_BYTES = 8 << 20
_NAMES_BYTES = 4 << 20


def look_up_files(tree: Tree, files: Iterable[str], *, limit_s: float = git.TIMEOUT_S) -> Tree:
    """Return the tree with the state of `files` (absolute paths).

    Those that match HEAD are listed as `clean`, those that no longer exist anywhere as `gone`; the lines of
    untracked ones are counted. If git did not report everything in time, the tree is returned unchanged.
    """
    if not tree.is_git or not tree.is_whole or tree.omitted:
        return tree
    asked = list(dict.fromkeys(name for path in files if (name := _find_name(tree.root, path))))
    seen = {file.path for file in tree.files}
    others = _choose_newest([name for name in asked if name not in seen])
    tracked: set[str] = set()
    if others:
        command = ("ls-files", "-z", "--", *others)
        try:
            (answer,) = git.ask_git(tree.root, command, limit_bytes=_NAMES_BYTES, timeout_s=limit_s)
        except git.GitMissingError:
            return tree
        if not answer.ok:
            return tree
        tracked = {os.fsdecode(name) for name in answer.output.split(b"\0")}
    return replace(
        tree,
        files=tuple(_count_untracked(tree.root, tree.files, frozenset(asked))),
        clean=tuple(name for name in others if name in tracked),
        gone=tuple(
            name
            for name in others
            if name not in tracked and not os.path.lexists(os.path.join(tree.root, name))
        ),
    )


def _choose_newest(names: Sequence[str]) -> list[str]:
    """Return the last of `names`, as many as one command can ask for."""
    room, chosen = _ASKED_BYTES, list[str]()
    for name in reversed(names[-_ASKED_FILES:]):
        room -= len(os.fsencode(name)) + 1
        if room < 0:
            break
        chosen.append(name)
    return chosen[::-1]


def _find_name(root: str, path: str) -> str:
    """Return the path relative to the root; symbolic links to folders are followed.

    Empty if it is not below the root, or not a path at all: one bad entry must not spoil the look-up.
    """
    if not _is_path(path):
        return ""
    folder, name = os.path.split(os.path.normpath(path))
    inner = os.path.relpath(os.path.join(os.path.realpath(folder), name), root)
    return "" if inner == os.curdir or inner.split(os.sep, 1)[0] == os.pardir else inner


def _is_path(path: str) -> bool:
    try:
        return "\0" not in path and os.path.isabs(path) and len(os.fsencode(path)) <= _LONGEST_PATH
    except UnicodeEncodeError:
        return False


def date_files(tree: Tree) -> Tree:
    """Return the tree with the times at which its changed files were last written."""
    return replace(tree, files=tuple(_date_file(tree.root, file) for file in tree.files))


def _date_file(root: str, file: TreeFile) -> TreeFile:
    try:
        found = os.lstat(os.path.join(root, file.path))
    except OSError:
        return file
    return replace(file, changed_at=datetime.fromtimestamp(found.st_mtime, UTC))


def _count_untracked(root: str, files: Sequence[TreeFile], asked: frozenset[str]) -> Iterator[TreeFile]:
    """Yield the files, untracked ones among `asked` with their line counts."""
    budget = _COUNTED_TOTAL_BYTES
    for file in files:
        if file.status != "untracked" or file.path not in asked:
            yield file
            continue
        path = os.fsencode(os.path.join(root, file.path))
        size = _measure(path)
        lines = _count_file(path) if size is not None and size <= min(_COUNTED_FILE_BYTES, budget) else None
        budget -= size if lines is not None and size is not None else 0
        yield replace(file, added=lines, removed=None if lines is None else 0)


def _measure(path: bytes) -> int | None:
    """Return the size of a regular file in bytes, `None` for anything else."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _count_file(path: bytes) -> int | None:
    """Count the file's lines as git does; `None` if it is binary or cannot be read."""
    try:
        with open_stream(path, follow=False) as stream:
            data = stream.read(_COUNTED_FILE_BYTES)
    except (OSError, UntrustedDataError):
        return None
    if b"\0" in data:
        return None
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))
