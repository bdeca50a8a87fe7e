"""What the daemon tells onlookers: the screen of whoever works, when it changes, and nothing twice."""

import threading
from collections.abc import Iterator

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.protocol.watch_output import LiveSession, parse_live
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")


@pytest.fixture(scope="module")
def world() -> Iterator[WorkingWorld]:
    """A machine with two scripted agents and a daemon."""
    with working_world() as made:
        yield made


@pytest.fixture(scope="module")
def session(world: WorkingWorld) -> str:
    """A session whose agent is ready."""
    return world.begin()


def look(world: WorkingWorld, **fields: object) -> tuple[list[LiveSession], int]:
    """What changed, and the change up to which that is."""
    answer = world.ask("watch.follow", **fields)
    told, seen = answer["sessions"], answer["seen"]
    assert isinstance(told, list)
    assert isinstance(seen, int)
    return [parse_live(one) for one in told], seen


def find_quiet(world: WorkingWorld) -> int:
    """The newest change once nothing changes any more."""
    beats = [0, -1]
    wait_until(lambda: beats.append(look(world)[1]) or beats[-1] == beats[-2], "nothing changes")
    return beats[-1]


@pytest.mark.size("test")
def test_a_session_at_work_is_told_with_its_screen(world: WorkingWorld, session: str) -> None:
    """What the agent shows is the first thing a watcher looks for."""
    wait_until(lambda: any("ready | demo" in row for row in look(world)[0][0].rows), "the screen is told")

    def is_told_whole() -> bool:
        # A line can be read before the daemon tells of it.
        return look(world, session=session, root=world.project)[0][0].number == world.session(session).number

    wait_until(is_told_whole, "the newest line is told of")
    (live,), _ = look(world, session=session, root=world.project)
    assert live.session == session
    assert live.leg == world.session(session).legs[-1].id


def test_what_was_told_is_not_told_again(world: WorkingWorld, session: str) -> None:
    """A watcher of an idle session costs nothing."""
    wait_until(lambda: look(world, seen=(seen := find_quiet(world))) == ([], seen), "nothing is told")
    seen = find_quiet(world)
    world.say(session, "hello")
    told, later = look(world, seen=seen, wait=True)
    assert [live.session for live in told] == [session]
    assert later > seen


def test_a_patient_onlooker_is_answered_when_something_happens(world: WorkingWorld, session: str) -> None:
    """Asking in circles would cost more than the answer."""
    seen = find_quiet(world)
    heard: list[tuple[list[LiveSession], int]] = []
    waiting = threading.Thread(target=lambda: heard.append(look(world, seen=seen, wait=True)))
    waiting.start()
    world.say(session, "hello again")
    waiting.join(120)
    assert [live.session for live in heard[0][0]] == [session]


def test_other_working_trees_and_sessions_are_not_told(world: WorkingWorld, session: str) -> None:
    """Who watches one repository is not woken by all the others."""
    assert look(world, root="/nowhere")[0] == []
    assert look(world, session=f"{session[:-1]}?")[0] == []


def test_a_place_that_is_none_is_refused(world: WorkingWorld) -> None:
    """A client's mistake is told to it."""
    with pytest.raises(WrongUseError):
        world.ask("watch.follow", seen="x")
