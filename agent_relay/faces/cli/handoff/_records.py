"""Read the handoffs of every session from their journals, and build the row that shows one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.values.project_layout import get_journal_path, get_session_folder
from agent_relay.faces.cli.session.lookup import choose_named, find_newest_here, find_session
from agent_relay.session.handoff.history import HandoffHistory, HandoffRecord
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import list_index
from agent_relay.store.session_summaries import find_near_root, list_own_at
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.system.disk.regular_files import open_stream

_NAME_BYTES = 1 << 20


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
    folders = get_folders()
    if session:
        view = find_session(folders, session)
        return [read_lineage(str(view["root"]), str(view["session"]))]
    found = []
    for root, name in _list_places():
        try:
            found.append(read_lineage(root, name))
        except RelayError:
            continue
    return found


def choose_here(session: str = "") -> Lineage:
    """Return the lineage of the session named, else of the newest here; raise WrongUseError for none."""
    if session:
        (chain,) = choose_lineages(session)
        return chain
    view = find_newest_here(get_folders())
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
    return found[choose_named(found, text, noun="handoff", hint="See: agent-relay handoff history")]


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
        "began_at": record.began_at.isoformat(),
        "ended_at": ended.isoformat() if ended else "",
        "duration_s": round(((record.ended_at or now) - record.began_at).total_seconds(), 3),
        "priority": terms.priority,
        "parent": record.parent,
        "depth": record.depth,
        "rolls_back": record.rolls_back,
        "retries": record.retries,
        "note": record.note,
        "legs": list(record.legs),
        "expectations": {
            "deliverables": list(terms.deliverables),
            "acceptance_criteria": list(terms.criteria),
            "constraints": list(terms.constraints),
            "needs": list(terms.needs),
        },
        "rollback": {"agent": terms.rollback, "questions": list(terms.questions)},
    }


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
