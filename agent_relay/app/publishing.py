"""The packet of a handoff: facts gathered, redacted, fitted, published. Runs in a worker thread."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC

from agent_relay.app.ground import Ground
from agent_relay.app.own_records import find_own, gather_facts, read_own_facts
from agent_relay.app.waiting import find_source, find_waiting, is_under_way, list_saved, take_terms
from agent_relay.domain.effect import Published
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import Facts
from agent_relay.domain.ids import AgentName
from agent_relay.domain.packet import Reason, ResumePacket
from agent_relay.domain.session import Handoff, Leg, Session
from agent_relay.domain.signal import Evidence, Kind, Scope, Signal, Source
from agent_relay.logic.budget import fit_packet
from agent_relay.logic.expecting import add_terms, is_given, list_untold
from agent_relay.logic.freshness import list_later, verify_freshness
from agent_relay.logic.moments import parse_moment
from agent_relay.logic.narrative import render_narrative
from agent_relay.logic.origin import inherit_terms
from agent_relay.logic.packet.build import Occasion, build_packet
from agent_relay.logic.redact import Allow, build_allow, redact_facts, redact_packet, redact_text
from agent_relay.logic.render import mark_stale
from agent_relay.logic.succession import find_native_id
from agent_relay.logic.wording import session_folder
from agent_relay.system.git import read_tree
from agent_relay.system.narratives import read_narrative, save_beside_packets
from agent_relay.system.project import open_project
from agent_relay.system.project import session_folder as make_folder
from agent_relay.system.secrets import gather_secrets
from agent_relay.system.store import publish_packet
from agent_relay.system.store_edits import read_as_left
from agent_relay.system.store_reading import list_packets, read_delivery_text, read_packet
from agent_relay.system.templates import build_renderer

_log = logging.getLogger(__name__)
_AUTOMATIC = frozenset({"rate_limit", "context", "failure"})


def publish(ground: Ground, session: Session, handoff: Handoff, environ: Mapping[str, str]) -> Published:
    """The handoff's packet is visible; doing it again after a crash changes nothing.

    Raises RelayError where it cannot be written; packets published before are intact then.
    """
    # Made again where `git clean` deleted it since the journal was last written.
    folder = make_folder(open_project(session.root), session.id)
    target = ground.get_adapter(handoff.to_agent)
    known = gather_secrets(session.root, environ, cwd=session.cwd)
    waiting = find_waiting(session, handoff, folder)
    if waiting is not None:
        path = f"{folder}/{waiting.json_path}"
        if is_given(session, handoff):
            given = add_terms(read_packet(path), handoff)
            take_terms(path, redact_packet(given, known=known, allow=get_allow(ground)))
        return waiting
    if not is_under_way(session, handoff) and handoff.terms.is_empty:
        handoff = replace(handoff, terms=inherit_terms(session))
    source = find_source(session, handoff, folder)
    packet = (
        _build(ground, session, handoff, environ, known)
        if source is None
        else _readdress(ground, session, handoff, source)
    )
    packet = packet.model_copy(update={"resumes": _find_resumed(session, handoff.to_agent)})
    packet = redact_packet(add_terms(packet, handoff), known=known, allow=get_allow(ground))
    render = build_renderer(target, folder)
    budget = ground.config.get_agent(handoff.to_agent).budget_tokens or target.adapter.budget_tokens
    packet = fit_packet(packet, tokens=budget, render=render)
    text = render(packet)
    done = publish_packet(folder, packet, text)
    _save_to_disk(ground, session, handoff, folder, text)
    return Published(
        handoff.id, done.packet_id, done.sequence, done.json_path, done.text_path, done.fingerprint
    )


def _save_to_disk(ground: Ground, session: Session, handoff: Handoff, folder: str, text: str) -> None:
    """What a handoff nobody asked for tells its successor is a file of its own, for those who want that."""
    if not ground.config.handoff.save_to_disk or handoff.reason not in _AUTOMATIC:
        return
    try:
        save_beside_packets(folder, text, handoff.began_at.astimezone(UTC))
    except RelayError as error:
        _log.warning("handoff-not-saved session=%s why=%s", session.id, error.sentence)


def read_packet_text(ground: Ground, session: Session, handoff: Handoff) -> str:
    """The packet's text as the user left it, with what changed in the tree since it was written.

    Raises UntrustedDataError where it cannot be trusted.
    """
    folder = session_folder(session)
    render = build_renderer(ground.get_adapter(handoff.to_agent), folder)
    text = read_delivery_text(folder, handoff.sequence, handoff.to_agent, render=render).text
    packet = read_packet(f"{folder}/{handoff.json_path}")
    notes = verify_freshness(packet, read_tree(session.cwd))
    untold = list_untold(packet, text) if is_given(session, handoff) else ()
    return mark_stale(text, (*notes, *_list_later(ground, session, handoff, packet), *untold))


def _list_later(ground: Ground, session: Session, handoff: Handoff, packet: ResumePacket) -> tuple[str, ...]:
    """What a packet that was not written for this handoff does not know: prompts given since, the focus."""
    if packet.packet_id == handoff.id:
        return ()
    notes = [f"the user asks to focus on: {handoff.focus}"] if handoff.focus else []
    leg = next(leg for leg in session.legs if leg.id == handoff.from_leg)
    native = find_own(leg)
    if native is None or packet.turn_count is None:
        return tuple(notes)
    facts = read_own_facts(ground.get_adapter(leg.agent), leg, native)
    if facts.unread:
        return (*notes, f"what {leg.agent} was asked since then cannot be told: {facts.unread}")
    known = gather_secrets(session.root, {}, cwd=session.cwd)
    later = list_later(facts, leg.agent, packet.created_at)
    allow = get_allow(ground)
    return (*notes, *(redact_text(note, known=known, allow=allow).text for note in later))


def get_allow(ground: Ground) -> Allow:
    """What the user says is no secret; a project cannot say so."""
    wishes = ground.config.redaction
    return build_allow(wishes.allow, wishes.allow_patterns)


def _find_resumed(session: Session, agent: str) -> str | None:
    """The transcript of the conversation `agent` will go on in; `None` where it begins one.

    Also where its path says too little: a database holds all of an agent's conversations.
    """
    native_id = find_native_id(session, agent)
    own = [leg for leg in session.legs if leg.agent == agent and leg.transcript]
    paths = {leg.transcript for leg in own if leg.native_id == native_id}
    shared = paths & {leg.transcript for leg in own if leg.native_id != native_id}
    return min(paths) if native_id and len(paths) == 1 and not shared else None


def _readdress(ground: Ground, session: Session, handoff: Handoff, source: ResumePacket) -> ResumePacket:
    """`source` for the agent of this handoff."""
    own = {"packet_id": handoff.id, "sequence": _find_sequence(session, handoff)}
    changes = {"target_agent": handoff.to_agent, "created_at": ground.clock.now()}
    focus = {"focus": handoff.focus} if handoff.focus else {}
    return source.model_copy(update={**own, **changes, **focus})


def _build(
    ground: Ground, session: Session, handoff: Handoff, environ: Mapping[str, str], known: frozenset[str]
) -> ResumePacket:
    leg = next(leg for leg in session.legs if leg.id == handoff.from_leg)
    loaded = ground.get_adapter(leg.agent)
    tree = read_tree(session.cwd)
    previous = _read_previous(session)
    occasion = Occasion(
        packet_id=handoff.id,
        session_id=session.id,
        sequence=_find_sequence(session, handoff),
        at=ground.clock.now(),
        previous_agent=leg.agent,
        target_agent=handoff.to_agent,
        reason=_find_reason(handoff),
        focus=handoff.focus,
        task=session.task,
        root=session.root,
        prefix=os.path.relpath(os.path.realpath(session.cwd), os.path.realpath(session.root)),
        leg_id=leg.id,
        leg_started_at=leg.starting_at,
        since=leg.starting_at if leg.resumes and previous is not None else None,
        relay_texts=(loaded.adapter.deliver.opening,),
    )
    facts = gather_facts(ground, session, leg, environ)
    packet = build_packet(
        redact_facts(facts, known=known, allow=get_allow(ground)),
        occasion,
        tree=tree,
        signal=_find_signal(session, handoff),
        previous=previous,
    )
    written = _read_narrative(ground, session, leg, facts)
    told = {"narrative": written, "unread": facts.unread}
    return packet.model_copy(update={name: text for name, text in told.items() if text})


def _read_narrative(ground: Ground, session: Session, leg: Leg, facts: Facts) -> str:
    """What the leg's agent wrote of its work, where that is still fresh; else empty."""
    kept = read_narrative(session_folder(session), leg.id)
    if kept is None:
        return ""
    wishes, now = ground.config.handoff, ground.clock.now()
    return render_narrative(
        kept.text, kept.at, kept.moment, facts=facts, now=now, fresh_prompts=wishes.fresh_prompts
    )


def _find_sequence(session: Session, handoff: Handoff) -> int:
    """The packet's number: its own if it was published before a crash, else one nobody has.

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


def _read_previous(session: Session) -> ResumePacket | None:
    """The newest packet a leg of this session was given that can be trusted."""
    folder, saved = session_folder(session), list_saved(session)
    for sequence, target, _ in reversed(list_packets(folder)):
        if sequence in saved:
            continue
        try:
            return read_as_left(folder, sequence, target)
        except RelayError:
            continue
    return None


def _find_reason(handoff: Handoff) -> Reason:
    try:
        return Reason(handoff.reason)
    except ValueError:
        return Reason.MANUAL


def _find_signal(session: Session, handoff: Handoff) -> Signal | None:
    limit = session.limit
    if limit is None or handoff.reason != Reason.RATE_LIMIT or limit.agent != handoff.from_agent:
        return None
    return Signal(
        AgentName(limit.agent),
        Kind.LIMIT,
        Scope(limit.scope),
        Evidence(Source(limit.source), limit.text),
        decides=True,
        resets_at=parse_moment(limit.until),
    )
