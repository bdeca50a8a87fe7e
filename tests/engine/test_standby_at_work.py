"""The next agent is started ahead of a limit, unseen, and takes over as it is; nothing of it is left over."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.session import Leg, Session
from tests.support.at_work import SCENES, WorkingWorld, working_world
from tests.support.leg_client import ask_holder, read_screen
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

SLOWLY = {"when": "think", "do": [{"wait_s": 1.0}, {"say": "thought"}]}
MUCH = {"when": "much", "do": [{"used": 95}, {"say": "much is used"}]}
ANEW = {"when": "anew", "do": [{"used": 1, "resets_in_s": 90_000}, {"say": "it begins anew"}]}


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """Two scripted agents and a daemon, for a user who wants the next one ready."""
    with working_world(starts=False, demo=[SLOWLY, MUCH, ANEW, *SCENES]) as made:
        want_standby(made, wanted=True)
        yield made


def want_standby(world: WorkingWorld, *, wanted: bool, order: str = "") -> None:
    path = f"{world.folders.config}/config.toml"
    with open(path, encoding="utf-8") as file:
        order = order or file.readline()
    Path(path).write_text(f"{order}[handoff]\nstandby = {'true' if wanted else 'false'}\n", "utf-8")


def is_ready(session: Session) -> bool:
    return session.standby is not None and session.standby.leg.was_ready and session.standby.leg.child_pid > 0


def stand_by(world: WorkingWorld, **wish: object) -> tuple[str, Session]:
    """A session near its limit, whose next agent waits for a prompt."""
    session = world.begin(**wish)
    world.say(session, "near")
    return session, world.wait_for(session, is_ready, "the next agent is ready")


def leg_of(session: Session) -> str:
    assert session.standby is not None
    return session.standby.leg.id


def ends(world: WorkingWorld, session: str, leg: str) -> None:
    """The standby goes, with its processes and its folder, and the journal says so."""
    world.wait_for(session, lambda found: found.standby is None, "the standby has ended")
    wait_until(lambda: not os.path.exists(f"{world.folders.legs}/{leg}"), "its folder is removed")
    assert not any("understudy" in command for command in world.find_agents())


def take_over(world: WorkingWorld, session: str) -> Leg:
    """The leg that took over at the limit."""
    leg = world.run_out(session).leg
    assert leg is not None
    return leg


@pytest.mark.size("test")
def test_the_agent_that_was_started_ahead_takes_over_as_it_is(world: WorkingWorld) -> None:
    """It has the size of the user's screen, was asked nothing, and gets its packet like any successor."""
    session, found = stand_by(world)
    leg = leg_of(found)
    folder = f"{world.folders.legs}/{leg}"
    status = ask_holder(folder, "status")
    assert (status["rows"], status["cols"], status["attached"], status["typed"]) == (30, 100, 0, 0)
    assert (found.agent, [one.id for one in found.legs].count(leg), found.generation) == ("demo", 0, 1)
    assert world.where(session, "leg") != leg
    after = world.run_out(session)
    assert after.leg is not None
    assert after.standby is None
    assert (after.leg.id, after.leg.child_pid, after.generation) == (leg, found.all_legs[-1].child_pid, 2)
    assert [name for name in world.names(session) if name.startswith("standby.")] == [
        "standby.starting",
        "standby.started",
        "standby.ready",
    ]
    wait_until(lambda: "I have read what was handed over." in read_screen(folder), "it works on its packet")
    assert world.ask("session.stop", session=session)["state"] in {"stopping", "ended"}


def test_it_ends_with_its_session_and_where_its_user_wants_none_any_more(world: WorkingWorld) -> None:
    """Nobody would ever see it again, and it takes the memory of an agent at work."""
    session, found = stand_by(world)
    world.stop(session)
    ends(world, session, leg_of(found))
    session, found = stand_by(world, new=True)
    want_standby(world, wanted=False)
    world.say(session, "think")
    ends(world, session, leg_of(found))
    assert world.session(session).agent == "demo"
    session = world.begin(new=True)
    world.say(session, "near")
    world.wait_for(session, lambda found: bool(found.saved), "a packet is drafted")
    assert world.session(session).standby is None


def test_it_ends_where_the_window_begins_anew(world: WorkingWorld) -> None:
    """The limit it was started for will not come."""
    folder = add_adapter(world, "own")
    rules = Path(f"{folder}/rules.toml").read_text("utf-8")
    Path(f"{folder}/rules.toml").write_text(
        rules.replace('minutes = "minutes"\n', 'minutes = "minutes"\nnear_percent = 90\n'), "utf-8"
    )
    want_standby(world, wanted=True, order='order = ["own", "understudy"]\n')
    world.restart()
    session = world.begin("own")
    world.say(session, "much")
    found = world.wait_for(session, is_ready, "the next agent is ready")
    world.say(session, "anew")
    ends(world, session, leg_of(found))
    dropped = [event.body for event in world.events(session) if event.body.name == "standby.dropped"]
    assert [getattr(body, "why", "") for body in dropped] == ["own is no longer near a limit"]


@pytest.mark.parametrize("victim", ["child_pid", "holder_pid"])
def test_one_that_dies_is_replaced_by_a_cold_start(world: WorkingWorld, victim: str) -> None:
    """Nothing was lost with it."""
    session, found = stand_by(world)
    os.kill(getattr(found.all_legs[-1], victim), signal.SIGKILL)
    ends(world, session, leg_of(found))
    assert take_over(world, session).id != leg_of(found)


def test_a_new_daemon_finds_it_and_it_takes_over(world: WorkingWorld) -> None:
    """The daemon may be killed or replaced at any time."""
    session, found = stand_by(world)
    world.restart()
    world.finish_turn(session)
    leg = take_over(world, session)
    assert (leg.id, leg.child_pid) == (leg_of(found), found.all_legs[-1].child_pid)


def test_nothing_of_it_is_left_where_daemon_and_holder_are_killed(world: WorkingWorld) -> None:
    """The next daemon ends what descends from nobody."""
    session, found = stand_by(world)
    world.kill_daemons()
    os.kill(found.all_legs[-1].holder_pid, signal.SIGKILL)
    world.start_daemon()
    ends(world, session, leg_of(found))


@pytest.mark.parametrize(
    "place",
    ["after standby.starting", "before standby.started", "after leg.starting", "before leg.started"],
)
def test_a_daemon_that_is_killed_at_any_step_leaves_one_successor(world: WorkingWorld, place: str) -> None:
    """Neither is a standby orphaned, nor do two agents ever own the tree."""
    session = world.begin()
    daemon = world.freeze_at(place)
    world.say(session, "near")
    if "leg." in place:
        world.wait_for(session, is_ready, "the next agent is ready")
        world.say(session, "out")
    world.wait_frozen(daemon)
    world.restart()
    if "leg." not in place:
        world.say(session, "out")
    after = world.wait_handed_over(session)
    standing = [command for command in world.find_agents() if "--name understudy" in command]
    assert len(standing) == 1
    assert [leg.id for leg in after.legs if not leg.is_over] == [after.legs[-1].id]
    world.ask("session.stop", session=session)
    wait_until(lambda: not world.find_agents(), "no agent lives")


def test_a_daemon_killed_while_it_drops_one_leaves_nothing_of_it(world: WorkingWorld) -> None:
    """Also where the session ended meanwhile: nobody would look for it again."""
    session, found = stand_by(world)
    daemon = world.freeze_at("after session.ended")
    world.ask("session.stop", session=session)
    world.wait_frozen(daemon)
    world.restart()
    wait_until(lambda: not world.find_agents(), "no agent lives")
    folder = f"{world.folders.legs}/{leg_of(found)}"
    wait_until(lambda: not os.path.exists(folder), "its folder is removed")
