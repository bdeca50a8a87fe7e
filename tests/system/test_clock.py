from datetime import UTC, datetime, timedelta

from agent_relay.domain.names import is_ulid
from agent_relay.domain.values import ClockJump
from agent_relay.system.clock import JumpingClock, SystemClock, create_ulid
from tests.support.set_clock import START, SetClock


class _Stopped:
    def now(self) -> datetime:
        return datetime(2026, 11, 20, 18, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def test_the_time_is_aware_and_utc() -> None:
    """A naive time cannot be compared with an agent's reset."""
    assert SystemClock().now().utcoffset() == timedelta(0)
    assert SystemClock().monotonic() <= SystemClock().monotonic()


def test_identifiers_carry_the_clock_and_differ() -> None:
    """Legs are sorted by name, and two may start in one millisecond."""
    first, second = create_ulid(_Stopped()), create_ulid(_Stopped())
    assert is_ulid(first)
    assert first[:10] == second[:10] == "01M7X2ZM40"
    assert first != second


def test_a_clock_that_runs_does_not_jump() -> None:
    """Every record heard asks it; time servers make it run a little faster."""
    clock = SetClock()
    watched = JumpingClock(clock)
    for _ in range(100):
        clock.run(3600)
        clock.jump(timedelta(milliseconds=9))
        assert watched.read() == (clock.now(), None)


def test_a_jump_is_told_once_and_with_the_earliest_moment_it_may_have_been() -> None:
    """What was written between the jump and its discovery belongs to the new time."""
    clock = SetClock()
    watched = JumpingClock(clock)
    clock.run(10)
    watched.read()
    clock.run(2)
    clock.jump(timedelta(hours=-3))
    clock.run(3)
    found = watched.read()
    assert found == (clock.now(), ClockJump(timedelta(hours=-3), START + timedelta(hours=-3, seconds=10)))
    assert watched.read() == (clock.now(), None)
    clock.jump(timedelta(hours=8))
    assert watched.read()[1] == ClockJump(timedelta(hours=8), clock.now())


def test_many_small_steps_in_one_direction_are_a_jump() -> None:
    """A clock that is corrected by a little again and again moves as far in the end."""
    clock = SetClock()
    watched = JumpingClock(clock)
    jumps = []
    for _ in range(100):
        clock.run(60)
        clock.jump(timedelta(milliseconds=-30))
        jumps.append(watched.read()[1])
    assert sum(jump.by.total_seconds() for jump in jumps if jump is not None) == -2.04
