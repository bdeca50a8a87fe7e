"""A note for the agent of a leg on how full its context is: a file in the leg's folder, read once.

Whoever takes the file away has told the agent: the shell around its hook (`agents.launch`), or the answer of
one of its tools. It holds what a hook prints, so that the shell only has to copy it.
"""

import contextlib
import json
import os

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import read_bounded, write_atomic

NOTE_FILE = "context-note.json"
_LIMIT_BYTES = 1 << 16


def leave_note(folder: str, text: str) -> None:
    """Leave the note in the leg's folder, in place of one not read yet; with an empty text take that back.

    Raises RelayError if it cannot be written.
    """
    path = f"{folder}/{NOTE_FILE}"
    if not text:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    says = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    write_atomic(path, json.dumps({"hookSpecificOutput": says}).encode(), durable=False)


def take_note(folder: str) -> str:
    """Take the note out of the leg's folder and return its text; empty if there is none to read."""
    path, own = f"{folder}/{NOTE_FILE}", f"{folder}/{NOTE_FILE}.{os.getpid()}"
    try:
        os.rename(path, own)
    except OSError:
        return ""
    try:
        found = json.loads(read_bounded(own, limit_bytes=_LIMIT_BYTES))
        return str(found["hookSpecificOutput"]["additionalContext"])
    except (RelayError, OSError, ValueError, KeyError, TypeError):
        return ""
    finally:
        with contextlib.suppress(OSError):
            os.unlink(own)
