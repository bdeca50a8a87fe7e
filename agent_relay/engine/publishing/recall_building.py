"""Search a session's earlier agents for one at work in it, in a process of its own."""

from collections.abc import Mapping

import msgspec

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import JOURNAL, get_session_folder
from agent_relay.domain.text.plain import clean_text
from agent_relay.domain.values import AgentName
from agent_relay.packet.recall.search import Search
from agent_relay.packet.recall.turns import render_turn
from agent_relay.redact.known_values import AllowList
from agent_relay.session.fold import fold_events
from agent_relay.sources.session_records import (
    ABOUT,
    OTHER_WORDS,
    SessionRecord,
    build_record,
    count_turns,
    describe_turn,
    get_turn,
    parse_place,
)
from agent_relay.store.journal import read_events
from agent_relay.system.config_file import gather_secrets

_LONGEST_QUERY = 2000
_MOST_TEXT = 200_000
"""Most characters of an answer; a longer turn is cut to its beginning."""


class RecallOrder(msgspec.Struct, frozen=True):
    """A search and its place: `leg` is the asker's, `environ` the user's environment."""

    root: str
    session: str
    cwd: str
    leg: str
    environ: Mapping[str, str]
    adapters: Mapping[AgentName, LoadedAdapter]
    allow: AllowList
    query: str = ""
    turn: str = ""
    limit: int = 3


def recall(order: RecallOrder) -> dict[str, object]:
    """Return the best turns, or the whole one that is wanted, with what could not be searched.

    Raises WrongUseError if nothing is asked, RelayError if nothing is found. Reads disk.
    """
    asked = clean_text(order.query).strip()[:_LONGEST_QUERY]
    if not asked and not order.turn:
        raise WrongUseError("recall needs a query, or a turn")
    wanted = parse_place(order.turn, asked) if order.turn else None
    record = _read(order)
    head = {"about": ABOUT, "lacks": list(record.lacks)}
    if wanted is not None:
        found = get_turn(record, *wanted)
        text = render_turn(found, record.clean)[:_MOST_TEXT]
        return {**head, "turns": [{**describe_turn(record, found), "text": text}]}
    search = Search(record.turns, asked)
    if not search.asks_anything:
        raise WrongUseError("the query contains no word to search for")
    turns = [
        {**describe_turn(record, one), "score": round(score, 2), "text": search.excerpt(one, record.clean)}
        for one, score in search.rank(order.limit)
    ]
    if not turns:
        raise RelayError(f"nothing was found in {count_turns(record)} of this session", hint=OTHER_WORDS)
    return {**head, "turns": turns}


def _read(order: RecallOrder) -> SessionRecord:
    folder = get_session_folder(order.root, order.session)
    events = read_events(f"{folder}/{JOURNAL}")
    session = fold_events(events)
    if session is None:
        raise RelayError("this session has no journal")
    return build_record(
        session,
        events,
        folder=folder,
        adapters=order.adapters,
        environ=order.environ,
        caller=order.leg,
        known=gather_secrets(order.root, order.environ, cwd=order.cwd),
        allow=order.allow,
    )
