"""Read what `agent-relay recall` searches: the turns of a session's earlier agents."""

import os
from collections.abc import Callable
from functools import partial

from agent_relay.agents.catalog import load_adapters
from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import JOURNAL, LEG_VARIABLE, get_session_folder
from agent_relay.domain.text.plain import clean_text, quote_text
from agent_relay.faces.cli.session.lookup import choose_here, find_session
from agent_relay.redact.known_values import build_allow
from agent_relay.redact.text import redact_text
from agent_relay.sources.session_records import SessionRecord, build_record
from agent_relay.store.journal import read_events, read_session
from agent_relay.store.session_index import find_near_root, list_own_at
from agent_relay.store.session_journals import find_leg_session
from agent_relay.system.config_file import gather_secrets, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders


def read_record(word: str) -> SessionRecord:
    """Read the session whose id begins or ends with `word`; by default the one we run in, or the newest.

    Raises WrongUseError if none or several match, UntrustedDataError for a damaged journal.
    """
    folders, leg = get_folders(), os.environ.get(LEG_VARIABLE, "")
    view = find_session(folders, word) if word else _choose(leg)
    root, name = str(view["root"]), str(view["session"])
    folder = get_session_folder(root, name)
    events = read_events(f"{folder}/{JOURNAL}")
    found = read_session(f"{folder}/{JOURNAL}") if events else None
    if found is None:
        raise RelayError(f"session {name} has no journal", hint="See: agent-relay sessions")
    adapters = load_adapters(folders, root=root)
    cwd = found.cwd or root
    clean = build_cleaner(root, cwd)
    return build_record(
        found, events, folder=folder, adapters=adapters, environ=os.environ, caller=leg, clean=clean
    )


def _choose(leg: str) -> dict[str, object]:
    """Return the summary of the session our leg belongs to, else of the newest here."""
    folders = get_folders()
    if leg:
        own = find_leg_session(folders.legs, leg) or _find_by_journal(leg)
        if own:
            return find_session(folders, own)
    return choose_here(folders, "")


def _find_by_journal(leg: str) -> str:
    """Return the session here whose journal has the leg, or an empty string."""
    root, index = find_near_root(get_cwd()), get_folders().sessions
    for name in list_own_at(root, index):
        try:
            session = read_session(f"{get_session_folder(root, name)}/{JOURNAL}")
        except RelayError:
            continue
        if session is not None and any(one.id == leg for one in session.legs):
            return name
    return ""


def build_cleaner(root: str, cwd: str) -> Callable[[str], str]:
    """Return the function that cleans a text for display, as the texts of packets are cleaned."""
    wishes = read_user_config(get_folders().config).redaction
    known = gather_secrets(root, os.environ, cwd=cwd)
    allow = build_allow(wishes.allow, wishes.allow_patterns)
    redact = partial(redact_text, known=known, allow=allow)
    return lambda text: quote_text(redact(clean_text(text)).text) if text else text
