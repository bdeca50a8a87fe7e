"""Build a handoff's packet, or the digest for its successor's document; runs in a process of its own.

It writes nothing, and reads only what the packet is made of: one that outlives its daemon does no harm.
"""

import os
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial

import msgspec

from agent_relay.agents.adapters import LoadedAdapter, build_renderer
from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.documents.packet_json import parse_packet
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.facts import Facts
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.names import IMPORTED
from agent_relay.domain.session import AgentNote, Handoff, Leg, Session
from agent_relay.domain.values import AgentName, replace
from agent_relay.engine.publishing.native_records import gather_facts, restore_lost
from agent_relay.packet import handoff_facts
from agent_relay.packet.budget import fit_packet
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.packet.digest import build_digest
from agent_relay.packet.extract.requests import select_since, strip_relay
from agent_relay.packet.freshness import list_touched
from agent_relay.packet.narrative import (
    OwnDocument,
    place_narrative,
    render_digest,
    render_narrative,
)
from agent_relay.redact.known_values import AllowList, build_allow
from agent_relay.redact.packet import collect_fact_keys, redact_facts, redact_packet
from agent_relay.redact.text import redact_text, redact_words
from agent_relay.session.handoffs import find_native_id
from agent_relay.session.transitions import find_spent, inherit_terms
from agent_relay.session.views.messages import session_folder
from agent_relay.store import packets
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.git.file_look_up import date_files, look_up_files
from agent_relay.system.git.tree_state import read_tree
from agent_relay.transcripts.lenient_json import clip

_LINE_LENGTH = 1000


class Extent(StrEnum):
    """Contents of a packet besides the tree and what the journal knows.

    Everything; only relay's own earlier packets; or nothing else.
    """

    WHOLE = "whole"
    OWN = "own"
    TREE = "tree"


class PacketOrder(msgspec.Struct, frozen=True):
    """Everything a packet is made of that is not on disk, at one moment.

    `adapters` are those of the two agents, if they are known here. `seen` is what the predecessor last
    showed. `lacks` is why the packet is made of less than everything.
    """

    session: Session
    handoff: Handoff
    environ: Mapping[str, str]
    folder: str
    sequence: int
    at: datetime
    config: UserConfig
    adapters: Mapping[str, LoadedAdapter]
    seen: str
    extent: Extent = Extent.WHOLE
    lacks: str = ""

    def get_adapter(self, agent: str) -> LoadedAdapter:
        """Return the agent's adapter. Raise WrongUseError if there is none."""
        found = self.adapters.get(agent)
        if found is None:
            raise WrongUseError(f"there is no agent {agent[:40]!r}")
        return found

    def gather_secrets(self) -> frozenset[str]:
        """Return the values that are secret wherever they occur."""
        return gather_secrets(self.session.root, self.environ, cwd=self.session.cwd)

    @property
    def allow(self) -> AllowList:
        """Values that the user declares to be no secret; a project cannot do that."""
        return build_allow(self.config.redaction.allow, self.config.redaction.allow_patterns)


class BuiltPacket(msgspec.Struct, frozen=True):
    """A packet, its text for its target, and what could not be read into it; empty for nothing."""

    packet: ResumePacket
    text: str
    lacks: str


def build_ordered(order: PacketOrder) -> BuiltPacket:
    """Return the packet of the handoff and its text. Raise RelayError if it cannot be built."""
    session, handoff = order.session, order.handoff
    target = order.get_adapter(handoff.to_agent)
    known = order.gather_secrets()
    if not is_under_way(session, handoff) and handoff.terms.is_empty:
        handoff = replace(handoff, terms=inherit_terms(session))
    source = find_source(session, handoff, order.folder) if order.extent is Extent.WHOLE else None
    keys = frozenset[str]()
    if source is None:
        packet, keys = _build(order, handoff, known)
    else:
        packet = _readdress(order, handoff, source)
    packet = packet.model_copy(update={"resumes": _find_resumed(session, handoff.to_agent)})
    packet = handoff_facts.add_terms(packet, handoff)
    packet = redact_packet(packet, known=known, allow=order.allow, keys=keys)
    render = build_renderer(target, order.folder)
    budget = order.config.get_agent(handoff.to_agent).budget_tokens or target.adapter.budget_tokens
    packet = fit_packet(packet, tokens=budget, render=render)
    told = packet.unread or packet.restored or packet.not_understood or ""
    lacks = told if source is None else ""
    return BuiltPacket(packet, render(packet), lacks)


def add_given_terms(order: PacketOrder, path: str) -> ResumePacket:
    """Return the packet at `path` with the handoff's terms. Raise RelayError if it cannot be read."""
    given = handoff_facts.add_terms(packets.read_packet(path), order.handoff)
    return redact_packet(given, known=order.gather_secrets(), allow=order.allow)


def build_ordered_digest(order: PacketOrder) -> str:
    """Return the digest of the leg that hands over, without secrets; empty if there is nothing in it.

    The successor of the handoff writes a document from it. Raises RelayError if it cannot be built.
    """
    session = order.session
    leg = next(leg for leg in session.legs if leg.id == order.handoff.from_leg)
    previous = _read_previous(session, is_asked=False)
    facts = _gather_own(order, leg, has_previous=previous is not None)
    kept = packets.read_narrative(session_folder(session), leg.id)
    digest = build_digest(facts, previous, written=kept.text if kept is not None else "")
    return redact_text(digest, known=order.gather_secrets(), allow=order.allow).text


def _find_resumed(session: Session, agent: str) -> str | None:
    """Return the transcript of the conversation `agent` will go on in; `None` if it begins one.

    Also `None` if its path says too little: a database holds all of an agent's conversations.
    """
    native_id = find_native_id(session, agent)
    own = [leg for leg in session.legs if leg.agent == agent and leg.transcript]
    paths = {leg.transcript for leg in own if leg.native_id == native_id}
    shared = paths & {leg.transcript for leg in own if leg.native_id != native_id}
    return min(paths) if native_id and len(paths) == 1 and not shared else None


def _readdress(order: PacketOrder, handoff: Handoff, source: ResumePacket) -> ResumePacket:
    """Return `source` addressed to the agent of this handoff."""
    own = {"packet_id": handoff.id, "sequence": order.sequence}
    changes = {"target_agent": handoff.to_agent, "created_at": order.at}
    focus = {"focus": handoff.focus} if handoff.focus else {}
    return source.model_copy(update={**own, **changes, **focus})


def _build(
    order: PacketOrder, handoff: Handoff, known: frozenset[str]
) -> tuple[ResumePacket, frozenset[str]]:
    """Return the packet, and the pieces of the private keys in the record it was built of."""
    session = order.session
    leg = next(leg for leg in session.legs if leg.id == handoff.from_leg)
    loaded = order.get_adapter(leg.agent)
    is_asked = not is_under_way(session, handoff)
    previous = _read_previous(session, is_asked=is_asked) if order.extent is not Extent.TREE else None
    since = leg.starting_at if leg.resumes and previous else None
    occasion = _build_occasion(order, handoff, leg, since=since)
    facts = _gather(order, loaded, leg)
    version, note = loaded.adapter.newest_tested, _find_note(session, leg)
    doubt = handoff_facts.find_record_gap(facts, agent=leg.agent, version=version, leg=leg)
    facts = _add_prompt(order, leg, facts, known, is_wordless=doubt.is_wordless)
    tree = read_tree(session.cwd)
    touched = list_touched(tree.root, previous, facts, prefix=occasion.prefix)
    packet = build_packet(
        redact_facts(facts, known=known, allow=order.allow),
        occasion,
        tree=date_files(look_up_files(tree, touched)),
        signal=_find_signal(session, handoff),
        previous=previous,
        written=_read_narrative(order, leg, facts),
        note=note,
        fresh_prompts=order.config.handoff.fresh_prompts,
    )
    additions = {
        "unread": facts.unread,
        "restored": facts.restored,
        "budget": find_spent(session, handoff),
        "not_understood": doubt.sentence if loaded.adapter.transcript is not None else "",
        "last_lines": _quote_lines(order, facts.last_lines, known),
        "last_screen": order.seen if doubt.is_wordless else "",
    }
    packet = packet.model_copy(update={name: text for name, text in additions.items() if text})
    packet = packet if note is None else handoff_facts.add_wishes(packet, note, facts)
    return packet, collect_fact_keys([facts], order.allow)


def _gather(order: PacketOrder, loaded: LoadedAdapter, leg: Leg) -> Facts:
    """Return what the packet's extent allows: the record, else what checkpoints kept of it, else nothing."""
    if order.extent is Extent.WHOLE:
        return gather_facts(loaded, order.session, leg, order.environ)
    facts = Facts(leg.agent, native_id=leg.native_id, unread=order.lacks)
    return restore_lost(facts, loaded, order.session, leg, path="") if order.extent is Extent.OWN else facts


def _build_occasion(
    order: PacketOrder, handoff: Handoff, leg: Leg, *, since: datetime | None
) -> PacketContext:
    session = order.session
    return PacketContext(
        packet_id=handoff.id,
        session_id=session.id,
        sequence=order.sequence,
        at=order.at,
        previous_agent=leg.agent,
        target_agent=handoff.to_agent,
        reason=_find_reason(handoff),
        focus=handoff.focus,
        task=session.task,
        root=session.root,
        prefix=os.path.relpath(os.path.realpath(session.cwd), os.path.realpath(session.root)),
        leg_id=leg.id,
        leg_started_at=leg.starting_at,
        since=since,
        relay_texts=(order.get_adapter(leg.agent).adapter.deliver.opening,),
    )


def _add_prompt(
    order: PacketOrder, leg: Leg, facts: Facts, known: frozenset[str], *, is_wordless: bool
) -> Facts:
    """Return the facts with what the leg was asked last, if only the journal has it."""
    session, handoff = order.session, order.handoff
    if leg.asked is None and is_wordless and session.open_turn is not None:
        return handoff_facts.add_prompt(
            facts, session.open_turn.prompt, waits=handoff.reason in handoff_facts.AUTOMATIC
        )
    return handoff_facts.add_newest_prompt(
        facts,
        leg,
        waits=handoff_facts.is_prompt_unanswered(session, leg, handoff),
        clean=partial(_clean, known),
    )


def _clean(known: frozenset[str], text: str) -> str:
    """Return the text redacted as in the journal."""
    return redact_words(text, known=known)


def _quote_lines(order: PacketOrder, lines: tuple[str, ...], known: frozenset[str]) -> str:
    """Return lines of a record that could not be parsed; secrets are removed before lines are cut."""
    whole = [redact_text(line, known=known, allow=order.allow).text for line in lines]
    return "\n".join(clip(line, limit=_LINE_LENGTH) for line in whole)


def _gather_own(order: PacketOrder, leg: Leg, *, has_previous: bool) -> Facts:
    """Return the leg's own facts without secrets, and without what relay typed.

    With `has_previous`, the parts of its transcript that belong to earlier legs are left out.
    """
    loaded, known = order.get_adapter(leg.agent), order.gather_secrets()
    facts = gather_facts(loaded, order.session, leg, order.environ)
    facts = _add_prompt(order, leg, facts, known, is_wordless=not facts.conversation)
    facts = redact_facts(facts, known=known, allow=order.allow)
    since = leg.starting_at if leg.resumes and has_previous else None
    return strip_relay(select_since(facts, since), (loaded.adapter.deliver.opening,))[0]


def _read_narrative(order: PacketOrder, leg: Leg, facts: Facts) -> OwnDocument | None:
    """Return the document on the leg's work: its successor's for this handoff, else its own if fresh."""
    digest = packets.read_digest(session_folder(order.session), order.handoff.id)
    if digest is not None:
        text = render_digest(digest.text, digest.agent, digest.at)
        return OwnDocument(text, place_narrative(digest.agent, digest.moment, facts))
    kept = packets.read_narrative(session_folder(order.session), leg.id)
    if kept is None:
        return None
    fresh = order.config.handoff.fresh_prompts
    text = render_narrative(kept.text, kept.at, kept.moment, facts=facts, now=order.at, fresh_prompts=fresh)
    return OwnDocument(text, place_narrative(kept.agent, kept.moment, facts))


def _find_note(session: Session, leg: Leg) -> AgentNote | None:
    """Return what the agent last said of its work by its own tools since it was given a packet, if anything.

    It may have been resumed since then, in a leg of its own.
    """
    note = session.note
    last = next(index for index, one in enumerate(session.legs) if one.id == leg.id)
    for one in reversed(session.legs[: last + 1]):
        if note is not None and note.leg == one.id:
            return note
        if one.handoff:
            break
    return None


def _read_previous(session: Session, *, is_asked: bool) -> ResumePacket | None:
    """Return the newest packet that a leg of this session was given and that can be trusted.

    With `is_asked`, a person sees the result before any agent gets it: a packet that was spoilt then counts
    as it was published.
    """
    folder, saved = session_folder(session), list_saved(session)
    for sequence, target, _ in reversed(packets.list_packets(folder)):
        if sequence in saved:
            continue
        try:
            if not is_asked or not packets.is_emptied(folder, sequence, target):
                return packets.read_as_left(folder, sequence, target)
            found = _read_published(folder, sequence, target)
        except RelayError:
            found = _read_published(folder, sequence, target) if is_asked else None
        if found is not None:
            return found
    return None


def _read_published(folder: str, sequence: int, target: str) -> ResumePacket | None:
    """Return the packet as it was published; `None` if that was not kept."""
    try:
        kept = packets.read_kept(folder, sequence, target)
        return parse_packet(kept.document) if kept is not None else None
    except RelayError:
        return None


def _find_reason(handoff: Handoff) -> Reason:
    try:
        return Reason(handoff.reason)
    except ValueError:
        return Reason.MANUAL


def _find_signal(session: Session, handoff: Handoff) -> Signal | None:
    limit = session.limit
    is_limit = handoff.reason == Reason.RATE_LIMIT and not find_spent(session, handoff)
    if limit is None or not is_limit or limit.agent != handoff.from_agent:
        return None
    return Signal(
        AgentName(limit.agent),
        Kind.LIMIT,
        Scope(limit.scope),
        Evidence(Source(limit.source), limit.text),
        decides=True,
        resets_at=parse_moment(limit.until),
    )


def find_source(session: Session, handoff: Handoff, folder: str) -> ResumePacket | None:
    """Return the packet from which one for another agent is made, as its user left it; `None` to use facts.

    An imported session has no transcript. A successor that replaces one that failed to start must not read
    what was deleted for that one either.
    """
    rows = [row for row in packets.list_packets(folder) if row[0] <= session.packets]
    brought = is_brought(session, handoff)
    if not is_under_way(session, handoff) or not rows or not (brought or session.tried):
        return None
    sequence, target, _ = rows[-1]
    if brought:
        return packets.read_as_left(folder, sequence, target)
    try:
        is_edited = packets.find_edited(folder, sequence, target) != "nothing"
        return packets.read_as_left(folder, sequence, target) if is_edited else None
    except RelayError:
        # An edit that cannot be read keeps nobody from being told what the records say.
        return None


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
