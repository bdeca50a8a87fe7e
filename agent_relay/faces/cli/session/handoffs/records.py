"""Read the handoffs of every session from their journals; show one in full, or a session's as a tree."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.names import get_journal_path, get_session_folder
from agent_relay.domain.protocol.handoff_report import CriterionVerdict
from agent_relay.domain.session import Step
from agent_relay.faces.cli.session.handoffs.evidence import (
    build_askers,
    build_result,
    list_criteria,
    list_evidence_lines,
    mark,
)
from agent_relay.faces.cli.session.lookup import choose_here, choose_id
from agent_relay.faces.render.output import get_rows, get_table, render_moment
from agent_relay.session.handoff_history import (
    DurationEstimate,
    HandoffHistory,
    HandoffRecord,
    estimate_durations,
)
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_near_root, list_index, list_own_at
from agent_relay.system.disk.files import open_stream
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.usage.packet_use import PacketUse, build_packet_use
from agent_relay.usage.table_format import render_span

if TYPE_CHECKING:
    from agent_relay.domain.documents.packet import ResumePacket
    from agent_relay.domain.protocol.timeline import TimelineTold
    from agent_relay.usage.gather import Gathered


_NAME_BYTES = 1 << 20
_MET, _UNMET = CriterionVerdict.MET, CriterionVerdict.UNMET


@dataclass(frozen=True, slots=True)
class Lineage:
    """A session's handoffs and legs; `folder` holds its journal and packets."""

    session: str
    root: str
    registry: HandoffHistory

    @property
    def folder(self) -> str:
        """The folder of the session's journal and packets."""
        return get_session_folder(self.root, self.session)


def read_lineage(root: str, session: str) -> Lineage:
    """Return the session's lineage; raise RelayError if its journal cannot be read."""
    return Lineage(session, root, HandoffHistory(read_events(get_journal_path(root, session))))


def choose_lineages(session: str = "") -> list[Lineage]:
    """Return the named session's lineage, or those of every session of this user that can be read."""
    if session:
        return [choose_lineage(session)]
    found = []
    for root, name in _list_places():
        try:
            found.append(read_lineage(root, name))
        except RelayError:
            continue
    return found


def choose_lineage(session: str) -> Lineage:
    """Return the lineage of the session named, else of the newest here; raise WrongUseError for none."""
    view = choose_here(get_folders(), session)
    return read_lineage(str(view["root"]), str(view["session"]))


def find_record(text: str) -> tuple[Lineage, HandoffRecord]:
    """Return the one handoff whose id begins or ends with `text`, and its lineage.

    Raises WrongUseError for none or several.
    """
    wanted = text.upper()
    found: dict[str, tuple[Lineage, HandoffRecord]] = {}
    for root, session in _list_places():
        if not wanted or not _mentions(get_journal_path(root, session), wanted):
            continue
        try:
            chain = read_lineage(root, session)
        except RelayError:
            continue
        found |= {record.id: (chain, record) for record in chain.registry.records}
    return found[choose_id(found, text, noun="handoff", hint="See: agent-relay handoff history")]


def build_row(chain: Lineage, record: HandoffRecord, now: datetime) -> dict[str, object]:
    """Return one handoff in short: ids, agents, status, times, duration in s, what is expected."""
    terms = record.terms
    ended = record.closed_at or record.ended_at
    return {
        "handoff": record.id,
        "session": chain.session,
        "root": chain.root,
        "from": record.from_agent,
        "to": record.to_agent,
        "status": record.status.value,
        "open": record.is_open,
        "step": str(record.step),
        "reason": record.reason,
        "why": record.why,
        "lane": build_lane(record),
        "effort": record.effort,
        "began_at": record.began_at.isoformat(),
        "ended_at": ended.isoformat() if ended else "",
        "duration_s": round(((record.ended_at or now) - record.began_at).total_seconds(), 3),
        "work_s": measure_work(chain, record, now),
        "priority": terms.priority,
        "parent": record.parent,
        "depth": record.depth,
        "rolls_back": record.rolls_back,
        **build_askers(record),
        "retries": record.retries,
        "note": record.note,
        "legs": list(record.legs),
        "expectations": {
            "deliverables": list(terms.deliverables),
            "acceptance_criteria": list(terms.criteria),
            "checks": list(terms.checks),
            "proposed_checks": list(terms.proposed_checks),
            "constraints": list(terms.constraints),
            "needs": list(terms.needs),
        },
        "rollback": {"agent": terms.rollback, "questions": list(terms.questions)},
    }


def build_lane(record: HandoffRecord) -> dict[str, object] | None:
    """Return how the successor learned what it took over, and why so; `None` if none was started."""
    if not record.legs:
        return None
    name = "own-conversation" if record.resumes else "packet"
    return {"name": name, "why": record.lane_why, "text": record.lane}


def measure_work(chain: Lineage, record: HandoffRecord, now: datetime) -> float | None:
    """Return the seconds from the moment the successor worked to the verdict, the next handoff or its end.

    `None` for a handoff that was not made, or whose successor ended at an unknown moment.
    """
    if record.ended_at is None or not record.legs or record.step != Step.DELIVERED:
        return None
    after = [one.began_at for one in chain.registry.records if one.from_leg in record.legs]
    leg = next((one for one in chain.registry.legs if one.id == record.legs[-1]), None)
    if leg is None:
        return None
    ends = [moment for moment in (record.closed_at, *after, leg.ended_at) if moment is not None]
    return round(max(0.0, (min(ends, default=now) - record.ended_at).total_seconds()), 3)


def gather_usage(chain: Lineage) -> "Gathered | None":
    """Return what the session used, by the agents' own records; `None` if they cannot be read."""
    from agent_relay.usage.gather import Wanted, gather_metrics

    wanted = Wanted(chain.session)
    try:
        return gather_metrics(get_folders(), wanted, cwd=chain.root, environ=os.environ, now=get_now())
    except RelayError:
        return None


def read_uses(chain: Lineage, gathered: "Gathered | None") -> dict[str, PacketUse]:
    """Return, by handoff, how its successor used the packet, as far as its own record shows."""
    from agent_relay.usage.packet_uses import read_packet_uses

    if gathered is None:
        return {}
    folders, natives = get_folders(), gathered.natives
    try:
        return read_packet_uses(chain.root, chain.session, folders, environ=os.environ, natives=natives)
    except RelayError:
        return {}


def read_timeline(chain: Lineage, gathered: "Gathered | None") -> "TimelineTold | None":
    """Return the session over time; `None` if its journal contradicts itself."""
    from agent_relay.session.fold import ImpossibleEventError
    from agent_relay.session.views.timeline import build_timeline
    from agent_relay.usage.timeline_usage import build_usage, read_windows_by_agent, sum_by_leg
    from agent_relay.usage.totals import PriceList

    rows = sum_by_leg(gathered, PriceList().get_rates) if gathered is not None else {}
    usage = {leg: build_usage(row) for leg, row in rows.items()}
    windows = read_windows_by_agent(get_folders().usage_windows, get_now())
    try:
        return build_timeline(read_events(get_journal_path(chain.root, chain.session)), usage, windows)
    except ImpossibleEventError:
        return None


def estimate(agent: str) -> DurationEstimate:
    """Return how long a handoff to the agent may take, by all of this user's past ones."""
    records = (record for chain in choose_lineages() for record in chain.registry.records)
    return estimate_durations(records, agent)


def render_estimate(estimated: Mapping[str, object], agent: str) -> str:
    """Render an estimate for people; with too few past handoffs it is unknown."""
    told = []
    for name, count, what in (("takeover_s", "takeovers", "made"), ("work_s", "works", "completed")):
        seconds = estimated[name]
        length = f"about {render_span(int(seconds * 1000))}" if isinstance(seconds, float) else "unknown"
        told.append(f"{length} ({estimated[count]} {what})")
    return f"until it works: {told[0]}; until it is done: {told[1]}; by past handoffs to {agent}"


def get_now() -> datetime:
    """Return the time now, for durations of what is still under way."""
    return datetime.now(UTC)


def _list_places() -> list[tuple[str, str]]:
    """Return (root, session) for every session of this user, as indexed and as found in this folder."""
    index = get_folders().sessions
    known = [(root, session) for session, root in list_index(index)]
    root = find_near_root(get_cwd())
    here = [(root, session) for session in list_own_at(root, index)]
    return list(dict.fromkeys([*known, *here]))


def _mentions(path: str, wanted: str) -> bool:
    """Check whether the journal contains the id: cheaper than reading every session's events."""
    return any(wanted.encode("utf-8", "replace") in block for block in _read_blocks(path, len(wanted)))


def _read_blocks(path: str, overlap: int) -> Iterator[bytes]:
    before = b""
    try:
        with open_stream(path) as stream:
            while block := stream.read(_NAME_BYTES):
                yield before + block
                before = block[-overlap * 4 :]
    except (OSError, UntrustedDataError):
        return


_COUNTED = (
    "constraints",
    "exchanges",
    "decisions",
    "attempts",
    "blockers",
    "plan",
    "touched_files",
    "validation_runs",
    "recent_turns",
)
_PATH_LENGTH = 255


def build_full(chain: Lineage, record: HandoffRecord) -> dict[str, object]:
    """Return `build_row` and what was transferred, deliverables, verification, children and trail."""
    packet, problem = _read(chain, record)
    children = [child.id for child in chain.registry.records if child.parent == record.id]
    is_made = record.step == Step.DELIVERED
    use = read_uses(chain, gather_usage(chain)).get(record.id) if is_made else None
    return {
        **build_row(chain, record, get_now()),
        "focus": record.focus,
        "skipped": list(record.skipped),
        "estimate": asdict(estimate(record.to_agent)) if record.is_open else None,
        "model": record.model,
        "transferred": _describe_transferred(chain, record, packet, problem),
        "deliverables": [_describe_deliverable(chain.root, text) for text in record.terms.deliverables],
        "criteria": list_criteria(record),
        "result": build_result(record),
        "verification": _verify(chain, record, packet),
        "packet_use": build_packet_use(use) if use is not None else None,
        "children": children,
        "trail": [
            {"at": moment.at.isoformat(), "event": moment.event, "text": moment.text}
            for moment in record.trail
        ],
    }


def list_full(view: dict[str, object]) -> list[str]:
    """Return the view for people, one fact per line."""
    expectations, rollback = get_table(view, "expectations"), get_table(view, "rollback")
    transferred, verification = get_table(view, "transferred"), get_table(view, "verification")
    deliverables, trail = get_rows(view, "deliverables"), get_rows(view, "trail")
    took, estimated = f"{view['duration_s']} s", get_table(view, "estimate")
    return [
        f"handoff {view['handoff']} of session {view['session']}",
        f"{view['from']} → {view['to']} ({str(view['reason']).replace('_', ' ')}): {view['status']}, {took}",
        *([f"why: {view['why']}"] if view["why"] else []),
        *([f"note: {view['note']}"] if view["note"] else []),
        *[f"skipped: {why}" for why in get_rows(view, "skipped")],
        *([f"lane: {view['to']} {lane['text']}"] if (lane := get_table(view, "lane")) else []),
        *([f"effort: {view['effort']}, passed on to {view['to']}"] if view["effort"] else []),
        *([f"parent: {view['parent']}, depth {view['depth']}"] if view["parent"] else []),
        *([f"priority: {view['priority']}"] if view["priority"] else []),
        *[
            f"{name.replace('_', ' ')}: {'; '.join(map(str, texts))}"
            for name in expectations
            if (texts := get_rows(expectations, name))
        ],
        *([f"rollback: {rollback['agent']}"] if rollback["agent"] else []),
        *[f"question: {text}" for text in get_rows(rollback, "questions")],
        *[
            f"{mark(_MET if one['exists'] else _UNMET)} deliverable {one['text']}:"
            f" {'there' if one['exists'] else 'missing'}"
            for one in deliverables
            if one["exists"] is not None
        ],
        *list_evidence_lines(view),
        *([f"estimate: {render_estimate(estimated, str(view['to']))}"] if estimated else []),
        f"packet: {transferred['path'] or 'none yet'}",
        *[
            f"  {name.replace('_', ' ')}: {count}"
            for name, count in get_table(transferred, "counts").items()
            if count
        ],
        *[f"{name.replace('_', ' ')}: {text}" for name, text in verification.items() if text],
        *([f"packet used: {used['text']}"] if (used := get_table(view, "packet_use")) else []),
        *[
            f"  {render_moment(moment['at'])}  {moment['event']}  {moment['text']}".rstrip()
            for moment in trail
        ],
    ]


def _read(chain: Lineage, record: HandoffRecord) -> "tuple[ResumePacket | None, str]":
    if not record.json_path:
        return None, ""
    from agent_relay.store.packets import read_packet

    try:
        return read_packet(f"{chain.folder}/{record.json_path}"), ""
    except (RelayError, OSError) as error:
        return None, error.sentence if isinstance(error, RelayError) else "the packet cannot be read"


def _describe_transferred(
    chain: Lineage, record: HandoffRecord, packet: "ResumePacket | None", problem: str
) -> dict[str, object]:
    text = f"{chain.folder}/{record.text_path}" if record.text_path else ""
    return {
        "packet": record.packet,
        "sequence": record.sequence,
        "path": text,
        "bytes": os.path.getsize(text) if text and os.path.exists(text) else 0,
        "problem": problem,
        "task": bool(packet and packet.task),
        "unprocessed_prompt": bool(packet and packet.unprocessed_prompt),
        "counts": {name: len(getattr(packet, name)) if packet else 0 for name in _COUNTED},
    }


def _describe_deliverable(root: str, text: str) -> dict[str, object]:
    """Return the deliverable's `text`, and whether it `exists` if it reads like a path below the root.

    `exists` is `None` for any other text.
    """
    is_path = len(text) <= _PATH_LENGTH and not any(sign in text for sign in " \n\0") and ".." not in text
    is_path = is_path and not os.path.isabs(text) and ("/" in text or "." in text[1:])
    return {"text": text, "exists": os.path.exists(os.path.join(root, text)) if is_path else None}


def _verify(chain: Lineage, record: HandoffRecord, packet: "ResumePacket | None") -> dict[str, object]:
    """Return the checks at the handoff and at the next one, and what changed in the tree since."""
    after = next((one for one in chain.registry.records if one.parent == record.id and one.json_path), None)
    later = _read(chain, after)[0] if after is not None else None
    stale: tuple[str, ...] = ()
    if packet is not None and record.is_open:
        from agent_relay.packet.freshness import list_touched, verify_freshness
        from agent_relay.system.git.file_look_up import look_up_files
        from agent_relay.system.git.tree_state import read_tree

        try:
            tree = read_tree(chain.root)
            stale = verify_freshness(packet, look_up_files(tree, list_touched(tree.root, packet)))
        except RelayError:
            stale = ()
    return {
        "checks_before": _render_checks(packet),
        "checks_after": _render_checks(later),
        "changed_since": "; ".join(stale),
    }


def _render_checks(packet: "ResumePacket | None") -> str:
    state = packet.validation_state.model_dump(exclude_none=True) if packet is not None else {}
    return ", ".join(f"{kind} {verdict}" for kind, verdict in state.items())
