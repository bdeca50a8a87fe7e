"""Effects that cannot be performed: tried again or told, and whoever stops the session always can."""

import errno
from collections.abc import Callable
from datetime import timedelta
from typing import get_args

import pytest

from agent_relay.domain.effects import (
    AwaitQuiet,
    CancelContinue,
    Compact,
    DeliverPacket,
    DeliverTask,
    Draft,
    DraftPacket,
    Effect,
    PublishPacket,
    ShowMessage,
    SpawnLeg,
    StopLeg,
    TellContext,
    WakeAt,
)
from agent_relay.domain.inputs import Input, LegGone, SignalFound, StateSeen, StopAsked
from agent_relay.domain.state import State
from agent_relay.session.decision import Outcome
from tests.support.scripted_host import LIMIT, NOW, Scene, find_pid, leg_of, make_handoff, played

KINDS: tuple[type[Effect], ...] = get_args(Effect)
FAILURES: dict[str, Callable[[], Exception]] = {
    "descriptors": lambda: OSError(errno.EMFILE, "Too many open files"),
    "room": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "bug": lambda: KeyError("our bug"),
}
SAID = {
    "descriptors": "Too many open files",
    "room": "No space left on device",
    "bug": "a crash report was written",
}
BESIDE: dict[type[Effect], Callable[[str], Effect]] = {
    DeliverTask: DeliverTask,
    ShowMessage: ShowMessage,
    Draft: Draft,
    DraftPacket: lambda leg: DraftPacket(leg, "bob"),
    AwaitQuiet: AwaitQuiet,
    Compact: Compact,
    TellContext: TellContext,
    WakeAt: lambda _leg: WakeAt(NOW + timedelta(hours=1)),
    CancelContinue: lambda leg: CancelContinue(leg, NOW + timedelta(hours=1)),
}
"""Effects no failover has; whatever asked for them, they are performed beside it."""


class Broken:
    """Performs everything; effects of one kind fail while `is_broken`."""

    def __init__(self, kind: type[Effect], failure: Callable[[], Exception]) -> None:
        self.kind = kind
        self.failure = failure
        self.tries = 0
        self.is_broken = True

    async def perform(self, effect: Effect) -> Input | None:
        if isinstance(effect, self.kind):
            self.tries += 1
            if self.is_broken:
                raise self.failure()
        return await make_handoff(effect)


async def fail_over(scene: Scene, broken: Broken) -> None:
    """A failover during which the effect is performed, and fails, for the first time."""
    scene.perform = broken.perform
    beside = BESIDE.get(broken.kind)
    if beside is not None:
        scene.host.tell(Outcome((), (beside(leg_of(scene)),)))
        await scene.until(lambda: broken.tries > 0, "it was tried")
    else:
        scene.host.tell(SignalFound(leg_of(scene), LIMIT))
        await scene.until(
            lambda: broken.tries > 0 or find_pid(scene) == 21, "it was tried, or is about to be"
        )
        if not broken.tries:
            scene.host.tell(StateSeen(leg_of(scene), "ready"))
        await scene.until(lambda: broken.tries > 0, "it was tried")


async def fail_until_told(scene: Scene, kind: type[Effect], failure: str) -> Broken:
    """The effect failed during a failover, and the user was told; whoever performs it now can mend it."""
    broken = Broken(kind, FAILURES[failure])
    await fail_over(scene, broken)
    await scene.until(lambda: is_told(scene, SAID[failure]), "the user is told")
    return broken


async def stop(scene: Scene) -> None:
    """The session ends because somebody asked for it."""
    if scene.session.state is not State.ENDED:
        await scene.host.ask(StopAsked("stopped by hand"))
    await scene.until(lambda: scene.session.state is State.ENDED, "the session has ended")


def is_told(scene: Scene, words: str) -> bool:
    """Whether the user was told, in the session's own words or as its trouble."""
    said = [scene.session.failure, scene.session.why, *scene.session.skipped, *scene.troubles]
    return any(words in text for text in said)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    ("kind", "heals"),
    [(kind, heals) for kind in KINDS for heals in (True, False) if heals or kind is not StopLeg],
)
@played
async def test_whatever_effect_fails_the_user_is_told_and_can_stop(
    scene: Scene,
    kind: type[Effect],
    heals: bool,  # noqa: FBT001 - a table's column
    failure: str,
) -> None:
    """Five seconds without a descriptor left sessions handing over for ever, which nobody could stop.

    A machine that stays as it is must at least give its user their session back.
    """
    broken = await fail_until_told(scene, kind, failure)
    broken.is_broken = not heals
    await stop(scene)
    # A mistake of ours is reported once for each effect; what this machine lacks is no mistake.
    assert bool(scene.reports) == (failure == "bug")


_TIMES_TRIED = 9
"""How often an effect is tried for half a minute."""


@pytest.mark.size("test")
@pytest.mark.parametrize(
    ("kind", "failure", "tries"),
    [
        *((kind, "descriptors", 3) for kind in (StopLeg, PublishPacket, SpawnLeg, DeliverPacket)),
        *((kind, "room", _TIMES_TRIED + 2) for kind in (PublishPacket, SpawnLeg)),
    ],
)
@played
async def test_a_failover_that_lacked_something_for_a_while_is_made(
    scene: Scene, kind: type[Effect], failure: str, tries: int
) -> None:
    """It must not cost the user a successor, nor end their session: descriptors come back, room is made.

    A full disk lasts until somebody makes room, and the predecessor is stopped by then.
    """
    broken = Broken(kind, FAILURES[failure])
    await fail_over(scene, broken)
    await scene.until(lambda: broken.tries >= tries, "it was tried again")
    assert SAID[failure] in scene.host.trouble
    broken.is_broken = False
    await scene.until(lambda: find_pid(scene) == 21, "the successor runs")
    scene.host.tell(StateSeen(leg_of(scene), "ready"))
    await scene.until(lambda: "handoff.delivered" in scene.disk.names(), "it has its packet")
    # The line stands in the journal before the host knows that the disk has taken it.
    await scene.calm()
    assert (scene.session.agent, scene.host.trouble) == ("bob", "")


@pytest.mark.parametrize("failure", FAILURES)
@played
async def test_what_was_told_while_nothing_could_be_decided_is_not_lost(scene: Scene, failure: str) -> None:
    """The end of an agent is told once: dropped, its session would wait for it for ever."""
    scene.can_see = False
    scene.failure = FAILURES[failure]
    scene.host.tell(LegGone(leg_of(scene), "exited", 0))
    await scene.until(lambda: is_told(scene, SAID[failure]), "the user is told")
    scene.can_see = True
    await scene.until(lambda: scene.session.state is State.ENDED, "its end was heard")
    assert len(scene.reports) == (1 if failure == "bug" else 0)


@played
async def test_a_session_can_be_stopped_while_nothing_can_be_decided(scene: Scene) -> None:
    """To end it nobody has to know who could take over."""
    whole = Broken(StopLeg, FAILURES["bug"])
    whole.is_broken = False
    scene.perform = whole.perform
    scene.can_see = False
    scene.failure = FAILURES["descriptors"]
    await stop(scene)


@pytest.mark.parametrize(
    ("kind", "last"),
    [(StopLeg, "handoff.stopped"), (PublishPacket, "session.ended"), (SpawnLeg, "handoff.stopped")],
)
@played
async def test_an_effect_that_breaks_inside_relay_is_reported_and_answered(
    scene: Scene, kind: type[Effect], last: str
) -> None:
    """A bug of ours costs a crash report, not a session that waits for ever."""
    broken = 0

    async def answer(effect: Effect) -> Input | None:
        nonlocal broken
        if isinstance(effect, kind) and not broken:
            broken += 1
            raise KeyError("our bug")
        is_performed = isinstance(effect, StopLeg) or kind is PublishPacket or not broken
        return await make_handoff(effect) if is_performed and not isinstance(effect, SpawnLeg) else None

    scene.perform = answer
    scene.host.tell(SignalFound(leg_of(scene), LIMIT))
    # A line may be the last one before the effect is tried at all, and what must be done is tried again.
    await scene.until(lambda: bool(scene.reports), "our mistake is reported")
    await scene.until(lambda: scene.disk.names()[-1] == last, f"the last line is {last}")
    await scene.calm()
    assert scene.disk.names()[-1] == last
    assert len(scene.reports) == 1


@played
async def test_a_delivery_that_breaks_inside_relay_leaves_the_successor_in_charge(scene: Scene) -> None:
    """The agent lives; the user can give it the packet by hand."""
    await fail_over(scene, Broken(DeliverPacket, FAILURES["bug"]))
    await scene.until(lambda: bool(scene.session.failure), "the failure is journalled")
    assert scene.session.state is State.READY
    assert "crash report" in scene.session.failure
