"""An agent at its prompt: its timer's key is pressed, and its quiet waited for, where nobody is disturbed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import LegQuiet
from agent_relay.domain.limits import NO_WISHES
from agent_relay.engine._idle_agent import AgentTimers, ContextRelief, sleep_until
from agent_relay.terminal.holder_client import HolderError
from tests.support.set_clock import SleepingLoop, SleepingMachine

if TYPE_CHECKING:
    from agent_relay.engine.legs.monitor import LegMonitor

NOW = datetime(2026, 11, 24, 18, 20, tzinfo=UTC)
RESET = NOW + timedelta(hours=1)


class Scene:
    """A leg whose agent counts down; `typed` and `key_age_s` are what its holder knows of keys."""

    def __init__(self) -> None:
        self.now = NOW
        self.looks = 0
        self.changes: Callable[[int], None] = lambda _look: None
        self.keys: list[bytes] = []
        self.refuses = 0
        self.takes = True
        self.typed, self.key_age_s = 0, 60.0
        self.watch = SimpleNamespace(
            leg=SimpleNamespace(id="L1", agent="ann"),
            gone=asyncio.Event(),
            state="ready",
            input="empty",
            continues_at=RESET,
            cancel_keys="\x1b",
            settle_evidence=self._settle,
            wait_until=self._wait_until,
            holder=SimpleNamespace(request=self._request, type=self._type),
        )

    async def _settle(self) -> None:
        self.looks += 1
        self.changes(self.looks)

    async def _wait_until(self, is_so: Callable[[], bool], *, limit_s: float) -> bool:
        assert limit_s > 0
        return is_so()

    async def _request(self, op: str) -> dict[str, object]:
        assert op == "status"
        return {"typed": self.typed, "key_age_s": self.key_age_s}

    async def _type(self, data: bytes, *, unless_typed: bool) -> None:
        assert unless_typed
        if self.refuses:
            self.refuses -= 1
            raise HolderError("somebody types", why="typed")
        self.keys.append(data)
        if self.takes:
            self.watch.continues_at = None

    def cancel(self) -> None:
        clock = SimpleNamespace(now=lambda: self.now, monotonic=lambda: 0.0)
        live = cast("LegMonitor", self.watch)
        timers = AgentTimers(clock, {"L1": live})

        async def main() -> None:
            async with asyncio.timeout(60):
                await timers.cancel("L1", RESET)
                await timers.cancel("another leg", RESET)

        asyncio.run(main())


def test_a_countdown_on_the_screen_is_given_up_by_its_own_key() -> None:
    """The user said not while they are away; the agent has one key for that."""
    scene = Scene()
    scene.cancel()
    assert scene.keys == [b"\x1b"]


def test_a_key_is_not_pressed_where_no_countdown_stands_any_more() -> None:
    """The person was faster, or it went on: the same key would end their turn or their menu."""
    scene = Scene()
    scene.changes = lambda _look: setattr(scene.watch, "continues_at", None)
    scene.cancel()
    assert scene.keys == []


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "busy",
    [{"state": "busy"}, {"state": "asking"}, {"input": "typed"}],
    ids=["a turn", "a question", "a line half typed"],
)
def test_it_waits_until_the_key_can_only_mean_the_timer(busy: dict[str, str]) -> None:
    """An Escape in a turn interrupts it; in a line it clears what somebody wrote."""
    scene = Scene()
    for name, value in busy.items():
        setattr(scene.watch, name, value)

    def change(look: int) -> None:
        assert scene.keys == []
        if look == 2:
            scene.watch.state, scene.watch.input = "ready", "empty"

    scene.changes = change
    scene.cancel()
    assert (scene.keys, scene.looks) == ([b"\x1b"], 2)


@pytest.mark.size("test")
def test_it_waits_for_whoever_types() -> None:
    """Keys of theirs that came a moment ago, or stand in the holder, are theirs to finish."""
    scene = Scene()
    scene.key_age_s, scene.refuses = 0.1, 1
    scene.changes = lambda look: setattr(scene, "key_age_s", 60.0 if look > 1 else 0.1)
    scene.cancel()
    assert (scene.keys, scene.looks) == ([b"\x1b"], 3)


@pytest.mark.size("test")
def test_when_its_moment_has_come_no_key_is_pressed() -> None:
    """From then on it may be at work."""
    scene = Scene()
    scene.takes = False

    def change(_look: int) -> None:
        scene.now = RESET if scene.keys else NOW

    scene.changes = change
    scene.cancel()
    assert scene.keys == [b"\x1b", b"\x1b"]
    scene.keys.clear()
    scene.cancel()
    assert scene.keys == []


def test_an_agent_without_such_a_key_is_told_of() -> None:
    """A wish that cannot be kept must be seen where the session's trouble is."""
    scene = Scene()
    scene.watch.cancel_keys = ""
    with pytest.raises(
        RelayError,
        match="will continue by itself and relay cannot cancel that; cancel it on ann's own screen",
    ):
        scene.cancel()


@dataclass
class Agent:
    """A watched leg and its holder; each look at its evidence makes the next of `states` its state."""

    states: list[str]
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    state: str = "ready"
    input: str = "empty"

    @property
    def holder(self) -> "Agent":
        return self

    async def settle_evidence(self) -> None:
        self._next()

    async def request(self, _op: str) -> dict[str, object]:
        return {"typed": 0, "key_age_s": None}

    async def wait_until(self, is_so: object, *, limit_s: float) -> bool:
        assert callable(is_so)
        async with asyncio.timeout(limit_s):
            while not is_so():
                self._next()
                await asyncio.sleep(0)
        return True

    def _next(self) -> None:
        if self.states:
            self.state = self.states.pop(0)
        if self.state == "over":
            self.gone.set()


def await_quiet(*states: str) -> LegQuiet | None:
    async def look() -> LegQuiet | None:
        relief = ContextRelief(SimpleNamespace(), {"L1": Agent(list(states))}, NO_WISHES)  # type: ignore[arg-type, dict-item]
        return await relief.await_quiet("L1")

    return asyncio.run(look())


@pytest.mark.size("test")
def test_work_that_is_seen_late_is_waited_out() -> None:
    """Records of a short turn may be ahead of its screen; nobody else would ask again."""
    assert await_quiet("busy", "busy", "asking", "ready", "ready") == LegQuiet("L1")


def test_an_agent_that_ends_is_never_quiet() -> None:
    """Its successor is another one."""
    assert await_quiet("busy", "over") is None


def test_a_reset_that_passed_while_the_machine_slept_is_acted_on_within_half_a_minute() -> None:
    """A timer of eight hours that is set when the lid is closed would ring eight hours after it is opened."""
    machine = SleepingMachine()
    at = machine.now() + timedelta(hours=7)
    with asyncio.Runner(loop_factory=lambda: SleepingLoop(machine)) as runner:
        runner.run(sleep_until(machine, at))
    assert machine.waits == [30.0]
    assert machine.now() >= at
