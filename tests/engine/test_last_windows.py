"""What the daemon remembers of agents' usage windows."""

from datetime import datetime, timedelta

from agent_relay.detect.window_tracks import WindowReading
from agent_relay.detect.window_usage import LastWindows
from agent_relay.domain.documents.rules import UsageWindow
from agent_relay.domain.limits import Source
from tests.support.detecting import at

SESSION = UsageWindow(name="session", source=Source.STATUS_LINE, used="u", reset="r")
WEEK = UsageWindow(name="week", source=Source.STATUS_LINE, used="u", reset="r")


def read(window: UsageWindow, used: float, said_at: datetime) -> WindowReading:
    """A reading of a window that begins anew an hour after the first one."""
    return WindowReading(window, used, at(3600), said_at)


def test_of_two_legs_of_one_agent_the_newer_reading_counts() -> None:
    """They share an account; the leg that was silent longer knows less."""
    known = LastWindows()
    known.note("demo", (read(SESSION, 40, at(10)), read(WEEK, 5, at(10))), at(10))
    known.note("demo", (read(SESSION, 50, at(20)),), at(20))
    known.note("demo", (read(SESSION, 40, at(10)),), at(20))
    known.note("understudy", (), at(20))
    found = known.list_known(at(30))
    assert {agent: [(one.name, one.used_percent) for one in windows] for agent, windows in found.items()} == {
        "demo": [("session", 50.0), ("week", 5.0)]
    }
    assert known.list_known(at(30) + timedelta(hours=1)) == {}


def test_a_reading_after_the_clock_was_set_back_is_the_newer_one() -> None:
    """What was read by a clock that was years ahead would stand for years."""
    known = LastWindows()
    known.note("demo", (read(SESSION, 90, at(3000)),), at(3000))
    known.note("demo", (read(SESSION, 10, at(20)),), at(20))
    known.note("demo", (read(SESSION, 20, at(30)),), at(30))
    assert [one.used_percent for one in known.list_known(at(31))["demo"]] == [20.0]
