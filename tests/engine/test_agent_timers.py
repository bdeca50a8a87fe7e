"""An agent's own timer: its key is pressed while its screen shows it and nobody types, and never else."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.engine._idle_agent import AgentTimers
from agent_relay.terminal.holder_client import HolderError

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
