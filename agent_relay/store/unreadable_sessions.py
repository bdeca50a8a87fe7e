"""Find sessions whose journal cannot be read, and move their folders out of the way."""

import os

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.values.project_layout import get_journal_path, get_session_folder
from agent_relay.store.journal import read_events, read_session
from agent_relay.store.project import secure_session
from agent_relay.store.session_index import remove_entry
from agent_relay.system.disk.files import cannot_write, sync_folder

_ASIDE = ".unreadable"


def find_damage(root: str, session: str) -> str:
    """Return why the session's journal cannot be continued; empty if it can, or if there is none."""
    path = get_journal_path(root, session)
    try:
        if read_session(path) is None and read_events(path):
            return f"{path} does not begin with a session"
    except RelayError as error:
        return error.sentence
    return ""


def set_aside(index: str, session: str, *, root: str) -> str:
    """Move the session's folder aside, whole and ignored by git, and return its path; it is no session then.

    Raise WrongUseError if its journal can be read, RelayError if it cannot be moved.
    """
    folder = get_session_folder(root, session)
    if not find_damage(root, session):
        raise WrongUseError(f"the journal of session {session} can be read, so it stays where it is")
    secure_session(root, session)
    aside = _find_free(f"{folder}{_ASIDE}")
    try:
        os.rename(folder, aside)
        sync_folder(os.path.dirname(folder))
    except OSError as error:
        raise cannot_write(aside, error) from error
    remove_entry(index, session)
    return aside


def _find_free(path: str) -> str:
    found, count = path, 1
    while os.path.lexists(found):
        found, count = f"{path}-{count}", count + 1
    return found
