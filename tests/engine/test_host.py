"""The host of a session: in turn, journal first, and never deaf."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.effects import NoteRest, StopLeg
from agent_relay.domain.errors import RelayError, StaleOwnerError
from agent_relay.domain.events.session import LegNamed, SessionEnded, SessionStopping
from agent_relay.domain.inputs import HandoffAsked, LegGone, SignalFound, StateSeen, StopAsked
from agent_relay.domain.state import State
from agent_relay.engine.sessions.commands import await_start
from agent_relay.session.decision import Outcome
from agent_relay.session.handoffs import begin_leg
from tests.support.scripted_host import (
    LIMIT,
    Disk,
    Scene,
    begin,
    find_pid,
    leg_of,
    make_handoff,
    play,
    played,
)

if TYPE_CHECKING:
    from agent_relay.engine.sessions.registry import SessionRegistry


@pytest.mark.parametrize("line", ["signal.seen", "handoff.begun"])
@played
async def test_a_disk_that_is_full_for_a_while_delays_a_failover_and_loses_nothing(
    scene: Scene, line: str
) -> None:
    """Half an outcome journalled, then decided anew, would strand a limited session."""
    scene.disk.refuses = lambda body: body.name == line
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    await scene.until(lambda: bool(scene.host.trouble), "the trouble is known")
    assert "No space left on device" in scene.host.trouble
    assert scene.effects == []
    scene.disk.refuses = lambda _body: False
    await scene.calm()
    assert scene.session.state is State.HANDING_OFF
    assert [type(effect) for effect in scene.effects] == [NoteRest, StopLeg]
    assert scene.host.trouble == ""


@pytest.mark.parametrize("line", ["leg.ended", "handoff.stopped", "packet.published", "leg.starting"])
@played
async def test_a_full_disk_at_any_line_of_the_saga_leads_on_to_the_successor(scene: Scene, line: str) -> None:
    """The predecessor is gone by then: whoever forgot the next step would strand the user."""
    scene.perform = make_handoff
    scene.disk.refuses = lambda body: body.name == line
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    await scene.until(lambda: bool(scene.host.trouble), "the trouble is known")
    scene.disk.refuses = lambda _body: False
    await scene.until(lambda: find_pid(scene) == 21, "the successor runs")
    assert scene.session.agent == "bob"


@played
async def test_what_was_told_while_the_disk_refused_follows_in_its_order(scene: Scene) -> None:
    """An end that overtakes the limit before it would read as the user's own."""
    scene.disk.refuses = lambda _body: True
    leg = leg_of(scene)
    scene.host.tell(SignalFound(leg, LIMIT))
    scene.host.tell(LegGone(leg, "exited"))
    await scene.until(lambda: bool(scene.host.trouble), "the trouble is known")
    scene.disk.refuses = lambda _body: False
    await scene.calm()
    assert scene.disk.names()[-4:] == ["signal.seen", "handoff.begun", "leg.ended", "handoff.stopped"]


@played
async def test_who_asks_while_the_disk_refuses_is_told_so_at_once(scene: Scene) -> None:
    """A command that hangs until somebody frees the disk tells its user nothing."""
    scene.disk.refuses = lambda _body: True
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    waiting = asyncio.ensure_future(scene.host.ask(HandoffAsked("cas")))
    with pytest.raises(RelayError, match="No space left on device"):
        await waiting
    with pytest.raises(RelayError, match="No space left on device"):
        await scene.host.ask(HandoffAsked("cas"))
    scene.disk.refuses = lambda _body: False
    await scene.calm()
    assert scene.session.handoff is not None
    assert scene.session.handoff.to_agent == "bob"


@played(retry_s=3600)
async def test_who_asks_once_there_is_room_again_is_not_refused(scene: Scene) -> None:
    """The disk was freed to get this very command through; a reason of before is no reason any more."""
    scene.disk.refuses = lambda _body: True
    scene.host.tell(LegGone(leg_of(scene), "exited"))
    await scene.until(lambda: bool(scene.host.refusal), "the disk refuses")
    scene.disk.refuses = lambda _body: False
    await scene.host.ask(StopAsked("stopped by hand"))
    assert scene.session.state is State.ENDED


@played(retry_s=3600)
async def test_who_asks_once_the_machine_can_be_read_again_is_not_refused(scene: Scene) -> None:
    """What was told waits until it can be decided; who asks meanwhile has it looked at again at once."""
    scene.can_see = False
    scene.host.tell(LegGone(leg_of(scene), "exited"))
    await scene.until(lambda: bool(scene.host.refusal), "the machine cannot be read")
    scene.can_see = True
    await scene.host.ask(StopAsked("stopped by hand"))
    assert scene.session.state is State.ENDED


@played
async def test_what_was_asked_for_and_refused_at_its_first_line_has_not_begun(scene: Scene) -> None:
    """The user saw an error; a handoff minutes later would be a surprise."""
    scene.disk.refuses = lambda _body: True
    with pytest.raises(RelayError, match="No space left on device"):
        await scene.host.ask(HandoffAsked("bob"))
    scene.disk.refuses = lambda _body: False
    await scene.calm()
    assert scene.session.handoff is None
    assert scene.session.state is State.READY


@played
async def test_what_was_asked_for_and_begun_is_finished_though_the_asker_has_an_error(scene: Scene) -> None:
    """The journal says that it began; only its end brings the session back to a state people know."""
    scene.disk.refuses = lambda body: body.name == "session.stopping"
    with pytest.raises(RelayError, match="No space left"):
        await scene.host.ask(Outcome((LegNamed(leg_of(scene), "n"), SessionStopping("x"))))
    scene.disk.refuses = lambda _body: False
    await scene.calm()
    assert scene.disk.names()[-2:] == ["leg.named", "session.stopping"]


@played
async def test_a_mistake_in_deciding_is_reported_and_the_next_happening_is_heard(scene: Scene) -> None:
    """An impossible event is loud, and only once."""
    with pytest.raises(AssertionError):
        await scene.host.ask(Outcome((SessionEnded("from ready: impossible"),)))
    assert len(scene.reports) == 1
    assert "crash report" in scene.host.trouble
    scene.host.tell(StateSeen(leg_of(scene), "busy"))
    await scene.calm()
    assert scene.session.state is State.BUSY
    assert scene.host.trouble == ""


@played
async def test_happenings_that_change_nothing_leave_the_trouble_to_be_read(scene: Scene) -> None:
    """A screen that is read ten times a second must not wipe the line that says what is wrong."""
    scene.host.tell(HandoffAsked("nobody"))
    await scene.calm()
    why = scene.host.trouble
    assert "nobody" in why
    scene.host.tell(StateSeen(leg_of(scene), "ready"))
    await scene.calm()
    assert scene.host.trouble == why


@played
async def test_a_stale_owner_gives_up_at_once(scene: Scene) -> None:
    """Somebody else owns the session; trying again would fight over it."""

    def stale(_body: object) -> bool:
        raise StaleOwnerError("another generation owns the session")

    scene.disk.refuses = stale
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    await scene.calm()
    assert scene.host.trouble == "another generation owns the session"
    assert scene.effects == []


@pytest.mark.size("test")
def test_closing_ends_waits_for_the_disk_and_refuses_who_still_asks() -> None:
    """A daemon that stops must not wait for a disk that never recovers."""
    scene = Scene()

    async def script(scene: Scene) -> None:
        await begin(scene)
        scene.disk.refuses = lambda _body: True
        scene.host.tell(SignalFound(leg_of(scene), LIMIT))
        await scene.until(lambda: bool(scene.host.trouble), "the trouble is known")

    play(scene, script)
    assert scene.disk.is_closed
    with pytest.raises(RelayError, match="not at work any more"):
        asyncio.run(scene.host.ask(HandoffAsked("bob")))


def test_a_journal_that_does_not_begin_with_a_session_is_refused() -> None:
    """A host without a session could not decide anything."""
    disk = Disk()
    disk.events.clear()
    with pytest.raises(RelayError, match="does not begin with a session"):
        Scene(disk)


@played
async def test_who_looks_is_told_all_that_the_journal_shows(scene: Scene) -> None:
    """A line is read by `status` before the disk has said that it is safe: the daemon must not know less."""
    scene.disk.answers.clear()
    scene.host.tell(StateSeen(leg_of(scene), "busy"))
    await scene.until(lambda: scene.session.state is State.BUSY, "the line can be read")
    looking = asyncio.ensure_future(scene.host.look())
    await asyncio.sleep(0)
    scene.disk.answers.set()
    assert (await looking).state is State.BUSY


@pytest.mark.size("test")
@played
async def test_who_looks_while_a_disk_hangs_is_told_what_was_known_before(scene: Scene) -> None:
    """A command that waits for a dead disk tells its user nothing at all."""
    scene.disk.answers.clear()
    scene.host.tell(StateSeen(leg_of(scene), "busy"))
    await scene.until(lambda: scene.session.state is State.BUSY, "the line can be read")
    assert (await scene.host.look()).state is State.READY
    scene.disk.answers.set()
    await scene.calm()
    assert (await scene.host.look()).state is State.BUSY


@played(begins=False)
async def test_a_journals_lines_wait_for_no_other_work_of_the_daemon(scene: Scene) -> None:
    """A git that hangs in as many sessions as there are threads would hold back the lines of all."""
    may = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    hanging = asyncio.ensure_future(asyncio.to_thread(may.wait, 60))
    try:
        async with asyncio.timeout(20):
            await begin(scene)
        assert not hanging.done()
    finally:
        may.set()
    assert await hanging
    assert scene.disk.names()[-1] == "leg.ready"


@played(begins=False)
async def test_a_start_that_failed_is_told_with_its_reason_although_somebody_looks_between_two_lines(
    scene: Scene,
) -> None:
    """The end of the leg is journalled before why: others' changes wake whoever waits for the start."""
    looked = threading.Event()
    host = scene.host
    await host.ask(begin_leg(host.session, "ann", await scene.build_context(host.session)))
    scene.disk.refuses = lambda body: body.name == "session.ended" and not looked.wait(60)
    registry = cast("SessionRegistry", SimpleNamespace(changes=host.changes))
    waiting = asyncio.create_task(await_start(registry, host))
    host.tell(LegGone(leg_of(scene), "unstarted", why="ann cannot be started: no such file"))
    await scene.until(lambda: "leg.ended" in scene.disk.names(), "half of the end is journalled")
    for _ in range(10):
        host.changes.notify()
        await asyncio.sleep(0.005)
    looked.set()
    with pytest.raises(RelayError, match="ann cannot be started: no such file"):
        await waiting


@played
async def test_a_started_agent_waits_for_no_check_whether_a_successor_could_be_started(scene: Scene) -> None:
    """The check starts a program, while a person looks at a terminal that is still empty."""
    start, state = scene.may_stop[-2:]
    assert not start
    assert state
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    await scene.calm()
    assert scene.may_stop[-1]
