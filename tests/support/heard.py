"""Collects what sources hand on, and lets a test wait for it."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import ParamSpec

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.limits import Record

P = ParamSpec("P")
LIMIT_S = 60.0


def build_place(leg_id: str = "leg", **values: str) -> LegPlace:
    """A leg that started a moment ago."""
    return LegPlace(leg_id, datetime.now(UTC) - timedelta(seconds=1), values)


def in_loop(script: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Make a test that runs in an event loop of its own."""

    @functools.wraps(script)
    def test(*words: P.args, **more: P.kwargs) -> None:
        asyncio.run(script(*words, **more))

    return test


async def until(condition: Callable[[], object]) -> None:
    """Return when `condition` holds; TimeoutError if it never does."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


class Heard:
    """Every record in order, with its leg."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.legs: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, leg_id: str, records: list[Record]) -> None:
        """What a source set calls."""
        self.records += records
        self.legs += [leg_id] * len(records)
        self._more.set()

    def take(self, records: list[Record]) -> None:
        """What a single reader calls."""
        self("leg", records)

    def numbers(self) -> list[object]:
        """The field `n` of every record."""
        return [record.data.get("n") for record in self.records]

    async def wait(self, count: int) -> None:
        """Return when `count` records are there; TimeoutError if they do not come."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.records) < count:
                self._more.clear()
                await self._more.wait()
