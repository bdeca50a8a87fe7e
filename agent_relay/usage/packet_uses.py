"""Read what the successors of a session did with their packets, from their own records on this machine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import get_journal_path, get_session_folder
from agent_relay.domain.session import Leg, Session
from agent_relay.session.fold import fold_events
from agent_relay.session.handoff_history import HandoffHistory, HandoffRecord
from agent_relay.sources.session_records import ConversationRecord, read_records
from agent_relay.store.journal import read_events
from agent_relay.store.packets import read_packet
from agent_relay.system.disk.folders import Folders
from agent_relay.transcripts.usage_records import list_answers
from agent_relay.usage._dedupe import Native
from agent_relay.usage.gather import Gathered
from agent_relay.usage.packet_use import (
    EARLY,
    PacketUse,
    build_packet_use,
    count_tokens,
    find_span,
    fold_packet_use,
    select_facts,
)


def read_packet_uses(
    root: str,
    session_id: str,
    folders: Folders,
    *,
    environ: Mapping[str, str],
    natives: Iterable[Native] = (),
) -> dict[str, PacketUse]:
    """Return by handoff what its successor did with the packet, of those that were delivered.

    `natives` are the native sessions whose usage counts the tokens. Raises RelayError if the journal cannot
    be read.
    """
    events = read_events(get_journal_path(root, session_id))
    session, history = fold_events(events), HandoffHistory(events)
    made = [record for record in history.records if _find_delivery(record) is not None]
    if session is None or not made:
        return {}
    folder = get_session_folder(root, session_id)
    adapters = read_catalog(folders, root=root).adapters
    records = read_records(session, events, folder=folder, adapters=adapters, environ=environ)
    used = {native.session: native for native in natives}
    return {record.id: _read_one(session, record, records, folder, used) for record in made}


def read_gathered_uses(
    gathered: Gathered, folders: Folders, environ: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """Return the uses of all sessions gathered, as JSON objects by handoff; note unreadable journals.

    Each also says by which lane its successor learned of the work.
    """
    found: dict[str, dict[str, object]] = {}
    for work in gathered.works:
        try:
            uses = read_packet_uses(
                work.root, work.session, folders, environ=environ, natives=gathered.natives
            )
        except RelayError as error:
            gathered.problems.append(error.sentence)
        else:
            lanes = {leg.handoff: leg.lane for leg in work.legs}
            found |= {
                handoff: _add_lane(build_packet_use(use), lanes.get(handoff, ""))
                for handoff, use in uses.items()
            }
    return found


def _add_lane(use: dict[str, object], lane: str) -> dict[str, object]:
    return {**use, "lane": lane, "text": f"{lane}; {use['text']}" if lane else use["text"]}


def _find_delivery(record: HandoffRecord) -> datetime | None:
    return next((one.at for one in reversed(record.trail) if one.event == "handoff.delivered"), None)


def _read_one(
    session: Session,
    record: HandoffRecord,
    records: Sequence[ConversationRecord],
    folder: str,
    used: Mapping[str, Native],
) -> PacketUse:
    delivered_at = _find_delivery(record)
    place = next(
        (place for place, leg in enumerate(session.legs, 1) if record.legs and leg.id == record.legs[-1]), 0
    )
    found = next((one for one in records if place in one.legs), None)
    if found is None or not place or delivered_at is None:
        return PacketUse(lacks="its record is not known")
    if found.lacks:
        return PacketUse(lacks=found.lacks)
    try:
        packet = read_packet(f"{folder}/{record.json_path}")
    except (RelayError, OSError):
        return PacketUse(lacks="its packet cannot be read")
    leg = session.legs[place - 1]
    facts = select_facts(found.facts, *find_span(session.legs, found.legs, place))
    if facts is None:
        return PacketUse(lacks="nothing dates what its record holds, and others wrote to it, too")
    use = fold_packet_use(packet, facts, root=packet.git.root if packet.git is not None else session.root)
    return count_tokens(use, _list_dated(used, leg), leg.starting_at - EARLY)


def _list_dated(used: Mapping[str, Native], leg: Leg) -> Iterator[tuple[datetime, int]]:
    native = used.get(leg.native_id)
    for answer in list_answers(native.used) if native is not None else ():
        if answer.at:
            yield datetime.fromtimestamp(answer.at / 1000, UTC), answer.tokens
