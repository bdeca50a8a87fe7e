from datetime import UTC, datetime, timedelta

from agent_relay.domain.ulid import is_ulid
from agent_relay.system.clock import SystemClock, create_ulid


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
