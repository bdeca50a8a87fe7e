"""Publish the packet of a handoff, built in a process with a limit; runs in a worker thread."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

from agent_relay.agents.adapters import LoadedAdapter, build_renderer
from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import parse_document, render_json
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.facts import Facts
from agent_relay.domain.inputs import Published
from agent_relay.domain.names import IMPORTED
from agent_relay.domain.session import Handoff, Session
from agent_relay.domain.values import replace
from agent_relay.engine.publishing._packet_building import (
    BuiltPacket,
    Extent,
    PacketOrder,
    add_given_terms,
    build_ordered,
    build_ordered_digest,
    is_brought,
    is_under_way,
    list_saved,
)
from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.engine.publishing.native_records import find_own, read_own_facts
from agent_relay.engine.services import Services
from agent_relay.packet import handoff_facts
from agent_relay.packet.freshness import list_later, list_touched, verify_freshness
from agent_relay.packet.render import mark_stale
from agent_relay.redact.known_values import AllowList, build_allow
from agent_relay.redact.packet import collect_fact_keys
from agent_relay.redact.text import redact_text, redact_words
from agent_relay.session.views.messages import session_folder
from agent_relay.store import packets
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.project import make_session_folder
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.failures import find_passing
from agent_relay.system.git.file_look_up import look_up_files
from agent_relay.system.git.tree_state import read_tree
from agent_relay.system.limited_process import (
    KilledError,
    LimitedProcess,
    TookTooLongError,
    WorkLimit,
    run_here,
)

_log = logging.getLogger(__name__)
_OUR_MISTAKE = "agent-relay made a mistake with it; a crash report was written"
_LIMITS = (
    (Extent.WHOLE, WorkLimit(processor_s=20, wall_s=60)),
    (Extent.OWN, WorkLimit(processor_s=5, wall_s=20)),
    (Extent.TREE, WorkLimit(processor_s=5, wall_s=20)),
)
"""Contents of a packet, and how long they may take; if they take longer, less is tried."""


def publish_handoff_packet(
    services: Services,
    building: LimitedProcess,
    session: Session,
    handoff: Handoff,
    environ: Mapping[str, str],
) -> Published:
    """Publish the handoff's packet; doing it again after a crash changes nothing.

    Raises RelayError if it cannot be written; packets published before are intact then.
    """
    # Made again where `git clean` deleted it since the journal was last written.
    folder = make_session_folder(session.root, session.id)
    waiting = find_waiting(session, handoff, folder)
    sequence = 0 if waiting else _find_sequence(session, handoff)
    order = _order(services, session, handoff, environ, folder=folder, sequence=sequence)
    if waiting is not None:
        path = f"{folder}/{waiting.json_path}"
        if handoff_facts.has_own_terms(session, handoff):
            take_terms(path, run_limited(building, _LIMITS[0][1], partial(add_given_terms, order, path)))
        return waiting
    built = _build(building, order, services.report)
    done = publish_packet(folder, built.packet, built.text)
    _save_to_disk(services, session, handoff, folder, built.text)
    return Published(
        handoff.id,
        done.packet_id,
        done.sequence,
        done.json_path,
        done.text_path,
        done.fingerprint,
        built.lacks,
    )


def build_present(
    session: Session,
    target: str,
    *,
    adapters: Mapping[str, LoadedAdapter],
    config: UserConfig,
    environ: Mapping[str, str],
    at: datetime,
    name: str,
) -> BuiltPacket:
    """Build the packet that a handoff to `target` would publish at this moment, called `name`; write nothing.

    Some agent must have worked in the session. Raises RelayError if it cannot be built.
    """
    leg = session.leg
    if leg is None:
        raise RelayError("no agent has worked in this session yet")
    occasion = Handoff(name, leg.id, leg.agent, target, "manual", at)
    order = PacketOrder(
        session,
        occasion,
        dict(environ),
        folder=session_folder(session),
        sequence=session.packets + 1,
        at=at,
        config=config,
        adapters=adapters,
        seen="",
    )
    return build_ordered(order)


def build_handoff_digest(
    services: Services,
    building: LimitedProcess,
    session: Session,
    handoff: Handoff,
    environ: Mapping[str, str],
) -> str:
    """Return the digest that the handoff's successor may write a document from; empty if there is none.

    There is none if a packet is picked up as it is. Runs in a worker thread. Raises RelayError if it cannot
    be built, RuntimeError for a bug of ours.
    """
    folder = make_session_folder(session.root, session.id)
    if find_waiting(session, handoff, folder) is not None or is_brought(session, handoff):
        return ""
    order = _order(services, session, handoff, environ, folder=folder, sequence=0)
    return run_limited(building, _LIMITS[0][1], partial(build_ordered_digest, order))


def _order(
    services: Services,
    session: Session,
    handoff: Handoff,
    environ: Mapping[str, str],
    *,
    folder: str,
    sequence: int,
) -> PacketOrder:
    agents = {handoff.from_agent, handoff.to_agent} & services.adapters.keys()
    return PacketOrder(
        session,
        handoff,
        dict(environ),
        folder=folder,
        sequence=sequence,
        at=services.clock.now(),
        config=services.config,
        seen=services.last_seen.get(handoff.from_leg),
        adapters={name: services.get_adapter(name) for name in agents},
    )


def _build(
    building: LimitedProcess, order: PacketOrder, report: Callable[[BaseException], None]
) -> BuiltPacket:
    """Build the packet, of less if everything takes too long or too much memory, or we make a mistake.

    Mistakes are reported. Raises RelayError if no packet can be built, and RuntimeError for a lack of
    resources that become free by themselves: then everything is tried again later.
    """
    lacks = ""
    for extent, limit in _LIMITS:
        try:
            work = partial(build_ordered, replace(order, extent=extent, lacks=lacks))
            return run_limited(building, limit, work)
        except (TookTooLongError, KilledError) as error:
            _log.warning("packet-too-costly session=%s extent=%s", order.session.id, extent)
            why = error.sentence
        except RuntimeError as error:
            if find_passing(error):
                raise
            # Of a record that nobody foresaw, most likely: a handoff must not depend on what agents write.
            _log.warning("packet-failed session=%s extent=%s why=%s", order.session.id, extent, error)
            report(error)
            why = _OUR_MISTAKE
        lacks = lacks or f"what {order.handoff.from_agent} recorded is not in it: {why}"
    raise RelayError(
        f"the packet could not be built: {why}",
        hint="Look at it with: agent-relay packet show",
    )


def _save_to_disk(services: Services, session: Session, handoff: Handoff, folder: str, text: str) -> None:
    """Write the text of an automatic handoff's packet into a file of its own, if the user wants that."""
    if not services.config.handoff.save_to_disk or handoff.reason not in handoff_facts.AUTOMATIC:
        return
    try:
        packets.save_beside_packets(folder, text, handoff.began_at.astimezone(UTC))
    except RelayError as error:
        _log.warning("handoff-not-saved session=%s why=%s", session.id, error.sentence)


def read_packet_text(services: Services, session: Session, handoff: Handoff) -> str:
    """Return the packet's text as the user left it, with what changed in the tree since it was written.

    Raises UntrustedDataError if it cannot be trusted.
    """
    folder = session_folder(session)
    render = build_renderer(services.get_adapter(handoff.to_agent), folder)
    text = packets.read_delivery_text(folder, handoff.sequence, handoff.to_agent, render=render).text
    packet = packets.read_packet(f"{folder}/{handoff.json_path}")
    tree = read_tree(session.cwd)
    notes = verify_freshness(packet, look_up_files(tree, list_touched(tree.root, packet)))
    missing = (
        handoff_facts.list_missing_terms(packet, text)
        if handoff_facts.has_own_terms(session, handoff)
        else ()
    )
    return mark_stale(text, (*notes, *_list_later(services, session, handoff, packet), *missing))


def _list_later(
    services: Services, session: Session, handoff: Handoff, packet: ResumePacket
) -> tuple[str, ...]:
    """List what a packet written for another handoff does not know: prompts given since, the focus."""
    if packet.packet_id == handoff.id:
        return ()
    notes = [f"the user asks to focus on: {handoff.focus}"] if handoff.focus else []
    leg = next(leg for leg in session.legs if leg.id == handoff.from_leg)
    native = find_own(leg)
    if native is None or packet.turn_count is None:
        return tuple(notes)
    try:
        facts = run_here(partial(read_own_facts, services.get_adapter(leg.agent), leg, native))
    except RuntimeError as error:
        services.report(error)
        facts = Facts(leg.agent, unread=_OUR_MISTAKE)
    if facts.unread:
        return (*notes, f"cannot tell what {leg.agent} was asked since then: {facts.unread}")
    known = gather_secrets(session.root, {}, cwd=session.cwd)
    waits = handoff_facts.is_prompt_unanswered(session, leg, handoff)
    facts = handoff_facts.add_newest_prompt(
        facts, leg, waits=waits, clean=lambda text: redact_words(text, known=known)
    )
    later, allow = list_later(facts, leg.agent, packet), get_allow(services)
    clean = partial(redact_text, known=known, allow=allow, keys=collect_fact_keys([facts], allow))
    return (*notes, *(clean(note).text for note in later))


def get_allow(services: Services) -> AllowList:
    """Return what the user declares to be no secret; a project cannot do that."""
    settings = services.config.redaction
    return build_allow(settings.allow, settings.allow_patterns)


def _find_sequence(session: Session, handoff: Handoff) -> int:
    """Return the packet's number: its own if it was published before a crash, else an unused one.

    A handoff given up while its packet was being written leaves a number the journal does not know.
    """
    highest = session.packets
    for sequence, target, path in packets.list_packets(session_folder(session)):
        if sequence > session.packets and target == handoff.to_agent and _is_packet(path, handoff.id):
            return sequence
        highest = max(highest, sequence)
    return highest + 1


def _is_packet(path: str, packet_id: str) -> bool:
    try:
        return packets.read_packet(path).packet_id == packet_id
    except RelayError:
        return False


def find_waiting(session: Session, handoff: Handoff, folder: str) -> Published | None:
    """Return the packet that is picked up as it is; `None` if one has to be written.

    A person who hands over by hand means the packet they edited for that agent, if it is the newest; an
    imported session has nothing else. Raises UntrustedDataError if it cannot be trusted.
    """
    rows = [row for row in packets.list_packets(folder) if row[1] == handoff.to_agent]
    if not is_under_way(session, handoff) or not rows:
        return None
    sequence, target, path = rows[-1]
    if sequence not in list_saved(session):
        return None
    if not is_brought(session, handoff) and not _is_meant(session, handoff, folder, sequence):
        return None
    packet = packets.read_packet(path)
    seal = packets.read_document(path).get("published")
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
    return is_idle or packets.find_edited(folder, sequence, handoff.to_agent) != "nothing"


def find_spoilt(session: Session, render: Callable[[str], Callable[[ResumePacket], str]]) -> dict[str, str]:
    """Return, by agent, why the packet that waits for it cannot be used; others have a good one, or none.

    `render` returns the function that renders packets for an agent. Reads disk.
    """
    spoilt: dict[str, str] = {}
    for sequence, target, is_given in _list_waiting(session):
        why = _find_fault(session_folder(session), sequence, target, is_given=is_given, render=render)
        if why:
            spoilt[target] = why
    return spoilt


def _list_waiting(session: Session) -> list[tuple[int, str, bool]]:
    """List the packets that would be picked up: number, target, and whether they are given as they are."""
    folder, saved, owed = session_folder(session), list_saved(session), session.retriable
    newest = {target: sequence for sequence, target, _ in packets.list_packets(folder)}
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
        if packets.find_edited(folder, sequence, target) == "nothing" and not is_given:
            return ""
        text = packets.read_delivery_text(folder, sequence, target, render=render(target)).text
        packets.read_packet(f"{stem}.json")
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
    before = read_bounded(path, limit_bytes=packets.LIMIT_BYTES)
    document = parse_document(before, name=path)
    after = {**document, **terms}
    if after != document:
        data = render_json(after).encode("utf-8", "backslashreplace")
        packets.replace_file(path, data, before=before, is_picked_up=lambda: False)
