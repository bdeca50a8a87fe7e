"""Read a headless turn as it goes on: its journal's lines and its agents' streams, in order.

Nothing is kept for followers: each holds a cursor, and files are read on from there. So output may be of any
size, and followers do not notice that a daemon was killed in between.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

import msgspec

from agent_relay.agents.launch import STREAM_FILE
from agent_relay.domain.documents.adapter import StreamRule, Totals
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.session import Event
from agent_relay.domain.protocol.operations import StreamCursor
from agent_relay.domain.protocol.run_output import LeftOut, RunEvent, Text
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import replace
from agent_relay.engine.services import Services
from agent_relay.session.turns.output import OutputItem, read_record, subtract_totals
from agent_relay.session.turns.report import report_agent_output, report_event
from agent_relay.sources.record_fields import read_totals
from agent_relay.sources.record_framing import MAX_RECORD_BYTES, parse_object
from agent_relay.system.disk.files import open_stream

_ENOUGH = 96 << 10
"""Bytes of one answer, as it is sent; with one more piece it stays below a line's limit."""
_PIECE = 32 << 10
_TOO_LONG: Mapping[str, object] = {}
_REST: Mapping[str, object] = {}


class StreamPart(msgspec.Struct, frozen=True):
    """The events after a cursor, and the cursor after them."""

    events: tuple[RunEvent, ...]
    cursor: StreamCursor


def read_stream_part(
    services: Services, session: Session, journal: Sequence[Event], cursor: StreamCursor, zone: tzinfo
) -> StreamPart:
    """Return what came after `cursor`, as much as fits an answer. Reads disk."""
    found: list[RunEvent] = []
    size = 0
    for event, after in _walk(services, session, journal, cursor, zone):
        cursor = after
        if event is not None:
            found.append(event)
            size += len(json.dumps(event.model_dump(mode="json")))
        if size >= _ENOUGH:
            break
    return StreamPart(tuple(found), cursor)


def read_words(services: Services, leg: Leg) -> str:
    """Return what the leg's agent said in its turn, message by message; empty if none of it is kept."""
    words: list[str] = []
    is_open = False
    for event, _ in _read_stream(services, None, leg, StreamCursor(0, leg.id)):
        if isinstance(event, Text):
            words.append(event.text if is_open or not words else f"\n\n{event.text}")
            is_open = event.more
        elif event is not None:
            is_open = False
    return "".join(words).strip()


def _walk(
    services: Services, session: Session, journal: Sequence[Event], cursor: StreamCursor, zone: tzinfo
) -> Iterator[tuple[RunEvent | None, StreamCursor]]:
    """Yield the events after `cursor`, each with the cursor after it.

    The stream of the cursor's leg comes first: it is never ahead of the lines that end the leg.
    """
    legs = {leg.id: leg for leg in session.legs}
    while True:
        if cursor.leg in legs:
            for event, after in _read_stream(services, session, legs[cursor.leg], cursor):
                cursor = after
                yield event, cursor
        following = journal[cursor.number : cursor.number + 1]
        if not following:
            return
        line = following[0]
        cursor = replace(cursor, number=cursor.number + 1)
        begun = report_event(journal[: cursor.number], line, zone)
        leg = getattr(line.body, "leg", "")
        if line.body.name == "leg.starting" and leg in legs and legs[leg].headless:
            cursor = StreamCursor(cursor.number, leg)
        yield begun, cursor


def _read_stream(
    services: Services, session: Session | None, leg: Leg, cursor: StreamCursor
) -> Iterator[tuple[RunEvent | None, StreamCursor]]:
    """Yield what the leg said after `cursor`, each event with the cursor after it.

    Without its session, its usage is left out.
    """
    headless = services.get_adapter(leg.agent).adapter.headless
    says = headless.says if headless is not None else ()
    path = f"{services.folders.legs}/{leg.id}/{STREAM_FILE}"
    for offset, end, record in _read_records(path, cursor.offset):
        skip = cursor.events if offset == cursor.offset else 0
        events = list(_report_record(says, record, session, leg))
        for count, event in enumerate(events[skip:], start=skip + 1):
            is_last = count == len(events)
            place = (
                replace(cursor, offset=end, events=0)
                if is_last
                else replace(cursor, offset=offset, events=count)
            )
            yield event, place
        if not events:
            yield None, replace(cursor, offset=end, events=0)


def _report_record(
    says: Sequence[StreamRule], record: Mapping[str, object], session: Session | None, leg: Leg
) -> Iterator[RunEvent]:
    if record is _TOO_LONG:
        yield LeftOut(leg=leg.id, agent=leg.agent, longest=MAX_RECORD_BYTES)
    if record is _TOO_LONG or record is _REST:
        return
    for item in read_record(says, record):
        said = _count_own(item, session, leg)
        if said is None:
            continue
        pieces = range(0, len(said.text) or 1, _PIECE)
        for at in pieces:
            rest = at + _PIECE < len(said.text)
            part = replace(said, text=said.text[at : at + _PIECE], is_piece=said.is_piece or rest)
            event = report_agent_output(part, leg)
            if event is not None:
                yield event


def _count_own(said: OutputItem, session: Session | None, leg: Leg) -> OutputItem | None:
    """Return `said` with the usage of the leg's own turn, if its agent reports totals of the conversation.

    `None` if the turn's share cannot be computed: no figure is better than a wrong one.
    """
    if said.totals is None:
        return said
    earlier = _find_earlier(said.totals, session, leg) if session is not None else None
    own = subtract_totals(said.tokens, earlier) if earlier is not None else None
    return replace(said, tokens=own) if own is not None else None


def _find_earlier(totals: Totals, session: Session, leg: Leg) -> Mapping[str, int] | None:
    """Return what the leg's conversation had used before it; `None` if it resumes one and that is unknown."""
    names = {leg.native_id} - {""}
    same = [one for one in session.legs if one.id == leg.id or one.native_id in names]
    paths = dict.fromkeys(one.transcript for one in reversed(same) if one.transcript)
    for path in paths:
        found = read_totals(path, totals, before=leg.starting_at)
        if found is not None:
            return found
    return None if leg.resumes else {}


def _read_records(path: str, offset: int) -> Iterator[tuple[int, int, Mapping[str, object]]]:
    """Yield every whole line from `offset` on that is an object, with its start and end.

    A line that is too long is `_TOO_LONG` where it begins, and `_REST` in all its later parts.
    """
    try:
        file = open_stream(path, follow=False)
    except (OSError, UntrustedDataError):
        return
    with file:
        file.seek(max(0, offset - 1))
        is_within = offset > 0 and file.read(1) != b"\n"
        while line := file.readline(MAX_RECORD_BYTES):
            is_whole = line.endswith(b"\n")
            if not is_whole and not is_within and len(line) < MAX_RECORD_BYTES:
                return
            end = offset + len(line)
            if is_within:
                yield offset, end, _REST
            elif not is_whole:
                yield offset, end, _TOO_LONG
            elif (record := parse_object(line)) is not None:
                yield offset, end, record
            offset, is_within = end, not is_whole
