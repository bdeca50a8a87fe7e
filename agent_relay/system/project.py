"""The `.agent-relay` folder of a repository: made, recognised and never taken from somebody else."""

import contextlib
import json
import os
import stat
from dataclasses import dataclass

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.ulid import is_ulid
from agent_relay.system.files import cannot_write, read_bounded, sync_folder, write_atomic
from agent_relay.system.removing import sweep_unfinished

FOLDER = ".agent-relay"
MARK = "agent-relay.json"
SCHEMA = "agent-relay/project"
VERSION = 1
_SESSIONS = "sessions"
_IGNORE = b"*\n"
_IGNORE_OURS = b"/.gitignore\n/agent-relay.json\n/0*/\n"
"""Sessions are named by ULIDs, whose first character stays 0 for some thousand years."""
_PRIVATE = 0o700
_MARK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Project:
    """A repository (or plain folder) `root` and its `folder`, ready to be written to."""

    root: str
    folder: str


def find_project(root: str) -> Project | None:
    """The project of `root` where relay has one; nothing is made. Raises RelayError as `open_project`."""
    folder = os.path.join(root, FOLDER)
    return Project(root, folder) if _read_mark(folder) else None


def open_project(root: str) -> Project:
    """The project of `root`, with a private folder that git ignores and that carries our mark.

    Another product writes a folder of the same name, and a project may come with one: what stands there
    stays as it is, git's view of it included, and only `sessions` carries our mark. Raises RelayError where
    the folder is a symlink, no folder, somebody else's, or cannot be written.
    """
    folder = os.path.join(root, FOLDER)
    try:
        made = _make_folder(folder)
        if made or not _read_mark(folder):
            for begun in (folder, os.path.join(folder, _SESSIONS)):
                sweep_unfinished(begun)
            whole = made or _is_begun(folder)
            ours = folder if whole else os.path.join(folder, _SESSIONS)
            _write_ignore(ours, _IGNORE if whole or _make_folder(ours) else _IGNORE_OURS)
            mark = json.dumps({"schema": SCHEMA, "version": VERSION}) + "\n"
            write_atomic(os.path.join(ours, MARK), mark.encode(), durable=False)
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return Project(root, folder)


def session_folder(project: Project, session_id: str) -> str:
    """The session's private folder, made with its `resume` folder where they were missing.

    Raises UntrustedDataError where `session_id` is none, RelayError where the folder cannot be made.
    """
    if not is_ulid(session_id):
        raise UntrustedDataError("a session id is 26 letters and digits, this one is not")
    folder = project.folder
    try:
        for name in (_SESSIONS, session_id, "resume"):
            parent, folder = folder, os.path.join(folder, name)
            if _make_folder(folder):
                sync_folder(parent)
            else:
                _tighten(folder)
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return os.path.dirname(folder)


def _make_folder(folder: str) -> bool:
    """Whether `folder` had to be made; where it was there, it is a folder of this user."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, _PRIVATE)
        return True
    found = os.lstat(folder)
    if stat.S_ISLNK(found.st_mode):
        raise RelayError(
            f"{folder} is a symlink, so relay will not write through it", hint="Remove the link."
        )
    if not stat.S_ISDIR(found.st_mode):
        raise RelayError(f"{folder} is a file where relay needs a folder", hint="Move the file away.")
    if found.st_uid != os.geteuid():
        raise RelayError(
            f"{folder} belongs to user {found.st_uid}, not to you",
            hint="Work as its owner, or move the folder away.",
        )
    return False


def _tighten(folder: str) -> None:
    """A folder of ours is private again, whatever a backup, a copy or a umask made of it."""
    if stat.S_IMODE(os.lstat(folder).st_mode) != _PRIVATE:
        os.chmod(folder, _PRIVATE)


def _is_begun(folder: str) -> bool:
    """Whether it is empty or wholly ignored by git: a crash may have cut short our making."""
    try:
        return read_bounded(os.path.join(folder, ".gitignore"), limit_bytes=_MARK_BYTES) == _IGNORE
    except FileNotFoundError:
        return not os.listdir(folder)


def _write_ignore(folder: str, rules: bytes) -> None:
    """Git ignores what relay writes, unless somebody has rules of their own there."""
    path = os.path.join(folder, ".gitignore")
    if not os.path.lexists(path):
        write_atomic(path, rules, durable=False)


def _read_mark(folder: str) -> bool:
    """Whether `folder` or what is ours of it carries our mark. Raises UntrustedDataError for a false one."""
    return _is_mark(os.path.join(folder, MARK)) or _is_mark(os.path.join(folder, _SESSIONS, MARK))


def _is_mark(path: str) -> bool:
    """Whether our mark stands there. Raises UntrustedDataError for a mark that cannot be ours."""
    folder = os.path.dirname(path)
    if os.path.islink(path):
        raise UntrustedDataError(f"{path} is a symlink, which relay never made", hint="Remove the link.")
    try:
        mark: object = json.loads(read_bounded(path, limit_bytes=_MARK_BYTES))
    except FileNotFoundError:
        return False
    except (ValueError, RecursionError):
        mark = None
    if not isinstance(mark, dict) or mark.get("schema") != SCHEMA:
        raise UntrustedDataError(
            f"{path} is not relay's, so {folder} may not be either", hint="Move it away."
        )
    version = mark.get("version")
    if type(version) is not int or version > VERSION:
        raise UntrustedDataError(f"{folder} was made by a newer agent-relay", hint="Upgrade agent-relay.")
    return True
