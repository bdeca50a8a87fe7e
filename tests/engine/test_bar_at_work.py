"""The bar and holding back under a real daemon."""

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import begin, has_taken_over, say
from tests.support.mute_agent import hand_over, is_at_rest, mutable_world, set_mute
from tests.support.relay_world import RelayWorld

pytestmark = pytest.mark.size("test")


def test_who_waits_between_two_agents_is_given_the_bar() -> None:
    """A terminal without an agent has nothing else to show."""
    with mutable_world() as world:
        session, _ = hand_over(world)
        assert world.ask("where", session=session)["bar"] == [
            "relay: demo → understudy · on request · understudy is starting · Esc cancels",
            "demo → understudy · on request · understudy is starting · Esc cancels",
            "demo → understudy · understudy is starting · Esc cancels",
            "demo → understudy · understudy is starting",
            "demo→understudy starts",
            "→understudy starts",
        ]
        set_mute(world, mute=False)


def test_a_handoff_is_held_back_and_the_session_rests() -> None:
    """One key on the bar: nobody has to know the handoff's name."""
    with mutable_world() as world:
        session, handoff = hand_over(world)
        answer = world.ask("session.hold_back", session=session)
        assert answer["held_back"] is True
        assert "demo has already ended; its packet is written. understudy is being stopped." in str(
            answer["message"]
        )
        assert f"agent-relay handoff retry {handoff}" in str(answer["message"])
        again = world.ask("session.hold_back", session=session)
        world.wait_for(session, is_at_rest, "it rests")
        assert again["held_back"] is False
        assert world.ask("where", session=session)["bar"] == []


def test_nothing_is_held_back_where_nothing_is_under_way(world: RelayWorld) -> None:
    """The key was pressed a moment too late, and says so."""
    session = begin(world)
    answer = world.ask("session.hold_back", session=session)
    assert answer["held_back"] is False
    assert answer["message"] == "→ No handoff is under way any more."
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")
    assert world.ask("where", session=session)["bar"] == []


def test_the_next_daemon_goes_on_with_the_bar() -> None:
    """A daemon that was killed leaves the person in front of a screen that says what is awaited."""
    with mutable_world() as world:
        session, _ = hand_over(world)
        world.kill_daemons()
        world.start_daemon()

        def is_back(found: Session) -> bool:
            return found.state is State.STARTING and "understudy is starting" in str(
                world.ask("where", session=session)["bar"]
            )

        world.wait_for(session, is_back, "the bar is there")
        set_mute(world, mute=False)
