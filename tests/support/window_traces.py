"""Usage windows as agents tell of them while work goes on: regular ones, and in the ways they go wrong.

A trace is what a detector hears of one leg: prompts and answers of turns, and readings between them. The
true use grows with the agent's work; what is told of it may lag, jump, stand still, fall back, or move its
reset. The seed decides everything, so that a failure can be seen again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
WAYS = ("plain", "lag", "jumps", "frozen", "falls", "moved-reset", "sliding-reset", "everything")
_DAY_S = 86_400.0
_WINDOW_S = 18_000.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One record: `kind` is prompt, answer, reading or limit; a reading has `used` and `resets_s`."""

    at_s: float
    kind: str
    used: float = 0.0
    resets_s: float = 0.0


@dataclass(slots=True)
class _Told:
    """What is told of a window that goes wrong in some ways; `lag_s` is how late, `step` how coarse."""

    lag_s: float
    step: float
    frozen_until_s: float = -1.0
    frozen: float = 0.0
    reset_by_s: float = 0.0


def at(seconds: float) -> datetime:
    """A moment of a trace."""
    return START + timedelta(seconds=seconds)


def build_trace(seed: int, way: str, *, days: float = 1.0) -> list[Heard]:
    """Return a day of work: a user who prompts, pauses, and meets a limit or not, as the seed has it.

    A limit ends the work until the window's reset; then it goes on in the next one.
    """
    return list(_work(Random(f"{way} {seed}"), way, days * _DAY_S))  # noqa: S311 - a trace, not a secret


def _work(chance: Random, way: str, until_s: float) -> Iterator[Heard]:
    """Yield a day's records."""
    now = 0.0
    # From a user who never meets a limit to one who is through after an hour of work.
    rate = 100 / chance.uniform(1.0, 8.0) / 3600
    usual_turn_s = chance.choice((60, 180, 600, 1500))
    while now < until_s:
        resets_s = now + _WINDOW_S
        used = chance.choice((0.0, chance.uniform(0, 40)))
        past = [(now, used)]
        told = _build_told(chance, way)
        while now < min(resets_s, until_s):
            yield Heard(now, "prompt")
            turn_rate = rate * chance.uniform(0.5, 2.0)
            for _ in range(max(1, int(chance.expovariate(1 / usual_turn_s) / 20))):
                now += (step_s := chance.uniform(5, 35))
                used += turn_rate * step_s * chance.uniform(0.3, 1.7)
                past.append((now, used))
                if used >= 100:
                    yield Heard(now, "limit")
                    break
                yield Heard(now, "answer")
                yield _tell(chance, way, told, past, resets_s)
            if used >= 100:
                now = resets_s
                break
            now += chance.expovariate(1 / chance.choice((30, 120, 900)))
        now = max(now, min(resets_s, until_s)) + 1


def _build_told(chance: Random, way: str) -> _Told:
    is_all = way == "everything"
    lag_s = chance.uniform(30, 240) if way == "lag" or is_all else 0.0
    return _Told(lag_s, chance.uniform(3, 12) if way == "jumps" or is_all else 1.0)


def _tell(chance: Random, way: str, told: _Told, past: list[tuple[float, float]], resets_s: float) -> Heard:
    """Return what is told now of the use so far."""
    now = past[-1][0]
    known = next((used for at_s, used in reversed(past) if at_s <= now - told.lag_s), past[0][1])
    share = known // told.step * told.step
    if way in {"frozen", "everything"}:
        if told.frozen_until_s < now and chance.random() < 0.01:
            told.frozen_until_s, told.frozen = now + chance.uniform(300, 1200), share
        share = told.frozen if now < told.frozen_until_s else share
    if way in {"falls", "everything"} and chance.random() < 0.05:
        share = max(0.0, share - chance.uniform(1, 60))
    if way in {"moved-reset", "everything"} and chance.random() < 0.01:
        told.reset_by_s = chance.uniform(-1800, 7200)
    if way == "sliding-reset":
        told.reset_by_s = now - resets_s + _WINDOW_S
    return Heard(now, "reading", share, max(resets_s + told.reset_by_s, now + 60))
