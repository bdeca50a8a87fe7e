"""Waiting for a moment of the wall clock on a machine that sleeps, or whose clock is set."""

import asyncio
from datetime import timedelta

from agent_relay.engine._idle_agent import sleep_until
from tests.support.set_clock import SleepingLoop, SleepingMachine


def test_a_reset_that_passed_while_the_machine_slept_is_acted_on_within_half_a_minute() -> None:
    """A timer of eight hours that is set when the lid is closed would ring eight hours after it is opened."""
    machine = SleepingMachine()
    at = machine.now() + timedelta(hours=7)
    with asyncio.Runner(loop_factory=lambda: SleepingLoop(machine)) as runner:
        runner.run(sleep_until(machine, at))
    assert machine.waits == [30.0]
    assert machine.now() >= at
