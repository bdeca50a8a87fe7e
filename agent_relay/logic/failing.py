"""What has to be told of an effect that cannot be performed, so that nobody waits for its outcome."""

from agent_relay.domain.effect import (
    DeliverFailed,
    DeliverPacket,
    DeliverTask,
    Effect,
    Happened,
    LegGone,
    PublishFailed,
    PublishPacket,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.session import Session, State


def build_failure(effect: Effect, why: str) -> Happened | None:
    """The happening that stands for `effect` having failed; `None` where nothing waits for it."""
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
    """Whether a session could not go on without `effect`, and no failure of it can be told."""
    return isinstance(effect, StopLeg | WakeAt)


def is_wanted(session: Session, effect: Effect) -> bool:
    """Whether `effect` is still to be performed as the session stands now, after a while of trying."""
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
