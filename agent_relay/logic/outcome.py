"""What the state machine may know and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from agent_relay.domain.context import NO_WISHES, ContextWishes
from agent_relay.domain.effect import Effect
from agent_relay.domain.event import Body
from agent_relay.domain.owner import UNKNOWN_OWNER, Owner
from agent_relay.domain.quiet_hours import NO_QUIET_HOURS, QuietHours
from agent_relay.logic.policy import Availability


@dataclass(frozen=True, slots=True)
class World:
    """What the machine may know beyond the session: the moment, who is available, fresh names.

    `fallback_models` holds the model an agent may go on with when its own is limited, `native_ids` a fresh
    native session id for agents that accept one. `resume_at_reset` is whether a session all of whose agents
    rest may go on by itself at the first reset, `agent_may_continue` whether an agent may by its own timer,
    and `quiet` when neither may. `return_mode` is what happens when a preferred agent can be
    had again: offer, auto or off. `zone` is the user's: the reasons they read tell moments in it.
    `context` is what is to be done when a context fills up, `draft_near_limit` whether an agent that is near
    a limit is asked for a handoff document. `spoilt` says by agent why the packet that waits for it cannot be
    used; whoever is not in it is given a packet that can be read, or one that is still to be made. `owner` is
    whose the legs begun now are.
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
        """Both, one after the other."""
        return Outcome(self.bodies + other.bodies, self.effects + other.effects)


NOTHING = Outcome()
