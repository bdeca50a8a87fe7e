"""The contract between the state machine and its host: what it may know and what it answers.

It also maps an effect that could not be performed to the failure input its waiter expects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from agent_relay.domain.context import NO_WISHES, ContextWishes
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
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values.ids import UNKNOWN_OWNER, Owner
from agent_relay.domain.values.quiet_hours import NO_QUIET_HOURS, QuietHours
from agent_relay.session.policy import Availability


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What the machine may know beyond the session: the moment, who is available, fresh ids.

    `fallback_models` holds the model an agent may go on with when its own is limited, `native_ids` a fresh
    native session id for agents that accept one. `resume_at_reset` is whether a session all of whose agents
    rest may go on by itself at the first reset, `agent_may_continue` whether an agent may by its own timer,
    and `quiet` when neither may. `return_mode` is what happens when a preferred agent is available
    again: offer, auto or off. `zone` is the user's: reasons shown to them give times in it.
    `context` is what is to be done when a context fills up, `draft_near_limit` whether an agent that is near
    a limit is asked for a handoff document. `spoilt` says by agent why the packet that waits for it cannot be
    used; an agent that is not in it gets a packet that can be read, or one that is still to be made. `owner`
    is the owner of the legs begun now.
    """

    now: datetime
    availability: Mapping[str, Availability]
    handoff_id: str
    leg_id: str
    native_ids: Mapping[str, str] = field(default_factory=dict)
    resume_at_reset: bool = False
    agent_may_continue: bool = True
    quiet: QuietHours = NO_QUIET_HOURS
    return_mode: str = "offer"
    zone: tzinfo = UTC
    fallback_models: Mapping[str, str] = field(default_factory=dict)
    context: ContextWishes = NO_WISHES
    draft_near_limit: bool = False
    spoilt: Mapping[str, str] = field(default_factory=dict)
    owner: Owner = UNKNOWN_OWNER


@dataclass(frozen=True, slots=True)
class Outcome:
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


def must_be_done(effect: Effect) -> bool:
    """Return whether the session needs `effect` to go on and no input can report its failure."""
    return isinstance(effect, StopLeg | WakeAt)


def is_wanted(session: Session, effect: Effect) -> bool:
    """Return whether `effect` is still to be performed in the session's state after some time of trying."""
    living, is_ending = session.living_leg, session.state in {State.STOPPING, State.ENDED}
    match effect:
        case StopLeg(leg):
            return living is not None and living.id == leg
        case SpawnLeg(leg) | DeliverPacket(_, leg) | DeliverTask(leg):
            return living is not None and living.id == leg and not is_ending
        case PublishPacket(handoff):
            return session.handoff is not None and session.handoff.id == handoff
        case _:
            return not is_ending
