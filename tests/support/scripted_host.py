"""A host whose disk, clock, world and effects are the test's own."""

import asyncio
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Concatenate, ParamSpec, cast

from agent_relay.domain.effects import DeliverPacket, Effect, PublishPacket, SpawnLeg, StopLeg
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body, Event, SessionCreated
from agent_relay.domain.inputs import Delivered, Input, LegGone, Published, Spawned, StateSeen
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.session import Session
from agent_relay.domain.values import AgentName
from agent_relay.engine.sessions.host import Host
from agent_relay.session.decision import Availability, DecisionContext
from agent_relay.session.fold import fold_events
from agent_relay.session.handoffs import begin_leg

if TYPE_CHECKING:
    from agent_relay.engine._effect_runner import EffectRunner
    from agent_relay.engine.services import Services

P = ParamSpec("P")
NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
ROSTER = ("ann", "bob", "cas")


class Disk:
    """A journal in memory that refuses the lines it is told to: by name, or all of them.

    Without `answers` it has taken a line, which others can read, and does not say so yet.
    """

    def __init__(self, *bodies: Body) -> None:
        self.path = "/nowhere/journal.jsonl"
        self.events: list[Event] = []
        self.refuses: Callable[[Body], bool] = lambda _body: False
        self.is_closed = False
        self.answers = threading.Event()
        self.answers.set()
        for body in bodies or (SessionCreated("S", "/r", "/r", ROSTER),):
            self.append(body, at=NOW, generation=0, durable=True)

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        assert isinstance(durable, bool)
        if self.refuses(body):
            raise RelayError(f"cannot write {self.path}: No space left on device")
        event = Event(len(self.events) + 1, at, generation, body)
        self.events.append(event)
        assert self.answers.wait(60)
        return event

    def close(self) -> None:
        self.is_closed = True

    def names(self) -> list[str]:
        return [event.body.name for event in self.events]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - NOW).total_seconds()


class Scene:
    """One host at work on a disk; its effects are kept and answered by `perform`."""

    def __init__(self, disk: Disk | None = None, *, retry_s: float = 0.01) -> None:
        self.disk = disk or Disk()
        self.clock = Clock()
        self.effects: list[Effect] = []
        self.reports: list[BaseException] = []
        self.changes = 0
        self.troubles: list[str] = []
        self.ids = 0
        self.may_stop: list[bool] = []
        self.can_see = True
        self.failure: Callable[[], Exception] = KeyError
        self.perform: Callable[[Effect], Awaitable[Input | None]] = self._keep
        self.availability = dict.fromkeys(ROSTER, Availability(installed=True))
        runner = SimpleNamespace(
            build_context=self.build_context,
            perform=self._do,
            redact=_leave,
            see=lambda _session: None,
            close=_close,
            trouble="",
            is_collecting=False,
        )
        services = SimpleNamespace(clock=self.clock, report=self.reports.append)
        self.host = Host(
            cast("Services", services),
            self.disk,
            lambda _host: cast("EffectRunner", runner),
            changed=self._count,
            retry_s=retry_s,
        )

    @property
    def session(self) -> Session:
        found = fold_events(self.disk.events)
        assert found is not None
        return found

    async def build_context(self, _session: Session, *, may_stop_agent: bool = True) -> DecisionContext:
        self.may_stop.append(may_stop_agent)
        if not self.can_see:
            raise self.failure()
        self.ids += 1
        return DecisionContext(self.clock.now(), self.availability, f"H{self.ids}", f"L{self.ids}")

    async def _do(self, effect: Effect) -> Input | None:
        return await self.perform(effect)

    async def _keep(self, effect: Effect) -> Input | None:
        self.effects.append(effect)
        return None

    def _count(self, _session: Session) -> None:
        self.changes += 1
        self.troubles.append(self.host.trouble)

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Returns once `is_so`; fails naming `what` after a minute."""
        try:
            async with asyncio.timeout(60):
                while not is_so():  # noqa: ASYNC110 - what is awaited tells nobody
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(f"waited until {what}") from None

    async def calm(self) -> None:
        """Everything told so far was worked on, its effects begun."""
        await self.until(lambda: self.host.is_idle, "the host has nothing to do")
        await asyncio.sleep(0)


async def _close() -> None:
    """There is nothing to stop."""


async def _leave(body: Body) -> Body:
    """The events of a scene hold no secrets."""
    return body


def play(scene: Scene, script: Callable[[Scene], Awaitable[None]]) -> None:
    """`script` beside the scene's working host, which is closed afterwards."""

    async def main() -> None:
        scene.host.start()
        try:
            await script(scene)
        finally:
            await scene.host.close()

    asyncio.run(main())


def played(
    script: "Callable[Concatenate[Scene, P], Coroutine[object, object, None]] | None" = None,
    *,
    begins: bool = True,
    retry_s: float = 0.01,
) -> "Callable[..., object]":
    """Make a test of a script beside a scene's working host; its first leg is ready where it `begins`."""
    if script is None:
        return functools.partial(played, begins=begins, retry_s=retry_s)

    async def begin_and_play(scene: Scene, *words: P.args, **more: P.kwargs) -> None:
        if begins:
            await begin(scene)
        await script(scene, *words, **more)

    @functools.wraps(script)
    def test(*words: P.args, **more: P.kwargs) -> None:
        play(Scene(retry_s=retry_s), lambda scene: begin_and_play(scene, *words, **more))

    signature = inspect.signature(script)
    _, *others = signature.parameters.values()
    test.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return test


async def make_handoff(effect: Effect) -> Input | None:
    """What an effect of a handoff comes to where nothing goes wrong: the successor is the process 21."""
    match effect:
        case StopLeg(leg):
            return LegGone(leg, "stopped")
        case PublishPacket(handoff):
            return Published(handoff, "P", 1, "1.json", "1.md", "f")
        case SpawnLeg(leg):
            return Spawned(leg, 20, 21, 22)
        case DeliverPacket(handoff, leg):
            return Delivered(handoff, leg)
        case _:
            return None


LIMIT = Signal(
    AgentName("ann"), Kind.LIMIT, Scope.ACCOUNT, Evidence(Source.HOOK, "You've hit it"), decides=True
)


async def begin(scene: Scene) -> None:
    """The first leg runs and is ready."""
    await scene.host.ask(begin_leg(scene.host.session, "ann", await scene.build_context(scene.host.session)))
    leg = scene.session.leg
    assert leg is not None
    scene.host.tell(Spawned(leg.id, 10, 11, 12))
    scene.host.tell(StateSeen(leg.id, "ready"))
    await scene.calm()
    scene.effects.clear()


def leg_of(scene: Scene) -> str:
    leg = scene.session.leg
    assert leg is not None
    return leg.id


def find_pid(scene: Scene) -> int:
    leg = scene.session.living_leg
    return leg.child_pid if leg is not None else 0
