"""A quiet moment of an agent: waited for through its work, its questions and somebody's typing."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from agent_relay.domain.inputs import LegQuiet
from agent_relay.domain.limits import NO_WISHES
from agent_relay.engine._idle_agent import ContextRelief


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
