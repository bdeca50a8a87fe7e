"""A leg is read right whatever happens to the wall clock: the machine sleeps, or somebody sets it."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta

from agent_relay.agents.adapters import load_rules
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.inputs import Answered, ClockSetBack, PromptTaken, SignalFound
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.session import Leg, Prompt
from tests.support.detecting import RULES
from tests.support.heard import in_loop
from tests.support.monitored import PATIENCE_S, Reports, build_config, build_monitor
from tests.support.real_launch import get_adapter
from tests.support.set_clock import START, SetClock

JUMPS = {
    "asleep for eight hours": timedelta(hours=8),
    "three hours ahead": timedelta(hours=3),
    "three hours back": timedelta(hours=-3),
    "ten years ahead": timedelta(days=3650),
    "ten years back": timedelta(days=-3650),
    "a local clock taken for UTC, an hour back": timedelta(hours=-1),
}


class Scene:
    """The watch of one leg by a clock that is set; what it tells is kept."""

    def __init__(self, clock: SetClock, rules: Rules = RULES, *, asked: Prompt | None = None) -> None:
        self.clock = clock
        self.reports = Reports()
        self.told = self.reports.inputs
        leg = Leg("leg", "a", 1, starting_at=clock.now(), asked=asked)
        self.watch = build_monitor(leg, build_config(rules=rules, sources=()), self.reports, clock=clock)

    async def hear(self, kind: str, text: str = "", *, at: datetime | None = None) -> None:
        """A transcript row of this moment, or of `at`."""
        record = Record(Source.TRANSCRIPT, {"type": kind, "text": text}, at or self.clock.now(), "t")
        await self.watch.hear([record])

    async def ask(self, text: str) -> None:
        """What Claude Code's hook tells of a prompt of this moment."""
        payload = {"hook_event_name": "UserPromptSubmit", "prompt": text}
        await self.watch.hear([Record(Source.HOOK, {"payload": payload}, self.clock.now())])

    def kinds(self) -> list[tuple[str, bool]]:
        """What kinds of signals were told, and whether they decide."""
        return [
            (str(one.signal.kind), one.signal.decides) for one in self.told if isinstance(one, SignalFound)
        ]


def for_each_jump(
    script: Callable[[Scene, timedelta], Coroutine[object, object, None]],
) -> Callable[[], None]:
    """Make a test of a script that is played once for each jump, each time a minute after the leg's start."""

    def test() -> None:
        for name, jump in JUMPS.items():
            scene = Scene(SetClock())
            scene.clock.run(60)
            try:
                asyncio.run(script(scene, jump))
            except AssertionError as error:
                error.add_note(name)
                raise

    test.__doc__ = script.__doc__
    return test


@for_each_jump
async def test_a_retry_does_not_wait_while_the_machine_sleeps_or_its_clock_is_set(
    scene: Scene, jump: timedelta
) -> None:
    """One retry and a closed lid would hand the work over, in the morning, from an agent that is well."""
    await scene.watch.hear([Record(Source.EVENT, {"text": "retry"}, scene.clock.now(), "e")])
    scene.clock.run(1)
    scene.clock.jump(jump)
    scene.clock.run(2)
    await scene.hear("note")
    assert scene.kinds() == [("retry", False)]
    scene.clock.run(PATIENCE_S)
    await scene.hear("note")
    assert scene.kinds() == [("retry", False), ("silent-limit", True)]


@for_each_jump
async def test_a_retry_heard_of_after_the_machine_slept_has_not_waited_yet(
    scene: Scene, jump: timedelta
) -> None:
    """The record was written right before the lid was closed, and is read when it is opened."""
    written = scene.clock.now()
    scene.clock.jump(jump)
    scene.clock.run(1)
    await scene.watch.hear([Record(Source.EVENT, {"text": "retry"}, written, "e")])
    assert scene.kinds() == [("retry", False)]
    await scene.hear("note")
    assert scene.kinds() == [("retry", False)]


@for_each_jump
async def test_a_real_limit_acts_whatever_the_clock_was_set_to(scene: Scene, jump: timedelta) -> None:
    """By a clock that was set back, all the agent writes is older than its own start."""
    await scene.hear("user")
    scene.clock.jump(jump)
    scene.clock.run(1)
    await scene.hear("error", "limit reached")
    assert scene.kinds() == [("limit", True)]


@for_each_jump
async def test_an_answer_ends_what_was_told_before_the_clock_was_set(scene: Scene, jump: timedelta) -> None:
    """The same limit may decide once more only after an answer, and retries that healed are over."""
    await scene.hear("error", "limit reached")
    await scene.watch.hear([Record(Source.EVENT, {"text": "retry"}, scene.clock.now(), "e")])
    scene.clock.jump(jump)
    scene.clock.run(1)
    await scene.hear("agent", "done")
    assert any(isinstance(one, Answered) for one in scene.told)
    scene.clock.run(PATIENCE_S + 1)
    await scene.hear("error", "limit reached")
    assert scene.kinds() == [("limit", True), ("retry", False), ("limit", True)]


@for_each_jump
async def test_history_stays_history(scene: Scene, jump: timedelta) -> None:
    """A limit of last week that a resumed conversation copies must not act because somebody set a clock."""
    scene = Scene(SetClock())
    week_old = scene.clock.now() - timedelta(days=7)
    scene.clock.run(60)
    scene.clock.jump(jump)
    scene.clock.run(1)
    if week_old < scene.clock.now():
        await scene.hear("error", "limit reached", at=week_old)
    assert scene.kinds() == []


@in_loop
async def test_a_clock_set_back_is_told_once_with_the_legs_new_start() -> None:
    """Whoever reads the leg's transcript later, in another daemon too, looks for what is newer than that."""
    scene = Scene(SetClock())
    scene.clock.run(60)
    await scene.hear("note")
    scene.clock.run(4)
    scene.clock.jump(timedelta(hours=-3))
    scene.clock.run(1)
    await scene.hear("user")
    await scene.hear("note")
    since = START + timedelta(hours=-3, seconds=60)
    assert scene.told == [ClockSetBack("leg", since), PromptTaken("leg")]


@for_each_jump
async def test_what_the_user_asks_after_the_clock_was_set_is_the_newest(
    scene: Scene, jump: timedelta
) -> None:
    """A packet would quote what was asked before as what still waits for an answer."""
    scene = Scene(SetClock(), load_rules(get_adapter("claude")))
    scene.clock.run(60)
    await scene.ask("paint the shed")
    scene.clock.run(1)
    scene.clock.jump(jump)
    scene.clock.run(2)
    await scene.ask("paint the fence")
    assert [one.text for one in scene.reports.prompts] == ["paint the shed", "paint the fence"]


@in_loop
async def test_a_daemon_that_begins_after_the_clock_was_set_back_hears_what_is_asked() -> None:
    """The journal has the prompt before by the old time, which is yet to come."""
    before = Prompt("paint the shed", START + timedelta(hours=3))
    scene = Scene(SetClock(), load_rules(get_adapter("claude")), asked=before)
    scene.clock.run(60)
    await scene.ask("paint the fence")
    assert [one.text for one in scene.reports.prompts] == ["paint the fence"]
