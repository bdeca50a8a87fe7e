"""What has to be told of an effect that broke in the middle, so that nobody waits for its outcome."""

from agent_relay.domain.effect import (
    DeliverFailed,
    DeliverPacket,
    Effect,
    Happened,
    LegGone,
    PublishFailed,
    PublishPacket,
    SpawnLeg,
)


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
