"""Make and recognize the `.agent-relay` folder of a repository, and never take one that is not relay's."""

import contextlib
import json
import os
import stat

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.names import FOLDER, RESUME, SESSIONS, get_project_folder
from agent_relay.store.session_index import check_session_id
from agent_relay.system.disk.files import cannot_write, read_bounded, sync_folder, write_atomic
from agent_relay.system.disk.removal import sweep_unfinished, try_writing

MARK = "agent-relay.json"
SCHEMA = "agent-relay/project"
VERSION = 1
_RULES = ".gitignore"
_IGNORE = b"*\n"
_IGNORE_OURS = b"/.gitignore\n/agent-relay.json\n/0*/\n"
"""Sessions are named by ULIDs, whose first character stays 0 for some thousand years."""
_PRIVATE = 0o700
_MARK_BYTES = 1 << 16


def check_project(root: str) -> bool:
    """Tell whether relay has a folder in `root`; if it has none, `open_project` could make one.

    Nothing is made or left behind: writability is tested by writing. Raises RelayError if `open_project`
    would, and if nothing can be written for a session.
    """
    folder, place = get_project_folder(root), root
    try:
        with contextlib.suppress(FileNotFoundError):
            for name in (folder, os.path.join(folder, SESSIONS)):
                _check_folder(name)
                place = name
        found = _read_mark(folder)
        try_writing(place)
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return found


def open_project(root: str) -> str:
    """Return relay's private folder in `root`, ignored by git and with our mark; make it if missing.

    Another product writes a folder of the same name, and a project may come with one: such a folder stays as
    it is, also for git, and only `sessions` carries our mark; not if it has ignore rules of others, which
    may show it to git. Raises RelayError if the folder is a symlink, no folder, somebody else's, or cannot
    be written.
    """
    folder = get_project_folder(root)
    try:
        made = _make_folder(folder)
        if made or not _read_mark(folder):
            for begun in (folder, os.path.join(folder, SESSIONS)):
                sweep_unfinished(begun)
            whole = made or _is_begun(folder)
            ours = folder if whole else os.path.join(folder, SESSIONS)
            rules = _IGNORE if whole or _make_folder(ours) else _IGNORE_OURS
            if _write_ignore(ours, rules):
                mark = json.dumps({"schema": SCHEMA, "version": VERSION}) + "\n"
                write_atomic(os.path.join(ours, MARK), mark.encode(), durable=False)
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return folder


def make_session_folder(root: str, session_id: str) -> str:
    """Return the session's private folder in the project of `root`; make what is missing of it.

    Git ignores all of it by rules of its own: those above may have come with a clone, and git lets the
    innermost decide. Raises UntrustedDataError if `session_id` is none, RelayError if the folder cannot be
    made.
    """
    check_session_id(session_id)
    folder = open_project(root)
    try:
        for name in (SESSIONS, session_id, RESUME):
            parent, folder = folder, os.path.join(folder, name)
            is_new = _make_folder(folder)
            if is_new:
                sync_folder(parent)
            else:
                _tighten(folder)
            if name == session_id:
                _ignore_session(folder, is_new=is_new)
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return os.path.dirname(folder)


def _ignore_session(folder: str, *, is_new: bool) -> None:
    """Have git ignore a session's folder; in a new one without a file that only a sweep would remove.

    A daemon killed at this point leaves a folder that is no session's and is never read again.
    """
    if not is_new:
        _ignore_whole(folder)
        return
    handle = os.open(
        os.path.join(folder, _RULES),
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    try:
        os.write(handle, _IGNORE)
    finally:
        os.close(handle)


def open_part(root: str, name: str) -> str:
    """Return relay's folder `name` in the project's folder; make it if missing. Git ignores all of it.

    Raises RelayError if one of the two is a symlink, no folder, somebody else's, or cannot be written.
    """
    folder = get_project_folder(root)
    part = os.path.join(folder, name)
    try:
        if not os.path.lexists(part):
            open_project(root)
        _check_folder(folder)
        _make_folder(part)
        _ignore_whole(part)
    except OSError as problem:
        raise cannot_write(part, problem) from problem
    return part


def find_part(root: str, name: str) -> str:
    """Return the folder `open_part` would; empty if none exists.

    Raise RelayError if one of the two is a symlink, no folder, another user's, or cannot be opened.
    """
    folder = get_project_folder(root)
    part = os.path.join(folder, name)
    try:
        _check_folder(folder)
        _check_folder(part)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise RelayError(f"cannot open {part}: {problem.strerror}") from problem
    return part


def secure_session(root: str, session_id: str) -> None:
    """Check that the folder of a continued session is the user's own, and have git ignore all of it.

    A disk that refuses the latter does not stop the session. Raises UntrustedDataError if `session_id` is
    none, RelayError if one of the folders is a symlink, no folder, somebody else's or missing.
    """
    check_session_id(session_id)
    folder = root
    try:
        for name in (FOLDER, SESSIONS, session_id):
            folder = os.path.join(folder, name)
            _check_folder(folder)
    except OSError as problem:
        raise RelayError(f"cannot open {folder}: {problem.strerror}") from problem
    with contextlib.suppress(RelayError):
        _ignore_whole(folder)


def _make_folder(folder: str) -> bool:
    """Make `folder` if missing and tell whether it was; an existing one must be a folder of this user."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, _PRIVATE)
        return True
    _check_folder(folder)
    return False


def _check_folder(folder: str) -> None:
    """Check that it is a folder of this user. Raise RelayError if it is not, OSError if nothing is there."""
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


def _tighten(folder: str) -> None:
    """Make a folder of ours private again, whatever a backup, a copy or a umask made of it."""
    if stat.S_IMODE(os.lstat(folder).st_mode) != _PRIVATE:
        os.chmod(folder, _PRIVATE)


def _is_begun(folder: str) -> bool:
    """Tell whether it is empty or wholly ignored by git: a crash may have interrupted its making."""
    rules = _read_rules(folder)
    return not os.listdir(folder) if rules is None else rules == _IGNORE


def _ignore_whole(folder: str) -> None:
    """Have git ignore the folder and all in it, whatever rules it had. Raise RelayError."""
    if _read_rules(folder) != _IGNORE:
        write_atomic(os.path.join(folder, _RULES), _IGNORE, durable=False)


def _write_ignore(folder: str, rules: bytes) -> bool:
    """Write the ignore rules unless others exist; tell whether git ignores what relay writes."""
    found = _read_rules(folder)
    if found is None:
        write_atomic(os.path.join(folder, _RULES), rules, durable=False)
    return found in (None, rules, _IGNORE)


def _read_rules(folder: str) -> bytes | None:
    """Return git's ignore rules in `folder`; `None` if there are none, empty if git would not read them."""
    path = os.path.join(folder, _RULES)
    if not os.path.lexists(path):
        return None
    # Git does not follow a link at this name either.
    return b"" if os.path.islink(path) else read_bounded(path, limit_bytes=_MARK_BYTES)


def _read_mark(folder: str) -> bool:
    """Tell whether `folder` or its `sessions` carries our mark. Raise UntrustedDataError for a false one."""
    return _is_mark(os.path.join(folder, MARK)) or _is_mark(os.path.join(folder, SESSIONS, MARK))


def _is_mark(path: str) -> bool:
    """Tell whether our mark is at `path`. Raise UntrustedDataError for a mark that cannot be ours."""
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
