"""Packets that wait for a successor: saved without a launch and edited since, or imported."""

from collections.abc import Callable

from agent_relay.domain.documents.packet import ResumePacket, parse_document, render_json
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.inputs import Published
from agent_relay.domain.session import Handoff, Session
from agent_relay.session.views.messages import session_folder
from agent_relay.store.packet_publication import IMPORTED
from agent_relay.store.packets import (
    LIMIT_BYTES,
    find_edited,
    list_packets,
    read_as_left,
    read_delivery_text,
    read_document,
    read_packet,
    replace_file,
)
from agent_relay.system.disk.files import read_bounded


def find_waiting(session: Session, handoff: Handoff, folder: str) -> Published | None:
    """Return the packet that is picked up as it is; `None` if one has to be written.

    A person who hands over by hand means the packet they edited for that agent, if it is the newest; an
    imported session has nothing else. Raises UntrustedDataError if it cannot be trusted.
    """
    rows = [row for row in list_packets(folder) if row[1] == handoff.to_agent]
    if not is_under_way(session, handoff) or not rows:
        return None
    sequence, target, path = rows[-1]
    if sequence not in list_saved(session):
        return None
    if not is_brought(session, handoff) and not _is_meant(session, handoff, folder, sequence):
        return None
    packet = read_packet(path)
    seal = read_document(path).get("published")
    known = str(seal.get("document")) if isinstance(seal, dict) else ""
    stem = f"resume/{sequence:04}-{target}"
    return Published(handoff.id, packet.packet_id, sequence, f"{stem}.json", f"{stem}.md", known)


def _is_meant(session: Session, handoff: Handoff, folder: str, sequence: int) -> bool:
    """Tell whether a handoff by hand means packet `sequence`: edited, or of an agent idle since then.

    A handoff at a limit means none; and a packet that is not meant may be broken.
    """
    if handoff.reason != "manual":
        return False
    is_idle = any(leg.id == handoff.from_leg and leg.handoff and not leg.was_busy for leg in session.legs)
    return is_idle or find_edited(folder, sequence, handoff.to_agent) != "nothing"


def find_source(session: Session, handoff: Handoff, folder: str) -> ResumePacket | None:
    """Return the packet from which one for another agent is made, as its user left it; `None` to use facts.

    An imported session has no transcript. A successor that replaces one that failed to start must not read
    what was deleted for that one either.
    """
    rows = [row for row in list_packets(folder) if row[0] <= session.packets]
    brought = is_brought(session, handoff)
    if not is_under_way(session, handoff) or not rows or not (brought or session.tried):
        return None
    sequence, target, _ = rows[-1]
    if brought:
        return read_as_left(folder, sequence, target)
    try:
        is_edited = find_edited(folder, sequence, target) != "nothing"
        return read_as_left(folder, sequence, target) if is_edited else None
    except RelayError:
        # An edit that cannot be read keeps nobody from being told what the records say.
        return None


def find_spoilt(session: Session, render: Callable[[str], Callable[[ResumePacket], str]]) -> dict[str, str]:
    """Return, by agent, why the packet that waits for it cannot be used; others have a good one, or none.

    `render` returns the function that renders packets for an agent. Reads disk.
    """
    if not session.may_owe_packet:
        return {}
    spoilt: dict[str, str] = {}
    for sequence, target, is_given in _list_waiting(session):
        why = _find_fault(session_folder(session), sequence, target, is_given=is_given, render=render)
        if why:
            spoilt[target] = why
    return spoilt


def _list_waiting(session: Session) -> list[tuple[int, str, bool]]:
    """List the packets that would be picked up: number, target, and whether they are given as they are."""
    folder, saved, owed = session_folder(session), list_saved(session), session.retriable
    newest = {target: sequence for sequence, target, _ in list_packets(folder)}
    brought = any(leg.agent == IMPORTED for leg in session.legs[-1:])
    waiting = [(sequence, target, brought) for target, sequence in newest.items() if sequence in saved]
    if owed is not None and owed.sequence and newest.get(owed.to_agent, 0) <= owed.sequence:
        waiting.append((owed.sequence, owed.to_agent, True))
    return waiting


def _find_fault(
    folder: str,
    sequence: int,
    target: str,
    *,
    is_given: bool,
    render: Callable[[str], Callable[[ResumePacket], str]],
) -> str:
    """Return what keeps a successor from being given the packet, empty if nothing does.

    Empty also for a packet that would not be used as it is.
    """
    stem = f"{folder}/resume/{sequence:04}-{target}"
    try:
        if find_edited(folder, sequence, target) == "nothing" and not is_given:
            return ""
        text = read_delivery_text(folder, sequence, target, render=render(target)).text
        read_packet(f"{stem}.json")
    except ConfigurationError:
        return ""
    except RelayError as error:
        return error.sentence
    return "" if text.strip() else f"{stem}.md is empty"


def take_terms(path: str, given: ResumePacket) -> None:
    """Write the expectations of `given` into the document at `path`; leave everything else in it as it was.

    Raises RelayError if it was changed at that moment, or cannot be written.
    """
    terms = given.model_dump(mode="json", include={"expectations", "rollback"}, exclude_none=True)
    before = read_bounded(path, limit_bytes=LIMIT_BYTES)
    document = parse_document(before, name=path)
    after = {**document, **terms}
    if after != document:
        data = render_json(after).encode("utf-8", "backslashreplace")
        replace_file(path, data, before=before, is_picked_up=lambda: False)


def list_saved(session: Session) -> frozenset[int]:
    """Return the numbers of packets that were saved and that no leg was given."""
    given = {handoff.sequence for handoff in session.done}
    return frozenset(session.saved) - given


def is_under_way(session: Session, handoff: Handoff) -> bool:
    """Tell whether a successor follows; a packet may also be made without one."""
    return session.handoff is not None and session.handoff.id == handoff.id


def is_brought(session: Session, handoff: Handoff) -> bool:
    """Tell whether the predecessor is an imported packet, not an agent that worked here."""
    return any(leg.id == handoff.from_leg and leg.agent == IMPORTED for leg in session.legs)
