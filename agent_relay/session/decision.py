"""Define what a decision may know and what it returns, and choose a successor by the policy."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from agent_relay.domain.effects import (
    DeliverPacket,
    DeliverTask,
    Effect,
    PublishPacket,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.events.session import Body
from agent_relay.domain.inputs import DeliverFailed, Input, LegGone, PublishFailed
from agent_relay.domain.limits import NO_QUIET_HOURS, NO_WISHES, ContextWishes, FullWindow, QuietHours
from agent_relay.domain.moments import render_moment, render_reset
from agent_relay.domain.session import Handoff, Leg, Session
from agent_relay.domain.state import State
from agent_relay.domain.text.names import name_rest
from agent_relay.domain.values import UNKNOWN_OWNER, Owner, replace

_TRIES = 2
"""Number of times an agent may fail to take over before the next one is asked: one crash is bad luck."""


class Availability(msgspec.Struct, frozen=True):
    """One agent's availability, as far as it is known now.

    `resting` is whether the ledger says it rests; `rests_until` until when, `None` while it rests without a
    known reset, and `assumed` whether the agent did not say when. `full` is a usage window of its account
    that is used up, as it last said itself: whoever has room is asked before it. `capabilities` are what its
    adapter declares. `fault` is why it could not be started although it is installed, empty for nothing: our
    installation that would start it no longer exists.
    """

    installed: bool
    signed_in: bool = True
    resting: bool = False
    rests_until: datetime | None = None
    assumed: bool = False
    scope: str = ""
    capabilities: frozenset[str] = frozenset()
    fault: str = ""
    full: FullWindow | None = None


class Choice(msgspec.Struct, frozen=True):
    """The policy's answer.

    `successor` is empty if no agent can take over; `earliest` is the first reset of those resting, and
    `assumed` whether its agent did not name it.
    """

    successor: str
    skipped: tuple[str, ...]
    earliest: datetime | None
    assumed: bool = False


def choose_successor(
    roster: Sequence[str],
    availability: Mapping[str, Availability],
    *,
    current: str,
    tried: Sequence[str] = (),
    now: datetime,
    zone: tzinfo = UTC,
    needs: Sequence[str] = (),
) -> Choice:
    """Return the first agent of the roster, by preference, that can take over from `current` at `now`.

    One that says that a window of its account is used up comes after those that do not: it may be wrong, or
    work on with credits. `current` is never its own successor. `needs` are capabilities the successor has to
    have. Reasons read `agent: why`, in the order considered, with the moments in `zone`.
    """
    skipped: list[str] = []
    resets: list[tuple[datetime, bool]] = []
    known = availability.get(current)
    if known is not None and known.resting and known.rests_until is not None:
        resets.append((known.rests_until, known.assumed))
    successor = full = ""
    for name in roster:
        if name == current:
            continue
        why = explain_unavailable(
            availability.get(name), tries=tried.count(name), now=now, zone=zone, needs=needs
        )
        state = availability.get(name)
        if not why and state is not None and state.full is not None and state.full.until > now:
            full = full or name
            why = f"its {state.full.name} is used up until {render_moment(state.full.until, now, zone)}"
        elif not why:
            successor = name
            break
        skipped.append(f"{name}: {why}")
        if state is not None and state.resting and state.rests_until is not None:
            resets.append((state.rests_until, state.assumed))
    if full and not successor:
        successor, skipped = full, [why for why in skipped if not why.startswith(f"{full}: ")]
    return Choice(successor, tuple(skipped), *min(resets, default=(None, False)))


def explain_unavailable(
    state: Availability | None,
    *,
    tries: int = 0,
    now: datetime,
    zone: tzinfo = UTC,
    needs: Sequence[str] = (),
) -> str:
    """Return what keeps an agent from taking over at `now`; empty for nothing."""
    if state is None or not state.installed:
        return "not installed"
    if state.fault:
        return state.fault
    if not state.signed_in:
        return "not signed in"
    if lacking := [need for need in needs if need not in state.capabilities]:
        return f"its adapter does not declare {', '.join(lacking)}"
    if state.resting and (state.rests_until is None or state.rests_until > now):
        return _tell_rest(state, now, zone)
    return "could not take over just now" if tries >= _TRIES else ""


def _tell_rest(state: Availability, now: datetime, zone: tzinfo) -> str:
    if state.rests_until is None:
        return f"rests until you say otherwise ({name_rest(state.scope)})"
    moment = render_reset(state.rests_until, now, zone, assumed=state.assumed)
    return f"its budget is used up until {moment}" if state.scope == "budget" else f"rests until {moment}"


class DecisionContext(msgspec.Struct, frozen=True):
    """Everything the machine may know beyond the session: the moment, who is available, fresh ids.

    `fallback_models` holds the model an agent may go on with when its own is limited, `native_ids` a fresh
    native session id for agents that accept one. `resume_at_reset` is whether a session all of whose agents
    rest may go on by itself at the first reset, `agent_may_continue` whether an agent may by its own timer,
    and `quiet` when neither may. `return_mode` is what happens when a preferred agent is available again:
    offer, auto or off; nothing begins unasked before `reset_grace` after a reset. `zone` is the user's:
    reasons shown to them give times in it. `context` is what is to be done when a context fills up,
    `draft_near_limit` whether an agent that is near a limit is asked for a handoff document. `spoilt` says
    by agent why the packet that waits for it cannot be used; an agent that is not in it gets a packet that
    can be read, or one that is still to be made. `owner` is the owner of the legs begun now. `standbys` are
    the agents that may be started ahead of a limit, each with what identifies the configuration it would be
    started with; empty if the user does not want that. `efforts` is the level of effort that is passed on to
    each agent.
    """

    now: datetime
    availability: Mapping[str, Availability]
    handoff_id: str
    leg_id: str
    native_ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    resume_at_reset: bool = False
    agent_may_continue: bool = True
    quiet: QuietHours = NO_QUIET_HOURS
    return_mode: str = "offer"
    reset_grace: timedelta = timedelta(0)
    zone: tzinfo = UTC
    fallback_models: Mapping[str, str] = msgspec.field(default_factory=dict)
    context: ContextWishes = NO_WISHES
    draft_near_limit: bool = False
    spoilt: Mapping[str, str] = msgspec.field(default_factory=dict)
    owner: Owner = UNKNOWN_OWNER
    standbys: Mapping[str, str] = msgspec.field(default_factory=dict)
    efforts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def choose(
        self,
        roster: Sequence[str],
        *,
        current: str = "",
        tried: Sequence[str] = (),
        needs: Sequence[str] = (),
    ) -> Choice:
        """Return whom the policy picks now, as `choose_successor` does."""
        return choose_successor(
            roster, self.availability, current=current, tried=tried, now=self.now, zone=self.zone, needs=needs
        )

    def ignore_full(self, agent: str) -> "DecisionContext":
        """Return the context in which no window of `agent` is used up, because it works."""
        state = self.availability.get(agent)
        if state is None or state.full is None:
            return self
        return replace(self, availability={**self.availability, agent: replace(state, full=None)})

    def wake(self, agent: str) -> "DecisionContext":
        """Return the context in which `agent` does not rest, because a person says so."""
        state = self.availability.get(agent)
        if state is None:
            return self
        return replace(self, availability={**self.availability, agent: replace(state, resting=False)})


class Outcome(msgspec.Struct, frozen=True):
    """Events in the order they are to be journalled, then effects to perform."""

    bodies: tuple[Body, ...] = ()
    effects: tuple[Effect, ...] = ()

    def then(self, other: "Outcome") -> "Outcome":
        """Return both outcomes, one after the other."""
        return Outcome(self.bodies + other.bodies, self.effects + other.effects)


NOTHING = Outcome()


def build_failure(effect: Effect, why: str) -> Input | None:
    """Return the input that reports that `effect` failed; `None` if nothing waits for it."""
    match effect:
        case SpawnLeg(leg):
            return LegGone(leg, "unstarted", why=why)
        case PublishPacket(handoff):
            return PublishFailed(handoff, why)
        case DeliverPacket(handoff, leg):
            return DeliverFailed(handoff, leg, why)
        case _:
            return None


def may_try_again(session: Session, effect: Effect, *, passes: bool, lacks_room: bool) -> bool:
    """Return whether `effect`, which just failed, is tried again.

    `passes` is whether it lacked what becomes free soon, `lacks_room` whether a disk is full. A handoff waits
    until somebody has made room: it has stopped the predecessor already, and giving up would leave the
    session without any agent. What no input can report as failed is tried for ever.
    """
    if isinstance(effect, StopLeg | WakeAt) or passes:
        return True
    return lacks_room and session.handoff is not None and isinstance(effect, PublishPacket | SpawnLeg)


def find_standby(session: Session, handoff: Handoff, native_id: str, world: DecisionContext) -> Leg | None:
    """Return the standby that can be the handoff's successor as it is; `None` if one has to be started.

    `native_id` is the conversation of its own in which the successor would go on; empty for a new one.
    """
    standby = session.standby
    if standby is None or standby.is_dropped or handoff.model or session.open_turn is not None:
        return None
    leg = standby.leg
    is_alike = leg.agent == handoff.to_agent and native_id == (leg.native_id if leg.resumes else "")
    return leg if is_alike and world.standbys.get(leg.agent) == standby.setup else None


def is_wanted(session: Session, effect: Effect) -> bool:
    """Return whether `effect` is still to be performed in the session's state after some time of trying."""
    living, is_ending = session.living_leg, session.state in {State.STOPPING, State.ENDED}
    match effect:
        case StopLeg(leg) if session.is_standby(leg):
            return True
        case SpawnLeg(leg) if session.standby is not None and session.is_standby(leg):
            return not session.standby.is_dropped
        case StopLeg(leg):
            return living is not None and living.id == leg
        case SpawnLeg(leg) | DeliverPacket(_, leg) | DeliverTask(leg):
            return living is not None and living.id == leg and not is_ending
        case PublishPacket(handoff):
            return session.handoff is not None and session.handoff.id == handoff
        case _:
            return not is_ending
