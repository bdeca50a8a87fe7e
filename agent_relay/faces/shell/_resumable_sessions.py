"""Find what was left in this working tree: its last session, and a turn whose shell is gone."""

import os
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.names import get_journal_path
from agent_relay.faces.render.output import render_day
from agent_relay.faces.shell._conversation import SessionLock, is_shared
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events, read_session
from agent_relay.store.session_index import list_own_at, read_live_at, read_summary

_AT_WORK = frozenset(("starting", "ready", "busy", "asking", "handing-off", "limited"))


def find_under_way(root: str, index: str) -> str:
    """Return this working tree's session with a turn that perhaps no shell shows; empty for none."""
    for view in read_live_at(root, index):
        if view["state"] in _AT_WORK:
            try:
                is_one = find_place(root, str(view["session"])) is not None
            except (RelayError, OSError):
                continue
            if is_one:
                return str(view["session"])
    return ""


def find_last(root: str, index: str, lock: SessionLock) -> Mapping[str, object] | None:
    """Return this working tree's newest session in short; `None` if it is at work or in another shell.

    A session that rests in its agent's own screen counts as at work: a person may be at that screen.
    """
    found = max(list_own_at(root, index), key=lambda name: _find_age(root, name), default="")
    view = read_summary(root, found) if found else {"state": "gone"}
    is_over = view["state"] == "ended" or (view["state"] == "resting" and view["headless"])
    if not is_over or not view["agent"] or is_shared(lock, found):
        lock.leave()
        return None
    lock.leave()
    return view


def render_offer(view: Mapping[str, object]) -> str:
    """Return `Press Enter to continue 'fix the cents' (claude, yesterday 18:20)`."""
    what = f"'{view['title']}'" if view["title"] else f"session {str(view['session'])[-6:]}"
    return f"Press Enter to continue {what} ({view['agent']}, {render_day(view['updated_at'])})"


def find_resting(root: str, session: str) -> tuple[str, str] | None:
    """Return the newest turn's prompt and when to ask again (ISO 8601); `None` if it does not rest.

    It is `None` for a turn of a chat, too, which the chat asks again. The prompt is as the journal has it,
    without secrets.
    """
    found = read_session(get_journal_path(root, session))
    turn = found.turn if found is not None else None
    if found is None or turn is None or turn.outcome != "resting" or turn.seat:
        return None
    return turn.prompt, found.rested_until


def find_place(root: str, session: str) -> Mapping[str, object] | None:
    """Return the place before the first line of the running turn; `None` if there is none."""
    events = read_events(get_journal_path(root, session))
    found = fold_events(events)
    if found is None or found.open_turn is None:
        return None
    begun = [line.number for line in events if isinstance(line.body, TurnBegun)]
    return {"number": begun[-1] - 1, "leg": "", "offset": 0, "events": 0} if begun else None


def _find_age(root: str, session: str) -> float:
    """Return when the session's journal was last written; 0, the oldest, if that cannot be read."""
    try:
        return os.stat(get_journal_path(root, session)).st_mtime
    except OSError:
        return 0.0
