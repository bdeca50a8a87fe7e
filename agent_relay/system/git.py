"""Reads a working tree through the git program: what changed, in which state, and a fingerprint of it all."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agent_relay.domain.tree import Tree, TreeFile, render_path
from agent_relay.system.git_program import Answer, GitMissingError, ask_git

_LISTED_FILES = 1000
_LISTED_UNTRACKED = 200
_STATTED_UNTRACKED = 5000
# A name list this long is beyond what a packet or a fingerprint needs (about 40,000 paths).
_NAMES_BYTES = 4 << 20
_HASHED_FILE_BYTES = 8 << 20
_HASHED_TOTAL_BYTES = 32 << 20

_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--find-renames",
    "--ignore-submodules=dirty",
)
_STATUS = ("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=no", "--find-renames")
_UNTRACKED = ("ls-files", "--others", "--exclude-standard", "-z")

# Without refreshing the index, a file that was only touched shows as a header with nothing below it.
_BARE_HEADER = re.compile(r"^diff --git .*\n(?=diff --git |\Z)", re.MULTILINE)

_STATES = (
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase or am is in progress"),
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("BISECT_LOG", "a bisect is in progress"),
)


@dataclass(frozen=True, slots=True)
class Diff:
    r"""The diff of the working tree against HEAD; undecodable bytes are written `\xNN`.

    `cut` is true where it was longer than asked for.
    """

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of porcelain v2: the two status letters, its raw bytes, and the paths."""

    letters: str
    submodule: str
    raw: bytes
    path: bytes
    previous: bytes | None = None


def find_root(cwd: str) -> str | None:
    """The toplevel of the work tree `cwd` lies in, or `None` outside of one and without git."""
    try:
        (answer,) = ask_git(cwd, ("rev-parse", "--show-toplevel"))
    except GitMissingError:
        return None
    return _line(answer) or None


def read_tree(cwd: str) -> Tree:
    """The state of the tree `cwd` lies in; without git or a work tree, a Tree whose `note` says why."""
    folder = os.path.realpath(cwd)
    try:
        top, git_dir = ask_git(cwd, ("rev-parse", "--show-toplevel"), ("rev-parse", "--absolute-git-dir"))
        root = _line(top)
        if not root:
            return Tree(folder, note=_why_no_tree(folder, top, git_dir))
        status, names, counts = ask_git(
            root, _STATUS, _UNTRACKED, (*_DIFF, "--numstat", "-z", "HEAD", "--"), limit_bytes=_NAMES_BYTES
        )
        if not status.ok and not status.cut:
            return Tree(root, is_git=True, note=f"git cannot read this repository: {_error(status)}")
        if not counts.ok and b"branch.oid (initial)" in status.out:
            counts = _count_from_nothing(root)
    except GitMissingError as problem:
        reason = "git is not installed" if os.path.isdir(cwd) else f"the folder cannot be entered: {problem}"
        return Tree(folder, note=reason)
    return _build_tree(root, _line(git_dir), status, names, counts)


def read_diff(cwd: str, *, limit_bytes: int) -> Diff:
    """The tree's diff against HEAD, at most `limit_bytes` of it; empty outside a work tree."""
    try:
        (top,) = ask_git(cwd, ("rev-parse", "--show-toplevel"))
        root = _line(top)
        if not root:
            return Diff("")
        command = (*_DIFF, "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
        (answer,) = ask_git(root, (*command, "HEAD", "--"), limit_bytes=limit_bytes)
        if answer.code not in (0, -9) and not answer.out:
            (answer,) = ask_git(root, (*command, "--cached", "--"), limit_bytes=limit_bytes)
    except GitMissingError:
        return Diff("")
    text = answer.out.decode("utf-8", "backslashreplace")
    return Diff(_BARE_HEADER.sub("", text), cut=answer.cut)


def _line(answer: Answer) -> str:
    if not answer.ok:
        return ""
    return os.fsdecode(bytes(answer.out).removesuffix(b"\n"))


def _error(answer: Answer) -> str:
    if answer.timed_out:
        return "it did not answer in time"
    lines = answer.error.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "it gave no reason"


def _why_no_tree(folder: str, top: Answer, git_dir: Answer) -> str:
    if git_dir.ok:
        return "a repository without a work tree"
    error = _error(top)
    if "not a git repository (or any" not in error:
        return f"git cannot read this folder: {error}"
    # git walks past a repository with a torn HEAD as if it were not there.
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return ""
    return "git cannot read this folder: its .git is damaged"


def _count_from_nothing(root: str) -> Answer:
    """Line counts before the first commit: against the empty tree, whose name depends on the hash used."""
    (empty,) = ask_git(root, ("hash-object", "-t", "tree", "/dev/null"))
    (counts,) = ask_git(root, (*_DIFF, "--numstat", "-z", _line(empty), "--"), limit_bytes=_NAMES_BYTES)
    return counts


def _build_tree(root: str, git_dir: str, status: Answer, names: Answer, counts: Answer) -> Tree:
    headers, entries = _parse_status(bytes(status.out), torn=status.cut)
    untracked = bytes(names.out).split(b"\0")[:-1]
    lines = _parse_counts(bytes(counts.out)) if counts.ok else {}
    head = headers.get("branch.oid", "(initial)")
    branch = headers.get("branch.head", "(detached)")
    files = [_build_file(entry, lines) for entry in entries[:_LISTED_FILES]]
    files += [TreeFile(os.fsdecode(name), "untracked") for name in untracked[:_LISTED_UNTRACKED]]
    notes = list(_notes(git_dir, entries, unborn=head == "(initial)", detached=branch == "(detached)"))
    if status.cut or names.cut or counts.timed_out:
        notes.append("the list of changes is incomplete")
    tree = Tree(
        root,
        is_git=True,
        branch=None if branch == "(detached)" else branch,
        head=None if head == "(initial)" else head,
        dirty=bool(entries or untracked),
        note="; ".join(notes),
        files=tuple(files),
        omitted=len(entries) + len(untracked) - len(files),
    )
    return replace(tree, fingerprint=_fingerprint(root, headers, entries, untracked))


def _parse_status(out: bytes, *, torn: bool) -> tuple[dict[str, str], list[_Entry]]:
    headers: dict[str, str] = {}
    entries: list[_Entry] = []
    fields = iter(out.split(b"\0")[: -2 if torn else -1])
    for raw in fields:
        kind = raw[:2]
        if kind == b"# ":
            name, _, value = raw[2:].decode("utf-8", "surrogateescape").partition(" ")
            headers[name] = value
        elif kind in (b"1 ", b"2 ", b"u "):
            # The number of blank-separated fields before the path is fixed for each kind of line.
            parts = raw.split(b" ", {b"1 ": 8, b"2 ": 9, b"u ": 10}[kind])
            letters, submodule = ("u" if kind == b"u " else "") + parts[1].decode(), parts[2].decode()
            previous = next(fields, b"") if kind == b"2 " else None
            entries.append(_Entry(letters, submodule, raw, parts[-1], previous))
    return headers, entries


def _parse_counts(out: bytes) -> dict[bytes, tuple[int | None, int | None]]:
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    fields = iter(out.split(b"\0")[:-1])
    for field in fields:
        added, removed, path = field.split(b"\t", 2)
        if not path:  # a rename: the old and the new name follow as fields of their own
            next(fields, b"")
            path = next(fields, b"")
        counts[path] = (int(added), int(removed)) if added != b"-" else (None, None)
    return counts


def _build_file(entry: _Entry, counts: dict[bytes, tuple[int | None, int | None]]) -> TreeFile:
    status: Literal["created", "modified", "deleted", "renamed"] = "modified"
    if "u" not in entry.letters:
        if "D" in entry.letters:
            status = "deleted"
        elif "R" in entry.letters:
            status = "renamed"
        elif "A" in entry.letters or "C" in entry.letters:
            status = "created"
    added, removed = counts.get(entry.path, (None, None)) if "u" not in entry.letters else (None, None)
    previous = os.fsdecode(entry.previous) if entry.previous and status == "renamed" else None
    return TreeFile(os.fsdecode(entry.path), status, added, removed, previous)


def _notes(git_dir: str, entries: list[_Entry], *, unborn: bool, detached: bool) -> Iterator[str]:
    if unborn:
        yield "no commits yet"
    if detached and not unborn:
        yield "HEAD is detached"
    yield from (note for name, note in _STATES if os.path.exists(os.path.join(git_dir, name)))
    conflicts = sum(entry.letters.startswith("u") for entry in entries)
    if conflicts:
        yield f"{conflicts} {'file has' if conflicts == 1 else 'files have'} conflicts"
    changed = [render_path(os.fsdecode(entry.path)) for entry in entries if entry.submodule.startswith("S")]
    if changed:
        yield f"submodules with changes: {', '.join(changed[:5])}{' …' if len(changed) > 5 else ''}"  # noqa: PLR2004 - as many as are listed


def _fingerprint(root: str, headers: dict[str, str], entries: list[_Entry], untracked: list[bytes]) -> str:
    seal = hashlib.sha256(headers.get("branch.oid", "").encode())
    budget = _HASHED_TOTAL_BYTES
    base = os.fsencode(root)
    for entry in entries:
        seal.update(b"\0entry\0" + entry.raw + b"\0" + (entry.previous or b""))
        if entry.letters[-1] != "." or entry.letters.startswith("u"):
            budget -= _seal_file(seal, os.path.join(base, entry.path), budget)
    for name in untracked[:_STATTED_UNTRACKED]:
        seal.update(b"\0untracked\0" + name + _describe(os.path.join(base, name)))
    for name in untracked[_STATTED_UNTRACKED:]:
        seal.update(b"\0untracked\0" + name)
    return seal.hexdigest()


def _describe(path: bytes) -> bytes:
    try:
        found = os.lstat(path)
    except OSError:
        return b"\0gone"
    return b"\0%d %d" % (found.st_size, found.st_mtime_ns)


def _seal_file(seal: "hashlib._Hash", path: bytes, budget: int) -> int:
    """Mixes the file's contents into `seal`, or its size and time where it is too big to read."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            seal.update(os.readlink(path))
        elif stat.S_ISREG(found.st_mode) and found.st_size <= min(_HASHED_FILE_BYTES, budget):
            # Without blocking or following: the name may have become a pipe or a link since.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(path, flags), "rb") as stream:
                seal.update(hashlib.file_digest(stream, "sha256").digest())
            return found.st_size
        else:
            seal.update(_describe(path))
    except OSError:
        seal.update(b"\0unreadable")
    return 0
