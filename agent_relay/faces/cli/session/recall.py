"""`agent-relay recall`: search what the session's earlier agents were asked, said, ran and changed."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.agents.catalog import load_adapters
from agent_relay.domain.errors import ExitCode, RelayError, WrongUseError
from agent_relay.domain.moments import render_moment
from agent_relay.domain.names import JOURNAL, LEG_VARIABLE, get_session_folder
from agent_relay.domain.text.plain import clean_text
from agent_relay.faces.cli.session.lookup import choose_here, find_session
from agent_relay.faces.cli.typer_runner import AsJson
from agent_relay.faces.render.output import print_contents, print_json, warn
from agent_relay.packet.recall.search import MOST_FOUND, Search
from agent_relay.packet.recall.turns import PastTurn, render_turn
from agent_relay.packet.render import prefix_lines
from agent_relay.redact.known_values import build_allow
from agent_relay.sources.session_records import (
    ABOUT,
    OTHER_WORDS,
    SessionRecord,
    build_record,
    count_turns,
    describe_turn,
    get_turn,
    name_turn,
    parse_place,
)
from agent_relay.store.journal import read_events, read_session
from agent_relay.store.session_index import find_near_root, list_own_at
from agent_relay.store.session_journals import find_leg_session
from agent_relay.system.config_file import gather_secrets, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders

_LONGEST_TOLD = 2000

Words = Annotated[list[str] | None, typer.Argument(metavar="QUERY", help="Search words, or a question.")]
SessionName = Annotated[
    str,
    typer.Option(
        "--session",
        help="A session's id, or its beginning or end; by default yours or the newest.",
    ),
]
Place = Annotated[
    str,
    typer.Option(
        "--turn",
        metavar="N",
        help="Print a whole turn: N of the newest agent, AGENT:N or LEG:N.",
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=MOST_FOUND, help="Print at most this many turns.")]


def recall(
    query: Words = None,
    *,
    session: SessionName = "",
    turn: Place = "",
    limit: Limit = 3,
    as_json: AsJson = False,
) -> int:
    """Search what this session's earlier agents were asked, said, ran and changed; print the best turns.

    Exact names, numbers and "quoted phrases" count most. Only this session is searched, and secrets are
    removed. Where an agent's own record is gone, what checkpoints kept of it is searched instead, else the
    journal and the packets.
    """
    asked = clean_text(" ".join(query or ())).strip()
    if not asked and not turn:
        raise WrongUseError("the query is missing", hint="agent-relay recall QUERY")
    wanted = parse_place(turn, asked) if turn else None
    record = read_record(session)
    for line in record.lacks:
        if not as_json:
            warn(line)
    if wanted is not None:
        return _show_turn(record, *wanted, as_json=as_json)
    search = Search(record.turns, asked)
    if not search.asks_anything:
        raise WrongUseError("the query contains no word to search for", hint="agent-relay recall QUERY")
    found = [(one, score, search.excerpt(one, record.clean)) for one, score in search.rank(limit)]
    if as_json:
        turns = [
            {**describe_turn(record, one), "score": round(score, 2), "text": text}
            for one, score, text in found
        ]
        print_json({**_begin(record), "query": record.clean(asked[:_LONGEST_TOLD]), "turns": turns})
    elif found:
        print_contents(ABOUT)
        for one, _, text in found:
            _print_turn(record, one, text)
        example = name_turn(record, found[0][0])
        print_contents("", f"A whole turn: agent-relay recall --session {record.session} --turn {example}")
    else:
        where = f"{count_turns(record)} of session {record.session}"
        raise RelayError(f"nothing was found in {where}", hint=OTHER_WORDS)
    return ExitCode.DONE if found else ExitCode.FAILED


def _show_turn(record: SessionRecord, where: str, number: int, *, as_json: bool) -> int:
    """Print one whole turn; raise RelayError if there is none."""
    found = get_turn(record, where, number)
    text = render_turn(found, record.clean)
    if as_json:
        print_json({**_begin(record), "turns": [{**describe_turn(record, found), "text": text}]})
    else:
        print_contents(ABOUT)
        _print_turn(record, found, text)
    return ExitCode.DONE


def _begin(record: SessionRecord) -> dict[str, object]:
    return {"session": record.session, "about": ABOUT, "lacks": list(record.lacks)}


def _print_turn(record: SessionRecord, turn: PastTurn, text: str) -> None:
    """Print a turn below a line that identifies it; every line of its text is marked as quoted."""
    when = f", {render_moment(turn.at, datetime.now(UTC), None)}" if turn.at is not None else ""
    by = f" of {turn.agent}" if name_turn(record, turn).partition(":")[0].isdecimal() else ""
    print_contents("", f"Turn {name_turn(record, turn)}{by}{when}", *prefix_lines(text).split("\n"))


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
    wishes = read_user_config(folders.config).redaction
    return build_record(
        found,
        events,
        folder=folder,
        adapters=load_adapters(folders, root=root),
        environ=os.environ,
        caller=leg,
        known=gather_secrets(root, os.environ, cwd=found.cwd or root),
        allow=build_allow(wishes.allow, wishes.allow_patterns),
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
