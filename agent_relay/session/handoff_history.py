"""Fold a journal into records of its handoffs: steps reached, terms expected, verdicts given."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.session import NO_TERMS, Step, Terms
from agent_relay.domain.text.names import name_asker, name_lane
from agent_relay.domain.values import NOBODY, Asker, replace
from agent_relay.session.fold import read_terms


class HandoffStatus(StrEnum):
    """The status of a handoff; the first five are open.

    `unjudged` is one whose successor is no longer at work and whose expected results are not confirmed.
    """

    REQUESTED = "requested"
    UNDER_WAY = "under-way"
    CANCELLING = "cancelling"
    WORKING = "working"
    UNJUDGED = "unjudged"
    DONE = "done"
    PASSED_ON = "passed-on"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


_BY_VERDICT = {status.value: status for status in (HandoffStatus.COMPLETED, HandoffStatus.REJECTED)}
OPEN_STATUSES = frozenset(
    {
        HandoffStatus.REQUESTED,
        HandoffStatus.UNDER_WAY,
        HandoffStatus.CANCELLING,
        HandoffStatus.WORKING,
        HandoffStatus.UNJUDGED,
    }
)


class HandoffTrailEntry(msgspec.Struct, frozen=True):
    """One line of a handoff's trail: an event's name, and what it said."""

    at: datetime
    event: str
    text: str = ""


class HandoffRecord(msgspec.Struct, frozen=True):
    """One handoff. `ended_at` is when it was made or given up, `closed_at` when it was judged, in `closing`.

    `legs` are the successor's: several if it was retried. Paths are relative to the session's folder.
    `checked` is the newest that is known of each criterion. `resumes` is whether the successor's newest leg
    resumed its own conversation, and `lane_why` why; `effort` is the level that was passed on to it.
    `asker` is who asked for the handoff, if anybody.
    """

    id: str
    from_leg: str
    from_agent: str
    to_agent: str
    reason: str
    began_at: datetime
    why: str = ""
    focus: str = ""
    skipped: tuple[str, ...] = ()
    model: str = ""
    parent: str = ""
    depth: int = 0
    rolls_back: str = ""
    terms: Terms = NO_TERMS
    status: HandoffStatus = HandoffStatus.UNDER_WAY
    step: str = Step.BEGUN
    packet: str = ""
    sequence: int = 0
    json_path: str = ""
    text_path: str = ""
    fingerprint: str = ""
    legs: tuple[str, ...] = ()
    resumes: bool = False
    lane_why: str = ""
    effort: str = ""
    ended_at: datetime | None = None
    closed_at: datetime | None = None
    note: str = ""
    retries: int = 0
    checked: tuple[work.CriterionChecked, ...] = ()
    blockers: tuple[work.BlockerNamed, ...] = ()
    closing: work.HandoffClosed | None = None
    asker: Asker = NOBODY
    trail: tuple[HandoffTrailEntry, ...] = ()

    @property
    def is_open(self) -> bool:
        """True if something is still to happen to the handoff."""
        return self.status in OPEN_STATUSES

    @property
    def lane(self) -> str:
        """The way in which its successor learned what it took over, in words; empty if none was started."""
        return name_lane(resumes=self.resumes, why=self.lane_why) if self.legs else ""


_Signed = (
    work.HandoffBegun
    | work.HandoffRequested
    | work.HandoffWithdrawn
    | work.HandoffCancelled
    | work.HandoffRetried
    | work.HandoffClosed
)


def _sign(text: str, body: _Signed) -> str:
    """Return the text, and who said so."""
    asker = name_asker(body.user, body.via)
    return "; ".join(part for part in (text, f"by {asker}" if asker else "") if part)


def render_result(record: HandoffRecord) -> dict[str, object]:
    """Render what a handoff expects, how its successor learned of the work, and what came of it, for JSON."""
    closing, terms = record.closing, record.terms
    return {
        "lane": record.lane,
        "deliverables": list(terms.deliverables),
        "acceptance_criteria": list(terms.criteria),
        "checks": list(terms.checks),
        "constraints": list(terms.constraints),
        "criteria": [render_evidence(checked) for checked in record.checked],
        "blockers": [
            {"kind": one.kind, "text": one.text, "requires": one.requires} for one in record.blockers
        ],
        "completed": list(closing.completed) if closing is not None else [],
        "incomplete": list(closing.incomplete) if closing is not None else [],
        "suggested_next": closing.suggested_next if closing is not None else "",
    }


def render_evidence(checked: work.CriterionChecked) -> dict[str, object]:
    """Render what is known of a criterion, for JSON."""
    return {
        "criterion": checked.criterion,
        "verdict": checked.verdict,
        "how": checked.how,
        "by": checked.by,
        "output": checked.output,
    }


FEWEST_FOR_ESTIMATE = 3
"""Fewest past handoffs for an estimate: below it their median says little, so there is none."""


class DurationEstimate(msgspec.Struct, frozen=True):
    """The estimated length of a handoff to an agent, by the median of past ones; `None` if too few are known.

    `takeover_s` is until the successor works, by `takeovers` past handoffs, `work_s` from then until it was
    completed, by `works`.
    """

    takeover_s: float | None
    work_s: float | None
    takeovers: int
    works: int


def estimate_durations(records: Iterable[HandoffRecord], agent: str) -> DurationEstimate:
    """Return how long a handoff to `agent` may take, by those of the records that went to it."""
    takeovers, works = list[float](), list[float]()
    for record in records:
        if record.to_agent != agent or record.ended_at is None or record.step != Step.DELIVERED:
            continue
        if not record.retries:
            takeovers.append((record.ended_at - record.began_at).total_seconds())
        if record.status is HandoffStatus.COMPLETED and record.closed_at is not None:
            works.append((record.closed_at - record.ended_at).total_seconds())
    return DurationEstimate(_find_median(takeovers), _find_median(works), len(takeovers), len(works))


def _find_median(lengths: list[float]) -> float | None:
    """Return the lower median of enough lengths; clocks that were set back make some negative."""
    known = sorted(length for length in lengths if length >= 0)
    return known[(len(known) - 1) // 2] if len(known) >= FEWEST_FOR_ESTIMATE else None


class LegRecord(msgspec.Struct, frozen=True):
    """One leg of the chain; `handoff` brought it, empty if it was started or resumed without one."""

    id: str
    agent: str
    handoff: str
    began_at: datetime
    resumes: bool = False
    ended_at: datetime | None = None
    how: str = ""


class HandoffHistory:
    """The handoffs and legs of one session, in the order they began; fed its events one by one."""

    def __init__(self, journal: Iterable[events.Event] = ()) -> None:
        self._records: dict[str, HandoffRecord] = {}
        self._legs: dict[str, LegRecord] = {}
        self._current = ""
        for event in journal:
            self.hear(event)

    @property
    def records(self) -> tuple[HandoffRecord, ...]:
        """Every handoff."""
        return tuple(self._records.values())

    @property
    def legs(self) -> tuple[LegRecord, ...]:
        """Every leg."""
        return tuple(self._legs.values())

    def hear(self, event: events.Event) -> None:
        """Fold one more event of the journal."""
        at = event.at
        match event.body:
            case work.HandoffBegun() as body:
                self._begin(body, at)
            case work.PredecessorStopped(handoff):
                self._note(handoff, event, step=Step.STOPPED)
            case work.PacketPublished() as body:
                self._note(
                    body.handoff,
                    event,
                    body.text_path,
                    step=Step.PUBLISHED,
                    packet=body.packet,
                    sequence=body.sequence,
                    json_path=body.json_path,
                    text_path=body.text_path,
                    fingerprint=body.fingerprint,
                )
            case events.LegStarting() as body:
                self._mark(body.agent, HandoffStatus.UNJUDGED, HandoffStatus.WORKING)
                self._legs[body.leg] = LegRecord(body.leg, body.agent, body.handoff, at, body.resumes)
                known = self._records.get(body.handoff)
                legs = (*known.legs, body.leg) if known is not None else ()
                lane = {"resumes": body.resumes, "lane_why": body.lane_why, "effort": body.effort}
                self._note(body.handoff, event, body.leg, step=Step.SPAWNING, legs=legs, **lane)
            case events.LegStarted(leg) if leg in self._legs:
                self._note(self._legs[leg].handoff, event, leg, step=Step.SPAWNED)
            case events.LegEnded(leg, how) if leg in self._legs:
                self._drop(leg, event)
                self._legs[leg] = replace(self._legs[leg], ended_at=at, how=how)
                self._mark(self._legs[leg].agent, HandoffStatus.WORKING, HandoffStatus.UNJUDGED)
            case work.PacketDelivered(handoff):
                self._note(handoff, event, step=Step.DELIVERED)
            case work.HandoffConfirmed(handoff):
                self._confirm(handoff, event)
            case events.SessionRested(why) | events.SessionEnded(why) | events.SessionStopping(why):
                self._leave(why, event)
            case _:
                self._judge(event)

    def _judge(self, event: events.Event) -> None:
        at = event.at
        match event.body:
            case work.HandoffFailed(handoff, step, why):
                self._note(handoff, event, why, status=HandoffStatus.FAILED, step=step, note=why, ended_at=at)
                self._current = ""
            case work.HandoffCancelled(handoff, _, why) as body:
                self._note(handoff, event, _sign(why, body), status=HandoffStatus.CANCELLING, note=why)
            case work.HandoffRetried(handoff) as body if handoff in self._records:
                retries = self._records[handoff].retries + 1
                status = HandoffStatus.UNDER_WAY
                text = _sign("", body)
                self._note(handoff, event, text, status=status, ended_at=None, note="", retries=retries)
                self._current = handoff
            case work.CriterionChecked(handoff, criterion, verdict) as body if handoff in self._records:
                others = tuple(one for one in self._records[handoff].checked if one.criterion != criterion)
                self._note(handoff, event, f"{verdict}: {criterion}", checked=(*others, body))
            case work.BlockerNamed(handoff, kind, text) as body if handoff in self._records:
                blockers = (*self._records[handoff].blockers, body)
                self._note(handoff, event, f"{kind}: {text}", blockers=blockers)
            case work.HandoffRequested() as body if body.leg in self._legs:
                self._request(body, at)
            case work.HandoffWithdrawn(handoff, why) as body:
                status = HandoffStatus.CANCELLED
                self._note(handoff, event, _sign(why, body), status=status, note=why, ended_at=at)
            case work.HandoffAccepted(handoff, _, note):
                self._note(handoff, event, note)
            case work.HandoffClosed(handoff, verdict, note, skipped) as body:
                status = _BY_VERDICT.get(verdict, HandoffStatus.FAILED)
                said = "; ".join(text for text in (verdict, note, *skipped) if text)
                self._note(
                    handoff, event, _sign(said, body), status=status, note=note, closed_at=at, closing=body
                )
            case _:
                pass

    def _mark(self, agent: str, before: HandoffStatus, status: HandoffStatus) -> None:
        """Set `status` on the handoffs to `agent` whose status is `before`."""
        for record in self.records:
            if record.to_agent == agent and record.status is before:
                self._records[record.id] = replace(record, status=status)

    def _request(self, body: work.HandoffRequested, at: datetime) -> None:
        self._records[body.handoff] = HandoffRecord(
            body.handoff,
            body.leg,
            self._legs[body.leg].agent,
            body.to_agent,
            "failure" if body.closes else "manual",
            at,
            why=body.title,
            rolls_back=body.closes,
            terms=Terms(priority=body.priority),
            status=HandoffStatus.REQUESTED,
            step="requested",
            asker=Asker(body.user, body.via),
            trail=(HandoffTrailEntry(at, body.name, _sign(body.text, body)),),
        )

    def _drop(self, leg: str, event: events.Event) -> None:
        """Mark a handoff that the agent of `leg`, which is over, had only asked for."""
        for record in self.records:
            if record.from_leg == leg and record.status is HandoffStatus.REQUESTED:
                why = f"{record.from_agent} ended before it began"
                status = HandoffStatus.CANCELLED
                self._note(record.id, event, why, status=status, note=why, ended_at=event.at)

    def _begin(self, body: work.HandoffBegun, at: datetime) -> None:
        asked = self._records.get(body.handoff)
        parent = body.parent or (next(reversed(self._records)) if self._records and not body.depth else "")
        above = self._records.get(parent)
        depth = body.depth or (above.depth + 1 if above is not None else 1)
        self._records[body.handoff] = HandoffRecord(
            body.handoff,
            body.from_leg,
            body.from_agent,
            body.to_agent,
            body.reason,
            at,
            why=body.why,
            focus=body.focus,
            skipped=body.skipped,
            model=body.model,
            parent=parent,
            depth=depth,
            rolls_back=body.rolls_back,
            terms=read_terms(body),
            asker=asked.asker if asked is not None else Asker(body.user, body.via),
            trail=(
                *(asked.trail if asked is not None else ()),
                HandoffTrailEntry(at, body.name, _sign(body.why, body)),
            ),
        )
        self._current = body.handoff

    def _confirm(self, handoff: str, event: events.Event) -> None:
        record = self._records.get(handoff)
        if record is None:
            return
        status = HandoffStatus.WORKING if record.terms.expects else HandoffStatus.DONE
        self._note(handoff, event, status=status, ended_at=event.at)
        above = self._records.get(record.parent)
        if above is not None and above.status in {HandoffStatus.WORKING, HandoffStatus.UNJUDGED}:
            self._records[above.id] = replace(above, status=HandoffStatus.PASSED_ON)
        self._current = ""

    def _leave(self, why: str, event: events.Event) -> None:
        """Mark the handoff under way as left behind: the session goes on without it."""
        record = self._records.get(self._current)
        self._current = ""
        if record is None:
            return
        status = (
            HandoffStatus.CANCELLED if record.status is HandoffStatus.CANCELLING else HandoffStatus.FAILED
        )
        self._note(record.id, event, why, status=status, note=record.note or why, ended_at=event.at)

    def _note(self, handoff: str, event: events.Event, text: str = "", **changes: object) -> None:
        record = self._records.get(handoff)
        if record is not None:
            trail = (*record.trail, HandoffTrailEntry(event.at, event.body.name, text))
            self._records[handoff] = replace(record, trail=trail, **changes)  # type: ignore[arg-type]  # fields of one dataclass, named by the caller
