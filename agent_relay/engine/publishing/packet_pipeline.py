"""Publish the packet of a handoff, built in a process with a limit; runs in a worker thread."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC
from functools import partial

from agent_relay.agents.packet_template import build_renderer
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import Facts
from agent_relay.domain.inputs import Published
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.publishing._packet_building import (
    BuiltPacket,
    Extent,
    PacketOrder,
    add_given_terms,
    build_ordered,
)
from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.engine.publishing.native_records import find_own, read_own_facts
from agent_relay.engine.publishing.waiting_packets import find_waiting, take_terms
from agent_relay.engine.services import Services
from agent_relay.packet.freshness import list_later, verify_freshness
from agent_relay.packet.handoff_facts import (
    AUTOMATIC,
    add_newest_prompt,
    has_own_terms,
    is_prompt_unanswered,
    list_missing_terms,
)
from agent_relay.packet.render import mark_stale
from agent_relay.redact.known_values import AllowList, build_allow
from agent_relay.redact.text import redact_text, redact_words
from agent_relay.session.views.messages import session_folder
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import list_packets, read_delivery_text, read_packet, save_beside_packets
from agent_relay.store.project import make_session_folder
from agent_relay.system.config.secrets import gather_secrets
from agent_relay.system.failures import find_passing
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
"""What goes into a packet, and how long that may take; if it takes longer, less is tried."""


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
        if has_own_terms(session, handoff):
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

    Mistakes are reported. Raises RelayError if there can be none, and RuntimeError for lack of what becomes
    free by itself: then all of it is tried again later.
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
    if not services.config.handoff.save_to_disk or handoff.reason not in AUTOMATIC:
        return
    try:
        save_beside_packets(folder, text, handoff.began_at.astimezone(UTC))
    except RelayError as error:
        _log.warning("handoff-not-saved session=%s why=%s", session.id, error.sentence)


def read_packet_text(services: Services, session: Session, handoff: Handoff) -> str:
    """Return the packet's text as the user left it, with what changed in the tree since it was written.

    Raises UntrustedDataError if it cannot be trusted.
    """
    folder = session_folder(session)
    render = build_renderer(services.get_adapter(handoff.to_agent), folder)
    text = read_delivery_text(folder, handoff.sequence, handoff.to_agent, render=render).text
    packet = read_packet(f"{folder}/{handoff.json_path}")
    notes = verify_freshness(packet, read_tree(session.cwd))
    missing = list_missing_terms(packet, text) if has_own_terms(session, handoff) else ()
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
    waits = is_prompt_unanswered(session, leg, handoff)
    facts = add_newest_prompt(facts, leg, waits=waits, clean=lambda text: redact_words(text, known=known))
    later = list_later(facts, leg.agent, packet.created_at)
    allow = get_allow(services)
    return (*notes, *(redact_text(note, known=known, allow=allow).text for note in later))


def get_allow(services: Services) -> AllowList:
    """Return what the user declares to be no secret; a project cannot do that."""
    settings = services.config.redaction
    return build_allow(settings.allow, settings.allow_patterns)


def _find_sequence(session: Session, handoff: Handoff) -> int:
    """Return the packet's number: its own if it was published before a crash, else an unused one.

    A handoff given up while its packet was being written leaves a number the journal does not know.
    """
    highest = session.packets
    for sequence, target, path in list_packets(session_folder(session)):
        if sequence > session.packets and target == handoff.to_agent and _is_packet(path, handoff.id):
            return sequence
        highest = max(highest, sequence)
    return highest + 1


def _is_packet(path: str, packet_id: str) -> bool:
    try:
        return read_packet(path).packet_id == packet_id
    except RelayError:
        return False
