"""The watch over budgets lives as long as its leg, whatever goes wrong in one of its rounds."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, tzinfo

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import BudgetsCounted, Input
from agent_relay.domain.limits import Budget, Mark, Record, Source, Spending
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import replace
from agent_relay.engine.legs.limits import BudgetMonitor
from agent_relay.engine.threads import ThreadPerHome
from agent_relay.system.clock import SystemClock
from agent_relay.usage.budget_usage import find_day, tell_uncounted
from tests.support.heard import in_loop, until
from tests.support.monitored import build_config, build_monitor

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
BUDGET = Budget("session", "", 1000)
OURS = f"{BUDGET.name} is not watched: agent-relay made a mistake in counting; a crash report was written"


class Counter:
    """Counts by a table: what each count finds, or what it raises."""

    def __init__(self, *rounds: Mark | Exception) -> None:
        self.rounds = list(rounds)
        self.done = 0

    def count(
        self, session: Session, *, now: datetime, zone: tzinfo, environ: Mapping[str, str]
    ) -> Sequence[Spending]:
        """The table's next line; the last one stays."""
        del session, now, zone, environ
        found = self.rounds[min(self.done, len(self.rounds) - 1)]
        self.done += 1
        if isinstance(found, Exception):
            # Raised elsewhere each time, an error would carry the frames of its last journey.
            raise found.with_traceback(None)
        return (Spending(BUDGET.name, found, str(found)),)

    def tell_uncounted(self, why: str, *, now: datetime, zone: tzinfo) -> Sequence[Spending]:
        """As the real one does."""
        return tell_uncounted([BUDGET], why, find_day(now, zone))


class Scene:
    """A leg at work whose budget is counted by `counter`; `told` and `reports` are what came of it."""

    def __init__(
        self,
        counter: Counter,
        *,
        native_id: str = "known",
        threads: ThreadPerHome | None = None,
        home: str = "/h",
    ) -> None:
        leg = Leg("L1", "demo", 1, NOW, native_id=native_id)
        self.watch = build_monitor(leg, build_config(), environ={"HOME": home})
        self.session = Session("S", "/r", "/r", NOW, NOW, legs=(leg,))
        self.counter = counter
        self.told: list[tuple[Mark, str]] = []
        self.reports: list[BaseException] = []
        self.named = 0
        own = threads or ThreadPerHome("counting")
        self.counting = BudgetMonitor(counter, SystemClock(), self.reports.append, own, settle_s=0)

    def tell(self, happened: Input) -> None:
        """The session knows what was counted, as it does once its host has journalled it."""
        assert isinstance(happened, BudgetsCounted)
        self.told += [(one.mark, one.text) for one in happened.found]
        self.session = replace(self.session, budgets=happened.found)

    async def name(self) -> None:
        """The leg stays without a name."""
        self.named += 1

    def follow(self) -> "asyncio.Task[None]":
        """The watch over the leg's budgets, under way."""
        return asyncio.create_task(self.counting.follow(self.watch, self, self.name))  # type: ignore[arg-type]

    async def work(self, rounds: int) -> None:
        """The agent says something until so many counts were told: by then the next one is done."""
        while self.counter.done <= rounds:
            known = self.counter.done
            await self.watch.hear([Record(Source.HOOK, {}, NOW, "here")])
            await until(lambda: self.counter.done > known)  # noqa: B023 - asked within this very round

    def play(self, rounds: int, **ports: Callable[..., None] | Callable[[], Awaitable[None]]) -> None:
        """So many rounds, with another way to tell or to name; then the leg ends, and its watch with it."""
        for name, port in ports.items():
            setattr(self, name, port)

        async def main() -> None:
            task = self.follow()
            await self.work(rounds)
            assert not task.done()
            await self.watch.end()
            await asyncio.wait_for(task, 60)

        asyncio.run(main())


def test_a_mistake_in_one_count_is_told_and_the_next_one_is_made() -> None:
    """A budget whose watch ended by a bug of ours would be passed in silence."""
    scene = Scene(Counter(Mark.OPEN, KeyError("x"), Mark.WARN))
    scene.play(3)
    assert scene.told == [(Mark.OPEN, "open"), (Mark.UNCOUNTED, OURS), (Mark.WARN, "warn")]
    assert [type(error) for error in scene.reports] == [KeyError]


def test_a_mistake_that_comes_back_is_reported_once_and_another_one_too() -> None:
    """Every round comes by again: the reports of other mistakes must not be pushed out by one."""
    scene = Scene(Counter(KeyError("x"), KeyError("y"), ZeroDivisionError(), KeyError("z"), Mark.OPEN))
    scene.play(5)
    assert [type(error) for error in scene.reports] == [KeyError, ZeroDivisionError]
    assert all(error.__traceback__ is not None for error in scene.reports)


def test_a_mistake_in_telling_ends_no_watch() -> None:
    """What a count found is judged by code of ours, too."""
    scene = Scene(Counter(Mark.OPEN, Mark.WARN, Mark.SPENT))
    slips = [ValueError("first"), ValueError("second")]

    tell = scene.tell

    def slip(happened: Input) -> None:
        if slips:
            raise slips.pop()
        tell(happened)

    scene.play(3, tell=slip)
    assert [mark for mark, _ in scene.told] == [Mark.WARN, Mark.SPENT]
    assert [type(error) for error in scene.reports] == [ValueError, ValueError]


@pytest.mark.parametrize(
    ("error", "reported"), [(LookupError("x"), [LookupError]), (RelayError("torn"), [])], ids=("ours", "said")
)
def test_a_leg_that_cannot_be_named_has_its_budgets_counted(error: Exception, reported: list[type]) -> None:
    """One agent's strange records must not cost the budgets of all."""
    scene = Scene(Counter(Mark.OPEN, Mark.WARN, Mark.WARN), native_id="")

    name = scene.name

    async def fail() -> None:
        await name()
        raise error.with_traceback(None)

    scene.play(3, name=fail)
    assert [mark for mark, _ in scene.told] == [Mark.OPEN, Mark.WARN]
    assert scene.named > 1
    assert [type(one) for one in scene.reports] == reported


def test_what_files_refuse_is_said_of_the_budget_and_is_no_mistake() -> None:
    """Their reason is for the user; a crash report would say nothing."""
    scene = Scene(Counter(RelayError("the journal is torn"), Mark.OPEN))
    scene.play(2)
    assert scene.told == [
        (Mark.UNCOUNTED, f"{BUDGET.name} is not watched: the journal is torn"),
        (Mark.OPEN, "open"),
    ]
    assert scene.reports == []


class Held(Counter):
    """Counts once it may: as long as another process has the index, nobody can."""

    def __init__(self) -> None:
        super().__init__(Mark.OPEN)
        self.waiting = 0
        self.may = threading.Event()

    def count(
        self, session: Session, *, now: datetime, zone: tzinfo, environ: Mapping[str, str]
    ) -> Sequence[Spending]:
        """Waits in its thread."""
        self.waiting += 1
        assert self.may.wait(60)
        return super().count(session, now=now, zone=zone, environ=environ)


@in_loop
async def test_sessions_that_wait_for_their_count_keep_no_thread_from_other_work() -> None:
    """Six that waited for the index held back every session's journal, for up to 20 s."""
    counter, threads = Held(), ThreadPerHome("counting")
    scenes = [Scene(counter, threads=threads) for _ in range(3)]
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    tasks = [one.follow() for one in scenes]
    await until(lambda: counter.waiting > 0)
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: counter.waiting), 20) == 1
    finally:
        counter.may.set()
    await until(lambda: all(one.told for one in scenes))
    for one in scenes:
        await one.watch.end()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert [one.told for one in scenes] == [[(Mark.OPEN, "open")]] * 3


@in_loop
async def test_a_home_that_hangs_keeps_no_count_from_sessions_of_another() -> None:
    """A network that is down would leave every session's budgets unwatched, told by nobody."""
    threads, dead = ThreadPerHome("counting"), Held()
    hung = Scene(dead, threads=threads, home="/net/ann")
    well = Scene(Counter(Mark.OPEN, Mark.WARN), threads=threads, home="/home/bob")
    tasks = [hung.follow()]
    await until(lambda: dead.waiting > 0)
    tasks.append(well.follow())
    try:
        await until(lambda: well.told)
        assert hung.told == []
    finally:
        dead.may.set()
        await hung.watch.end()
        await well.watch.end()
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert well.told[0] == (Mark.OPEN, "open")
