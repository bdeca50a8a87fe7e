"""Build what a person is shown while they wait: the bar of a handoff, and who rests until when."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from enum import StrEnum

import msgspec
from msgspec.structs import asdict

from agent_relay.domain.moments import parse_moment, render_moment, render_moment_text, render_reset
from agent_relay.domain.session import Handoff, Session, Step
from agent_relay.domain.state import State
from agent_relay.domain.text.plain import clean_text, count_columns
from agent_relay.session.decision import DecisionContext, explain_unavailable
from agent_relay.session.rests import find_back, is_agreed, is_left_to_agent, is_offered
from agent_relay.session.transitions import find_spent
from agent_relay.session.views.messages import render_limit

SHORTEST_COLUMNS = 18
"""Columns that the last text of a bar fits into: a terminal of 20, less one on either side."""
_HOW = "Esc cancels"
_LONGEST_WHY = 200
"""A reason may quote an agent: what is longer fits into no terminal."""


class DeliveryStage(StrEnum):
    """Stage of a delivery now, beyond what the journal says."""

    NONE = ""
    GIVING = "giving"
    WAITS_FOR_LINE = "waits-for-line"
    """Somebody has typed into the agent's line: it is theirs to send or to clear."""
    SUBMITTED = "submitted"


class DeliveryProgress(msgspec.Struct, frozen=True):
    """A packet on its way into the agent of `leg`. `note` explains a long wait; empty for none."""

    leg: str = ""
    stage: DeliveryStage = DeliveryStage.NONE
    note: str = ""


NO_DELIVERY_PROGRESS = DeliveryProgress()


class HandoffBar(msgspec.Struct, frozen=True):
    """The bar's `texts`: the same message in decreasing length; no text means no bar.

    With `holds_keys`, what is typed is held until the bar is removed; else it goes to the agent. With
    `only_held` the bar is shown only while keys typed earlier are held.
    """

    texts: tuple[str, ...] = ()
    holds_keys: bool = False
    only_held: bool = False


NO_BAR = HandoffBar()


class _Awaited(msgspec.Struct, frozen=True):
    """The thing a handoff waits for: a clause, one word, who gets the keys, and whether it can be cancelled.

    `agent` is the one the word is about if that is not the successor.
    """

    clause: str
    word: str
    holds_keys: bool = True
    can_stop: bool = True
    agent: str = ""


def build_bar(session: Session, delivery: DeliveryProgress, zone: tzinfo) -> HandoffBar:
    """Return the bar of the session as it is now; none if no handoff is under way; times in `zone`."""
    handoff = session.handoff
    if handoff is None or session.open_turn is not None:
        return NO_BAR
    delivery = delivery if delivery.leg == handoff.leg else NO_DELIVERY_PROGRESS
    awaited = _find_cancelled(handoff) if handoff.is_cancelled else _find_awaited(session, handoff, delivery)
    who = f"{handoff.from_agent} → {_name_successor(handoff)}"
    what = delivery.note or awaited.clause
    how = _HOW if awaited.can_stop and awaited.holds_keys else ""
    long, short = (why[:_LONGEST_WHY] for why in _render_why(session, handoff, zone))
    pair = f"{handoff.from_agent}→{handoff.to_agent}"
    texts = [
        f"relay: {_join(who, long, what, how)}",
        _join(who, short, what, how),
        _join(who, what, how),
        _join(who, awaited.clause),
        f"{pair} {awaited.word}",
        _fit(pair, awaited.agent or f"→{handoff.to_agent}", awaited.word),
    ]
    return HandoffBar(_list_falling(texts), awaited.holds_keys)


def build_question_bar(session: Session) -> HandoffBar:
    """Return the bar to show, if keys are held, while an agent at work asks something; else none."""
    if session.state is not State.ASKING or session.handoff is not None or session.open_turn is not None:
        return NO_BAR
    asks = f"{session.agent} needs an answer"
    texts = [
        f"relay: {asks}: give it here · what you typed before it waits",
        f"{asks} · earlier keys wait",
        asks,
        "needs answer",
    ]
    return HandoffBar(_list_falling(texts), only_held=True)


def _find_awaited(session: Session, handoff: Handoff, delivery: DeliveryProgress) -> _Awaited:
    source, target = handoff.from_agent, handoff.to_agent
    match handoff.step:
        case Step.BEGUN:
            return _Awaited(f"{source} is ending", "ending", agent=source)
        case Step.STOPPED if handoff.is_digesting:
            return _Awaited(f"{target} sums up the record first", "sums up")
        case Step.STOPPED:
            return _Awaited("writing the packet", "writing packet")
        case Step.PUBLISHED | Step.SPAWNING:
            return _await_start(session, target)
        case _:
            return _find_awaited_of(session, target, handoff.step, delivery.stage)


def _await_start(session: Session, target: str) -> _Awaited:
    leg = session.leg
    is_own = leg is not None and leg.resumes and leg.agent == target and not leg.is_over
    return _Awaited(f"{target} is starting{' in its own conversation' if is_own else ''}", "starts")


def _find_awaited_of(session: Session, target: str, step: Step, stage: DeliveryStage) -> _Awaited:
    """Return what is awaited of a living successor; what it asks comes first: only the user can answer."""
    state = session.state
    if state is State.ASKING:
        return _Awaited(f"{target} needs an answer: give it here", "needs answer", holds_keys=False)
    if step is Step.DELIVERED or stage is DeliveryStage.SUBMITTED:
        return _Awaited(f"{target} reads the packet", "reads", can_stop=step is not Step.DELIVERED)
    if stage is DeliveryStage.WAITS_FOR_LINE:
        return _Awaited(f"{target}'s input line has text: send or clear it", "clear input", holds_keys=False)
    if stage is DeliveryStage.GIVING or state is State.READY:
        return _Awaited(f"giving {target} the packet", "giving packet")
    if state is State.BUSY:
        return _Awaited(f"{target} is busy; it gets the packet next", "busy", holds_keys=False)
    return _await_start(session, target)


def _find_cancelled(handoff: Handoff) -> _Awaited:
    source, target = handoff.from_agent, handoff.to_agent
    left = {Step.BEGUN: f"{source} is ending", Step.STOPPED: "its packet is still written"}
    clause = left.get(handoff.step, f"{target} is being stopped")
    return _Awaited(f"cancelled: {clause}", "cancelled", can_stop=False)


def _name_successor(handoff: Handoff) -> str:
    """Return the successor's name; if it is the same agent, what differs about it."""
    if handoff.model:
        return f"{handoff.to_agent} on {handoff.model}"
    if handoff.to_agent != handoff.from_agent:
        return handoff.to_agent
    return f"{handoff.to_agent} ({'restarted' if handoff.reason == 'failure' else 'new conversation'})"


def _render_why(session: Session, handoff: Handoff, zone: tzinfo) -> tuple[str, str]:
    """Return why the handoff was begun, in a sentence and in a few words."""
    limit = session.limit
    if find_spent(session, handoff):
        return handoff.why, "budget used up"
    if handoff.reason == "rate_limit" and limit is not None and limit.agent == handoff.from_agent:
        until = render_moment_text(limit.until, handoff.began_at, zone)
        return render_limit(limit, handoff.began_at, zone), f"limit until {until}" if until else "limit"
    if handoff.reason == "context":
        return handoff.why, "context full"
    if handoff.reason == "failure":
        return handoff.why, f"{handoff.from_agent} failed"
    is_asked = handoff.why in {"", "asked for"}
    return ("on request", "on request") if is_asked else (handoff.why, "")


def _join(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _fit(pair: str, agent: str, word: str) -> str:
    """Return the longest form that fits a very narrow terminal: the names are dropped first."""
    forms = (f"{pair} {word}", f"{agent} {word}", word)
    return next(form for form in forms if count_columns(form) <= SHORTEST_COLUMNS)


def _list_falling(texts: list[str]) -> tuple[str, ...]:
    """Return the texts without those that are no shorter than the one before."""
    falling: list[str] = []
    for text in texts:
        clean = " ".join(clean_text(text).split())
        if not falling or count_columns(clean) < count_columns(falling[-1]):
            falling.append(clean)
    return tuple(falling)


class RestView(msgspec.Struct, frozen=True):
    """View of a rest for a person.

    `until` is the first reset (ISO 8601, empty if none is known), `first` the agent it belongs to, and
    `assumed` whether that agent did not name it. `agents`
    are (name, what keeps it, whether it may be chosen all the same). `plan` says what happens at the reset.
    `back` is the agent that is available again by now, empty for none. `agreed` is whether a person agreed to
    go on then, and `can_agree` whether that would change anything. `failure` is why an available agent did
    not take over, empty for nothing.
    """

    until: str
    assumed: bool
    when: str
    first: str
    agents: tuple[tuple[str, str, bool], ...]
    plan: str
    back: str
    agreed: bool
    can_agree: bool
    failure: str

    def render(self) -> Mapping[str, object]:
        """Return the view as JSON values for an answer."""
        agents = [{"agent": name, "why": why, "can": can} for name, why, can in self.agents]
        return {**asdict(self), "agents": agents}


def build_rest_view(session: Session, world: DecisionContext) -> RestView | None:
    """Return the view; `None` if no agent rests, a handoff was cancelled, or a headless turn rests."""
    rests = session.state is State.RESTING and not session.is_held and session.open_turn is None
    if not (rests or is_offered(session)):
        return None
    names = tuple(dict.fromkeys((session.agent, *session.roster)))
    until, assumed = _find_first(session, world)
    opens = world.quiet.find_next_allowed(max(until or world.now, world.now), world.zone)
    return RestView(
        until=until.isoformat() if until is not None else "",
        assumed=assumed,
        when=render_reset(until, world.now, world.zone, assumed=assumed) if until is not None else "",
        first=_find_whose(names, until, world),
        agents=tuple(_describe(name, session, world) for name in names),
        plan=_tell_plan(session, world, (until, assumed), opens),
        back=_find_back(session, world),
        agreed=session.agreed,
        can_agree=rests and until is not None and opens is not None and not world.resume_at_reset,
        failure=_find_failure(session) if rests else "",
    )


def _find_failure(session: Session) -> str:
    """Return why the last successor did not take over; empty if it did, or was never asked."""
    owed = session.retriable
    if owed is None or owed.is_cancelled:
        return ""
    named = [why for why in session.skipped if why.startswith(f"{owed.to_agent} ")]
    return named[0] if named else session.failure or f"{owed.to_agent} did not get its packet"


def _find_first(session: Session, world: DecisionContext) -> tuple[datetime | None, bool]:
    """Return the first reset, and whether it is assumed."""
    known = [
        (state.rests_until, state.assumed)
        for name in {session.agent, *session.roster}
        if (state := world.availability.get(name)) is not None and state.resting and state.rests_until
    ]
    return min(known, default=(parse_moment(session.rested_until), session.reset_assumed))


def _find_whose(names: tuple[str, ...], until: datetime | None, world: DecisionContext) -> str:
    known = world.availability
    return next((name for name in names if until and name in known and known[name].rests_until == until), "")


def _find_back(session: Session, world: DecisionContext) -> str:
    """Return the agent that is available again; empty while the one at work will go on by itself."""
    state = world.availability.get(session.agent)
    if is_left_to_agent(session, world.now, is_back=state is None or not state.resting):
        return ""
    return find_back(session, world)[0]


def _describe(name: str, session: Session, world: DecisionContext) -> tuple[str, str, bool]:
    state = world.availability.get(name)
    why = explain_unavailable(state, now=world.now, zone=world.zone)
    is_there = state is not None and state.installed and state.signed_in and not state.fault
    at_work = session.living_leg is not None and name == session.agent
    return name, why, is_there and not at_work


def _tell_plan(
    session: Session,
    world: DecisionContext,
    reset: tuple[datetime | None, bool],
    opens: datetime | None,
) -> str:
    """Return what happens at the reset, which may be assumed, in one sentence."""
    until, assumed = reset
    own = parse_moment(session.continues_at)
    is_own = own is not None and session.living_leg is not None and session.agent_may_continue
    if is_own and own is not None:
        after = (
            "; if it has not within five minutes, relay will continue the work"
            if is_agreed(session, world)
            else ""
        )
        when = render_moment(own, world.now, world.zone)
        return f"{session.agent} will continue by itself at {when}{after}."
    if not is_agreed(session, world) or until is None:
        return "Work will not continue automatically."
    if opens is None:
        return 'Work will not continue automatically because quiet_hours = "always".'
    is_late = opens > max(until, world.now)
    when = render_reset(opens, world.now, world.zone, assumed=assumed and not is_late)
    late = ", when the quiet hours are over" if is_late else ""
    return f"Work will continue automatically at {when}{late}."
