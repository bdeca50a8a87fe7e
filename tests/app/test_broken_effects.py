"""Effects that break inside relay: reported once, answered always."""

import pytest

from agent_relay.domain.effect import (
    DeliverPacket,
    Effect,
    Happened,
    Heard,
    LegGone,
    Published,
    PublishPacket,
    ScreenSays,
    Spawned,
    SpawnLeg,
    StopLeg,
)
from agent_relay.domain.session import State
from tests.support.scripted_host import LIMIT, Scene, begin, find_pid, leg_of, play


@pytest.mark.parametrize(
    ("kind", "last"),
    [(StopLeg, "handoff.begun"), (PublishPacket, "session.ended"), (SpawnLeg, "handoff.stopped")],
)
def test_an_effect_that_breaks_inside_relay_is_reported_and_answered(kind: type[Effect], last: str) -> None:
    """A bug of ours costs a crash report, not a session that waits for ever."""
    broken = 0

    async def answer(effect: Effect) -> Happened | None:
        nonlocal broken
        if isinstance(effect, kind) and not broken:
            broken += 1
            raise KeyError("our bug")
        match effect:
            case StopLeg(leg):
                return LegGone(leg, "stopped")
            case PublishPacket(handoff) if kind is PublishPacket or not broken:
                return Published(handoff, "P", 1, "1.json", "1.md", "f")
            case _:
                return None

    async def script(scene: Scene) -> None:
        await begin(scene)
        scene.perform = answer
        scene.host.tell(Heard(leg_of(scene), LIMIT))
        await scene.until(lambda: bool(scene.reports) and scene.host.is_idle, "it was reported")
        assert scene.disk.names()[-1] == last
        assert len(scene.reports) == 1

    play(Scene(), script)


def test_a_delivery_that_breaks_inside_relay_leaves_the_successor_in_charge() -> None:
    """The agent lives; the user can give it the packet by hand."""

    async def answer(effect: Effect) -> Happened | None:
        match effect:
            case StopLeg(leg):
                return LegGone(leg, "stopped")
            case PublishPacket(handoff):
                return Published(handoff, "P", 1, "1.json", "1.md", "f")
            case SpawnLeg(leg):
                return Spawned(leg, 20, 21, 22)
            case DeliverPacket():
                raise KeyError("our bug")
            case _:
                return None

    async def script(scene: Scene) -> None:
        await begin(scene)
        scene.perform = answer
        scene.host.tell(Heard(leg_of(scene), LIMIT))
        await scene.until(lambda: find_pid(scene) == 21, "the successor runs")
        scene.host.tell(ScreenSays(leg_of(scene), "ready"))
        await scene.until(lambda: bool(scene.session.failure), "the failure is journalled")
        assert scene.session.state is State.READY
        assert "crash report" in scene.session.failure

    play(Scene(), script)
