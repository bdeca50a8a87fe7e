"""`kill -9` of the daemon in a cancel, a retry and a verdict: the next one finishes what was written.

What follows from each line is told by tests/session/test_intervention.py, test_verdicts.py and
test_waiting_rollbacks.py.
"""

import pytest

from tests.support.at_work import has_taken_over
from tests.support.crashes import crash
from tests.support.mute_agent import hand_over, is_at_rest, mutable_world, set_mute
from tests.support.relay_world import wait_until


@pytest.mark.parametrize("point", ["after handoff.cancelled", "after StopLeg"])
def test_a_cancel_that_was_begun_is_finished(point: str) -> None:
    """The successor is not left alive beside a session that says it rests."""
    with mutable_world() as world:
        session, handoff = hand_over(world)
        crash(world, point, "handoff.cancel", session=session, handoff=handoff)
        found = world.wait_for(session, is_at_rest, "the session rests")
        assert world.names(session).count("handoff.cancelled") == 1
        assert (found.packets, found.done) == (1, ())
        wait_until(
            lambda: not any("sleep 1000" in command for command in world.processes().values()),
            "the successor is gone",
        )


@pytest.mark.parametrize("point", ["after handoff.retried", "after SpawnLeg"])
def test_a_retry_that_was_begun_is_finished(point: str) -> None:
    """One successor, from the packet there was, whatever the daemon lived to write."""
    with mutable_world() as world:
        session, handoff = hand_over(world)
        world.ask("handoff.cancel", session=session, handoff=handoff)
        world.wait_for(session, is_at_rest, "the session rests")
        set_mute(world, mute=False)
        crash(world, point, "handoff.retry", session=session, handoff=handoff, env=world.environ)
        found = world.wait_for(session, has_taken_over, "the understudy took over")
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
        assert (found.packets, found.done[0].id) == (1, handoff)
        assert world.names(session).count("handoff.retried") == 1


@pytest.mark.parametrize("point", ["before handoff.closed", "after handoff.begun"])
def test_a_verdict_and_its_rollback_stand_together_or_not_at_all(point: str) -> None:
    """A failure that was written calls its rollback agent, be it by the next daemon."""
    with mutable_world() as world:
        set_mute(world, mute=False)
        session, handoff = hand_over(world, expect=["a door"], rollback="demo", question=["why?"])
        world.wait_for(session, has_taken_over, "the understudy took over")
        verdict = {"session": session, "handoff": handoff, "verdict": "failed", "note": "no door"}
        crash(world, point, "handoff.close", env=world.environ, **verdict)
        if point == "before handoff.closed":
            assert world.session(session).closed == ()
            world.ask("handoff.close", env=world.environ, **verdict)
        found = world.wait_for(session, lambda now: len(now.done) == 2, "the rollback agent took over")
        assert (found.closed, found.agent, found.done[1].rolls_back) == ((handoff,), "demo", handoff)
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["demo"]
        assert world.names(session).count("handoff.closed") == 1
        assert found.packets == 2
