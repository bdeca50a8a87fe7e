"""Sessions of several legs as they stand on disk, each leg with a conversation of its own."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_relay.domain.events import work
from agent_relay.domain.events.session import (
    Body,
    LegBusy,
    LegEnded,
    LegNamed,
    LegReady,
    LegStarting,
    PromptSeen,
    SessionCreated,
    SessionEnded,
)
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal

AT = datetime(2026, 11, 20, 7, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 28, 7, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PastLeg:
    """A leg that ended: its agent, its conversation's id and file, and the prompts its journal has."""

    id: str
    agent: str
    native_id: str = ""
    transcript: str = ""
    prompts: tuple[str, ...] = ()
    resumes: bool = False


def write_lineage(
    root: Path, session: str, legs: Sequence[PastLeg], *, index: Path, begun: datetime = LATER
) -> Path:
    """The folder of an ended session of these legs, each of which took over from the one before.

    The packet between them is what `build_packet_body` names; it is up to the caller to publish one.
    """
    folder = Path(make_session_folder(str(root), session))
    agents = tuple(dict.fromkeys(leg.agent for leg in legs))
    rows: list[tuple[int, Body]] = [
        (0, SessionCreated(session, str(root), str(root), agents, "mow the lawn"))
    ]
    for number, leg in enumerate(legs, 1):
        handoff = f"01JH{number - 1:022}" if number > 1 else ""
        rows.append((number, LegStarting(leg.id, leg.agent, number, handoff=handoff, resumes=leg.resumes)))
        rows += [(number, body) for body in _list_life(leg)]
        if number < len(legs):
            rows += [(number, body) for body in _list_handoff(number, leg, legs[number])]
    rows += [(len(legs), LegEnded(legs[-1].id, "exited", 0)), (len(legs), SessionEnded("the agent was left"))]
    with closing(SessionJournal(str(folder / "journal.jsonl"))) as journal:
        for count, (generation, body) in enumerate(rows):
            at = begun + timedelta(seconds=count)
            journal.append(body, at=at, generation=generation, durable=False)
    write_entry(str(index), session, root=str(root), cwd=str(root))
    return folder


def _list_life(leg: PastLeg) -> list[Body]:
    asked = [PromptSeen(leg.id, text, AT.isoformat(), leg.native_id) for text in leg.prompts]
    named = [LegNamed(leg.id, leg.native_id, leg.transcript)] if leg.native_id or leg.transcript else []
    return [LegReady(leg.id), *named, LegBusy(leg.id), *asked, LegReady(leg.id)]


def _list_handoff(number: int, leg: PastLeg, following: PastLeg) -> list[Body]:
    handoff, packet = f"01JH{number:022}", f"01JP{number:022}"
    stem = f"resume/{number:04}-{following.agent}"
    return [
        work.HandoffBegun(handoff, leg.id, leg.agent, following.agent, "manual"),
        LegEnded(leg.id, "stopped", 0),
        work.PredecessorStopped(handoff, leg.id),
        work.PacketPublished(
            handoff, packet, number, following.agent, f"{stem}.json", f"{stem}.md", fingerprint=""
        ),
    ]
