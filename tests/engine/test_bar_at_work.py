"""The bar and holding back under a real daemon."""

import pytest

from tests.support.at_work import WorkingWorld
from tests.support.mute_agent import hand_over, is_at_rest, mutable_world
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")


@pytest.mark.size("test")
def test_the_bar_stands_between_two_agents_until_the_handoff_is_held_back() -> None:
    """A terminal without an agent has nothing else to show; a daemon that was killed leaves it there.

    One key on it holds back: nobody has to know the handoff's name.
    """
    with mutable_world() as world:
        session, handoff = hand_over(world)
        assert world.where(session, "bar") == [
            "relay: demo → understudy · on request · understudy is starting · Esc cancels",
            "demo → understudy · on request · understudy is starting · Esc cancels",
            "demo → understudy · understudy is starting · Esc cancels",
            "demo → understudy · understudy is starting",
            "demo→understudy starts",
            "→understudy starts",
        ]
        world.restart()
        wait_until(lambda: "understudy is starting" in str(world.where(session, "bar")), "the bar is back")
        answer = world.ask("session.hold_back", session=session)
        assert answer["held_back"] is True
        assert "demo has already ended; its packet is written. understudy is being stopped." in str(
            answer["message"]
        )
        assert f"agent-relay handoff retry {handoff}" in str(answer["message"])
        again = world.ask("session.hold_back", session=session)
        world.wait_for(session, is_at_rest, "it rests")
        assert again["held_back"] is False
        assert world.where(session, "bar") == []


def test_nothing_is_held_back_where_nothing_is_under_way(world: WorkingWorld) -> None:
    """The key was pressed a moment too late, and says so."""
    session = world.begin()
    answer = world.ask("session.hold_back", session=session)
    assert answer["held_back"] is False
    assert answer["message"] == "→ No handoff is under way any more."
    world.run_out(session)
    assert world.where(session, "bar") == []
