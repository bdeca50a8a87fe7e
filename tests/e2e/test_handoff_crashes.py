"""`kill -9` of the daemon at every line of a cancel, a retry and a verdict: old or new state, no repair."""

import contextlib

import pytest

from agent_relay.domain.errors import RelayError
from tests.support.at_work import has_taken_over
from tests.support.mute_agent import hand_over, is_at_rest, mutable_world, set_mute
from tests.support.relay_world import RelayWorld, is_stopped, kill, wait_until

CANCEL = ("handoff.cancelled", "StopLeg", "leg.ended", "session.rested")
RETRY = (
    "handoff.retried",
    "leg.starting",
    "SpawnLeg",
    "leg.started",
    "DeliverPacket",
    "handoff.delivered",
    "handoff.confirmed",
)
FAIL = ("handoff.closed", "handoff.begun", "StopLeg", "handoff.stopped", "packet.published", "leg.starting")


def points(names: tuple[str, ...]) -> list[str]:
    return [f"{side} {name}" for name in names for side in ("before", "after")]


def crash(world: RelayWorld, point: str, operation: str, **fields: object) -> None:
    """The daemon is killed at `point` of what it was asked for, and another one takes over."""
    world.kill_daemons()
    daemon = world.start_daemon(pause_at=point)
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request(operation, env=world.environ, limit_s=0.5, **fields)
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
    kill(daemon.pid)
    daemon.wait()
    world.start_daemon()


def names(world: RelayWorld, session: str) -> list[str]:
    return [event.body.name for event in world.events(session)]


@pytest.mark.parametrize("point", points(CANCEL))
def test_a_cancel_is_finished_or_was_never_begun(point: str) -> None:
    """The successor is not left alive beside a session that says it rests."""
    with mutable_world() as world:
        session, handoff = hand_over(world)
        crash(world, point, "handoff.cancel", session=session, handoff=handoff)
        if point == "before handoff.cancelled":
            assert world.session(session).handoff is not None
            world.ask("handoff.cancel", session=session, handoff=handoff)
        found = world.wait_for(session, is_at_rest, "the session rests")
        assert names(world, session).count("handoff.cancelled") == 1
        assert (found.packets, found.done) == (1, ())
        wait_until(
            lambda: not any("sleep 1000" in command for command in world.processes().values()),
            "the successor is gone",
        )


@pytest.mark.parametrize("point", points(RETRY))
def test_a_retry_is_finished_or_was_never_begun(point: str) -> None:
    """One successor, from the packet there was, whatever the daemon lived to write."""
    with mutable_world() as world:
        session, handoff = hand_over(world)
        world.ask("handoff.cancel", session=session, handoff=handoff)
        world.wait_for(session, is_at_rest, "the session rests")
        set_mute(world, mute=False)
        crash(world, point, "handoff.retry", session=session, handoff=handoff)
        if point == "before handoff.retried":
            assert is_at_rest(world.session(session))
            world.ask("handoff.retry", session=session, handoff=handoff, env=world.environ)
        found = world.wait_for(session, has_taken_over, "the understudy took over")
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["understudy"]
        assert (found.packets, found.done[0].id) == (1, handoff)
        assert names(world, session).count("handoff.retried") == 1


@pytest.mark.parametrize("point", points(FAIL))
def test_a_verdict_and_its_rollback_stand_together_or_not_at_all(point: str) -> None:
    """A failure that was written calls its rollback agent, be it by the next daemon."""
    with mutable_world() as world:
        set_mute(world, mute=False)
        session, handoff = hand_over(world, expect=["a door"], rollback="demo", question=["why?"])
        world.wait_for(session, has_taken_over, "the understudy took over")
        fields = {"session": session, "handoff": handoff, "verdict": "failed", "note": "no door"}
        crash(world, point, "handoff.close", **fields)
        if point == "before handoff.closed":
            assert world.session(session).closed == ()
            world.ask("handoff.close", env=world.environ, **fields)
        found = world.wait_for(session, lambda now: len(now.done) == 2, "the rollback agent took over")
        assert (found.closed, found.agent, found.done[1].rolls_back) == ((handoff,), "demo", handoff)
        assert [leg.agent for leg in found.legs if not leg.is_over] == ["demo"]
        assert names(world, session).count("handoff.closed") == 1
        assert found.packets == 2


@pytest.mark.parametrize("point", points(("handoff.closed",)))
def test_a_completion_is_written_or_not(point: str) -> None:
    """Nobody is moved by it, and it is not said twice."""
    with mutable_world() as world:
        set_mute(world, mute=False)
        session, handoff = hand_over(world, expect=["a door"])
        world.wait_for(session, has_taken_over, "the understudy took over")
        fields = {"session": session, "handoff": handoff, "verdict": "completed"}
        crash(world, point, "handoff.close", **fields)
        assert world.session(session).closed == ((handoff,) if point.startswith("after") else ())
        if point.startswith("before"):
            world.ask("handoff.close", env=world.environ, **fields)
        assert world.session(session).closed == (handoff,)
        assert world.session(session).agent == "understudy"
