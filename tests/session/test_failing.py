"""An effect that breaks in the middle is told as what its outcome would have been."""

import pytest

from agent_relay.domain.effects import DeliverPacket, Effect, PublishPacket, SpawnLeg, StopLeg
from agent_relay.domain.inputs import DeliverFailed, Input, LegGone, PublishFailed
from agent_relay.session.decision import build_failure


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (SpawnLeg("L"), LegGone("L", "unstarted", why="it broke")),
        (PublishPacket("H"), PublishFailed("H", "it broke")),
        (DeliverPacket("H", "L"), DeliverFailed("H", "L", "it broke")),
        (StopLeg("L"), None),
    ],
)
def test_nobody_waits_for_an_effect_that_broke(effect: Effect, told: Input | None) -> None:
    """A session that waits for an answer nobody will give is stuck for ever."""
    assert build_failure(effect, "it broke") == told
