"""A clock that tests set, and whose machine they put to sleep."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class SetClock:
    """Both clocks of a machine; they stand still until they are moved."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at
        self.steady_s = 1000.0

    def now(self) -> datetime:
        """What the wall clock shows."""
        return self.at

    def monotonic(self) -> float:
        """Seconds the machine has been awake."""
        return self.steady_s

    def run(self, seconds: float) -> None:
        """Time passes, the machine awake."""
        self.at += timedelta(seconds=seconds)
        self.steady_s += seconds

    def jump(self, by: timedelta) -> None:
        """The wall clock alone moves: it is set, or the machine slept."""
        self.at += by


class SleepingMachine(SetClock):
    """A machine that sleeps for eight hours as soon as somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.sleeps = [timedelta(hours=8)]

    def wait(self, seconds: float) -> None:
        """A timer of the loop rings `seconds` later, which a sleeping machine does not count."""
        self.waits.append(seconds)
        self.run(seconds)
        if self.sleeps:
            self.jump(self.sleeps.pop())


class SleepingLoop(asyncio.SelectorEventLoop):
    """A loop whose timers ring at once; the machine's clock is moved by what they waited for."""

    def __init__(self, machine: SleepingMachine) -> None:
        super().__init__()
        self._machine = machine

    def time(self) -> float:
        """Seconds the machine was awake."""
        return self._machine.monotonic()

    def call_at(self, when: float, callback: object, *args: object, context: object = None) -> object:
        """What is due later is due now, and it is later."""
        self._machine.wait(max(0.0, when - self._machine.monotonic()))
        return super().call_at(self._machine.monotonic(), callback, *args, context=context)  # type: ignore[arg-type,call-overload]  # passed on as they came
