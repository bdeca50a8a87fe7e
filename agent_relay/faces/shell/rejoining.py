"""A turn that was begun by a shell which is gone: where its telling begins."""

import os
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError
from agent_relay.domain.turn_event import TurnBegun
from agent_relay.logic.fold import fold_events
from agent_relay.system.glances import read_sessions_at
from agent_relay.system.journal import read_events

_AT_WORK = frozenset(("starting", "ready", "busy", "asking", "handing-off", "limited"))


def find_under_way(root: str) -> str:
    """The session of this working tree with a turn nobody may be looking at; empty for none."""
    for view in read_sessions_at(root):
        if view["state"] in _AT_WORK:
            try:
                is_one = find_place(root, str(view["session"])) is not None
            except (RelayError, OSError):
                continue
            if is_one:
                return str(view["session"])
    return ""


def find_place(root: str, session: str) -> Mapping[str, object] | None:
    """The place before the first line of the turn that is under way; `None` where none is."""
    events = read_events(os.path.join(root, ".agent-relay", "sessions", session, "journal.jsonl"))
    found = fold_events(events)
    if found is None or found.open_turn is None:
        return None
    begun = [line.number for line in events if isinstance(line.body, TurnBegun)]
    return {"number": begun[-1] - 1, "leg": "", "offset": 0, "events": 0} if begun else None
