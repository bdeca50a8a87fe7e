"""Read a working tree through the git program: what changed, in which state, and a fingerprint of it all."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.values import Tree, TreeFile, render_path, replace
from agent_relay.system.disk.files import open_stream
from agent_relay.system.git import run as git
from agent_relay.system.programs import Ending, ProgramAnswer

_LISTED_FILES = 1000
_LISTED_UNTRACKED = 200
_STATTED_UNTRACKED = 5000
# A name list this long is beyond what a packet or a fingerprint needs (about 40,000 paths).
_NAMES_BYTES = 4 << 20
_HASHED_FILE_BYTES = 8 << 20
_HASHED_TOTAL_BYTES = 32 << 20
_UNREADABLE = "git cannot read"
_BARE = "a repository without a work tree"
_REFUSED = b"safe.bareRepository"

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

_STATES = (
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase or am is in progress"),
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("BISECT_LOG", "a bisect is in progress"),
)


class _Entry(msgspec.Struct, frozen=True):
    """One line of porcelain v2: the two status letters, its raw bytes, and the paths."""

    letters: str
    submodule: str
    raw: bytes
    path: bytes
    previous: bytes | None = None


def find_root(cwd: str, *, limit_s: float = git.TIMEOUT_S) -> str | None:
    """Return the top folder of the work tree around `cwd`; `None` outside of one and without git.

    Raise RelayError if git does not answer within `limit_s` seconds: another folder must not be used instead.
    """
    why = "git did not answer in time"
    try:
        answer, *_ = _find_place(cwd, limit_s)
        is_known = answer.ending is not Ending.LATE
    except git.GitMissingError as problem:
        if not problem.is_exhausted:
            return None
        is_known, why = False, f"git cannot be started: {problem}"
    if not is_known:
        raise RelayError(f"cannot tell which repository {cwd} is in: {why}", hint="Try again in a moment.")
    return _line(answer) or None


def read_tree(cwd: str, *, limit_s: float = git.TIMEOUT_S) -> Tree:
    """Read the state of the tree around `cwd`; without git or a work tree, the Tree's `note` says why.

    `limit_s` is how many seconds each of git's answers may take.
    """
    return _read(cwd, limit_s, (*_DIFF, "--numstat", "-z", "HEAD", "--"))


def read_uncounted_tree(cwd: str, *, limit_s: float = git.TIMEOUT_S) -> Tree:
    """Read the same without the numbers of added and removed lines, which takes less time."""
    return _read(cwd, limit_s)


def _read(cwd: str, limit_s: float, *counting: Sequence[str]) -> Tree:
    """Read the tree; `counting` is the command that counts lines, if they are wanted."""
    folder = os.path.realpath(cwd)
    try:
        top, git_dir, is_bare, first = _find_place(cwd, limit_s, *git.QUESTIONS)
        root = _line(top)
        if not root:
            note = _BARE if is_bare else _why_no_tree(folder, top, git_dir)
            is_whole = not note.startswith(_UNREADABLE)
            return Tree(folder, dirty=False if is_whole else None, note=note, is_whole=is_whole)
        known = first if root == folder else ()
        filters, is_every = git.build_filter_settings(root, limit_s=limit_s, first=known)
        status, names, *counts = git.ask_git(
            root,
            (*_STATUS, *(() if is_every else ("--ignore-submodules=dirty",))),
            *(_UNTRACKED, *counting),
            limit_bytes=_NAMES_BYTES,
            timeout_s=limit_s,
            environ=filters,
        )
        if not status.ok and (status.ending is Ending.LATE or not status.is_cut):
            return _describe_unread(root, _error(status))
        if counts and not counts[0].ok and b"branch.oid (initial)" in status.output:
            counts = [_count_from_nothing(root, limit_s, filters)]
    except git.GitMissingError as problem:
        return _describe_missing(folder, problem)
    except git.UnknownFiltersError as problem:
        return _describe_unread(root, str(problem))
    return _build_tree(root, _line(git_dir), status, names, counts)


def _find_place(
    cwd: str, limit_s: float, *more: Sequence[str]
) -> tuple[ProgramAnswer, ProgramAnswer, bool, Sequence[ProgramAnswer]]:
    """Return git's answers on the work tree around `cwd` and on its own folder, and to `more`.

    A bare repository on the way, which the third value reports, is treated as the plain folder it may be: its
    settings may come from people the user does not know. Raise GitMissingError.
    """
    folder, is_bare = os.path.realpath(cwd), False
    while True:
        top, git_dir, *rest = git.ask_git(
            folder if is_bare else cwd,
            *(("rev-parse", "--show-toplevel"), ("rev-parse", "--absolute-git-dir"), *more),
            timeout_s=limit_s,
        )
        above = os.path.dirname(folder)
        if above == folder or not _is_bare(folder, top, git_dir):
            return top, git_dir, is_bare, rest
        folder, is_bare = above, True


def _is_bare(folder: str, top: ProgramAnswer, git_dir: ProgramAnswer) -> bool:
    """Return whether git found a repository of which `folder` is itself a part, not its work tree."""
    if not top.ok and _REFUSED in top.errors:
        return True
    # Older ones than 2.38 know nothing of that, and go by the settings in it.
    found = _line(git_dir)
    if not found or os.path.basename(found) == ".git" or os.path.commonpath((found, folder)) != found:
        return False
    between = [folder]
    while between[-1] != found:
        between.append(os.path.dirname(between[-1]))
    return not any(os.path.lexists(os.path.join(one, ".git")) for one in between)


def _describe_missing(folder: str, problem: git.GitMissingError) -> Tree:
    if problem.is_exhausted:
        return Tree(folder, dirty=None, note=f"git cannot be started: {problem}", is_whole=False)
    is_there = os.path.isdir(folder)
    return Tree(
        folder, note="git is not installed" if is_there else f"the folder cannot be entered: {problem}"
    )


def _describe_unread(root: str, why: str) -> Tree:
    return Tree(root, is_git=True, dirty=None, note=f"{_UNREADABLE} this repository: {why}", is_whole=False)


def _line(answer: ProgramAnswer) -> str:
    if not answer.ok:
        return ""
    return os.fsdecode(answer.output.removesuffix(b"\n"))


def _error(answer: ProgramAnswer) -> str:
    if answer.ending is Ending.LATE:
        return "it did not answer in time"
    lines = answer.errors.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "it gave no reason"


def _why_no_tree(folder: str, top: ProgramAnswer, git_dir: ProgramAnswer) -> str:
    if git_dir.ok and top.ending is not Ending.LATE:
        return _BARE
    error = _error(top)
    if "not a git repository (or any" not in error:
        return f"{_UNREADABLE} this folder: {error}"
    # git walks past a repository with a torn HEAD as if it were not there.
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return ""
    return f"{_UNREADABLE} this folder: its .git is damaged"


def _count_from_nothing(root: str, limit_s: float, filters: Mapping[str, str]) -> ProgramAnswer:
    """Count lines before the first commit: against the empty tree, whose name depends on the hash used."""
    (empty,) = git.ask_git(root, ("hash-object", "-t", "tree", "/dev/null"), timeout_s=limit_s)
    (counts,) = git.ask_git(
        root,
        (*_DIFF, "--numstat", "-z", _line(empty), "--"),
        limit_bytes=_NAMES_BYTES,
        timeout_s=limit_s,
        environ=filters,
    )
    return counts


def _build_tree(
    root: str, git_dir: str, status: ProgramAnswer, names: ProgramAnswer, counts: Sequence[ProgramAnswer]
) -> Tree:
    headers, entries = _parse_status(status.output, torn=status.is_cut)
    untracked = names.output.split(b"\0")[:-1]
    lines = {path: count for one in counts if one.ok for path, count in _parse_counts(one.output).items()}
    head = headers.get("branch.oid", "(initial)")
    branch = headers.get("branch.head", "(detached)")
    files = [_build_file(entry, lines) for entry in entries[:_LISTED_FILES]]
    files += [TreeFile(os.fsdecode(name), "untracked") for name in untracked[:_LISTED_UNTRACKED]]
    notes = list(_notes(git_dir, entries, unborn=head == "(initial)", detached=branch == "(detached)"))
    if status.is_cut or names.is_cut or any(one.ending is Ending.LATE for one in counts):
        notes.append("the list of changes is incomplete")
    # Of a list that was too long the same part comes again; of one that failed, nobody knows what is missing.
    is_whole = names.ending is not Ending.LATE and (names.ok or names.is_cut)
    if not is_whole:
        notes.append(f"git did not list untracked files: {_error(names)}")
    tree = Tree(
        root,
        is_git=True,
        branch=None if branch == "(detached)" else branch,
        head=None if head == "(initial)" else head,
        dirty=bool(entries or untracked) or (False if is_whole else None),
        note="; ".join(notes),
        files=tuple(files),
        omitted=len(entries) + len(untracked) - len(files),
        is_whole=is_whole,
    )
    if not is_whole:
        return tree
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
    """Mix the file's contents into `seal`, or its size and time if it is too big; return the bytes read."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            seal.update(os.readlink(path))
        elif stat.S_ISREG(found.st_mode) and found.st_size <= min(_HASHED_FILE_BYTES, budget):
            # Without following: the name may have become a pipe or a link since.
            with open_stream(path, follow=False) as stream:
                seal.update(hashlib.file_digest(stream, "sha256").digest())
            return found.st_size
        else:
            seal.update(_describe(path))
    except (OSError, UntrustedDataError):
        seal.update(b"\0unreadable")
    return 0
