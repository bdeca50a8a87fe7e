"""The user's index of sessions: where each one's folder is, and which of them have ended.

A file `<session>.json` names a session's root. An empty file `ended/<session>` says that its journal has
ended and that nothing of it runs, so that looking for the others need not open it. The journal is the truth;
a missing mark costs one reading of it. Hot commands import this module.
"""

import os

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.protocol.quick_json import parse_json
from agent_relay.domain.values.ulid import is_ulid
from agent_relay.system.disk.files import cannot_write, read_bounded, write_atomic
from agent_relay.system.disk.folders import ensure_private

_ENTRY = ".json"
_ENDED = "ended"
_ENTRY_BYTES = 64 << 10


def list_index(index: str) -> list[tuple[str, str]]:
    """Return (session, root) of every readable entry of the user's `index` folder, oldest session first."""
    found = ((name, find_root(index, name)) for name in list_named(index))
    return [(session, root) for session, root in found if root]


def list_named(index: str) -> list[str]:
    """Return every session the index has an entry of, oldest first; opens no file."""
    return sorted(_list_entries(index))


def list_unended(index: str) -> list[str]:
    """Return the sessions not known to have ended, oldest first; opens no file."""
    return sorted(_list_entries(index) - list_ended(index))


def list_ended(index: str) -> set[str]:
    """Return the sessions known to have ended; opens no file."""
    try:
        return set(os.listdir(os.path.join(index, _ENDED)))
    except OSError:
        return set()


def find_root(index: str, session: str) -> str:
    """Return the absolute path of the root the entry names; empty if no entry can be read."""
    if not is_ulid(session):
        return ""
    try:
        entry = parse_json(read_bounded(_get_path(index, session), limit_bytes=_ENTRY_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return ""
    root = entry.get("root") if isinstance(entry, dict) else None
    return root if isinstance(root, str) and os.path.isabs(root) else ""


def check_session_id(session: str) -> None:
    """Raise UntrustedDataError if it is no session's id, which might lead out of the folder of sessions."""
    if not is_ulid(session):
        raise UntrustedDataError("this is not a session id, which has 26 letters and digits")


def has_entry(index: str, session: str) -> bool:
    """Tell whether the index has an entry of the session, readable or not."""
    return os.path.lexists(_get_path(index, session))


def write_entry(index: str, session: str, *, root: str, cwd: str) -> None:
    """Name the session in the index. Raise RelayError if the disk refuses."""
    check_session_id(session)
    import json  # dear, and only what reads must be quick

    ensure_private(os.path.dirname(index))
    ensure_private(index)
    entry = json.dumps({"root": root, "cwd": cwd}).encode()
    write_atomic(_get_path(index, session), entry, durable=False)


def remove_entry(index: str, session: str) -> None:
    """Remove the session from the index; harmless when repeated. Raise RelayError."""
    for path in (_get_mark(index, session), _get_path(index, session)):
        _unlink(path)


def mark_ended(index: str, session: str) -> None:
    """Mark the session as ended, so that its journal need not be read for that. Raise RelayError.

    Only for a session that has an entry, and of which nothing runs and nothing is left to clean up.
    """
    path = _get_mark(index, session)
    try:
        if not os.path.isdir(os.path.dirname(path)):
            ensure_private(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise cannot_write(path, error) from error


def unmark_ended(index: str, session: str) -> None:
    """Remove the mark before the session goes on: a crash would lose what ran under it. Raise RelayError."""
    _unlink(_get_mark(index, session))


def _list_entries(index: str) -> set[str]:
    """Return the sessions that have an entry."""
    try:
        names = os.listdir(index)
    except OSError:
        return set()
    return {name[: -len(_ENTRY)] for name in names if name.endswith(_ENTRY)}


def _get_path(index: str, session: str) -> str:
    return os.path.join(index, f"{session}{_ENTRY}")


def _get_mark(index: str, session: str) -> str:
    return os.path.join(index, _ENDED, session)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(path, error) from error
