"""What a person is shown while every agent rests: until when, and what happens at the reset."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values.moments import parse_moment, render_moment
from agent_relay.session.limits.rests import find_back, is_agreed, is_left_to_agent
from agent_relay.session.outcome import DecisionContext
from agent_relay.session.policy import explain_unavailable


@dataclass(frozen=True, slots=True)
class RestView:
    """What a person sees while agents rest.

    `until` is the first reset (ISO 8601, empty if none is known), `first` the agent it belongs to. `agents`
    are (name, what keeps it, whether it may be chosen all the same). `plan` says what happens at the reset.
    `back` is the agent that is available again by now, empty for none. `agreed` is whether a person agreed to
    go on then, and `can_agree` whether that would change anything. `failure` is why an available agent did
    not take over, empty for nothing.
    """

    until: str
    when: str
    first: str
    agents: tuple[tuple[str, str, bool], ...]
    plan: str
    back: str
    agreed: bool
    can_agree: bool
    failure: str = ""

    def render(self) -> Mapping[str, object]:
        """Return the view as JSON values for an answer."""
        return {
            "until": self.until,
            "when": self.when,
            "first": self.first,
            "agents": [{"agent": name, "why": why, "can": can} for name, why, can in self.agents],
            "plan": self.plan,
            "back": self.back,
            "agreed": self.agreed,
            "can_agree": self.can_agree,
            "failure": self.failure,
        }


def build_rest_view(session: Session, world: DecisionContext) -> RestView | None:
    """Return the view; `None` if no agent rests, a handoff was cancelled, or a headless turn rests."""
    is_offered = session.state is State.READY and bool(session.offer) and session.offer == session.agent
    rests = session.state is State.RESTING and not session.is_held and session.open_turn is None
    if not (rests or is_offered):
        return None
    names = tuple(dict.fromkeys((session.agent, *session.roster)))
    until = _find_first(session, world)
    opens = world.quiet.find_next_allowed(max(until or world.now, world.now), world.zone)
    return RestView(
        until=until.isoformat() if until is not None else "",
        when=render_moment(until, world.now, world.zone) if until is not None else "",
        first=_find_whose(names, until, world),
        agents=tuple(_describe(name, session, world) for name in names),
        plan=_tell_plan(session, world, until, opens),
        back=session.offer if is_offered else _find_back(session, world),
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


def _find_first(session: Session, world: DecisionContext) -> datetime | None:
    known = [
        state.rests_until
        for name in {session.agent, *session.roster}
        if (state := world.availability.get(name)) is not None and state.resting and state.rests_until
    ]
    return min(known, default=parse_moment(session.rested_until))


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
    session: Session, world: DecisionContext, until: datetime | None, opens: datetime | None
) -> str:
    """Return what happens at the reset, in one sentence."""
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
    late = ", when the quiet hours are over" if opens > max(until, world.now) else ""
    return f"Work will continue automatically at {render_moment(opens, world.now, world.zone)}{late}."
