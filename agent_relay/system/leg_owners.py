"""Which session a leg belongs to, noted in the leg's own folder: what is left where the index is lost."""

import json
import os

from agent_relay.domain.errors import RelayError
from agent_relay.domain.ulid import is_ulid
from agent_relay.system.files import read_bounded, write_atomic

_NAME = "session.json"
_LIMIT_BYTES = 64 << 10


def note_owner(leg_folder: str, session: str, *, root: str, cwd: str) -> None:
    """Write into the leg's folder whose it is. Raise RelayError where the disk refuses."""
    note = json.dumps({"session": session, "root": root, "cwd": cwd}).encode()
    write_atomic(os.path.join(leg_folder, _NAME), note, durable=False)


def list_owners(legs: str) -> list[tuple[str, str, str]]:
    """Return (session, root, cwd) of every leg below `legs` that says so; a session once for each leg."""
    try:
        names = [name for name in os.listdir(legs) if is_ulid(name)]
    except OSError:
        return []
    owners = (_read_owner(os.path.join(legs, name)) for name in sorted(names))
    return [owner for owner in owners if owner is not None]


def _read_owner(leg_folder: str) -> tuple[str, str, str] | None:
    try:
        note = json.loads(read_bounded(os.path.join(leg_folder, _NAME), limit_bytes=_LIMIT_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return None
    found = [note.get(key) for key in ("session", "root", "cwd")] if isinstance(note, dict) else []
    session, root, cwd = (value if isinstance(value, str) else "" for value in (found or ("", "", "")))
    return (session, root, cwd) if is_ulid(session) and os.path.isabs(root) else None
