"""A record's own time is found in every shape agents write it, and never invented."""

from datetime import UTC, datetime

import pytest

from agent_relay.sources.record_fields import find_record_time

MOMENT = datetime(2026, 11, 20, 10, 31, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "data",
    [
        {"at": "2026-11-20T10:31:02+00:00", "timestamp": "2020-01-01T00:00:00Z"},
        {"timestamp": "2026-11-20T10:31:02.000Z"},
        {"timestamp": "2026-11-20T11:31:02+01:00"},
        {"attributes": {"event.timestamp": "2026-11-20T10:31:02Z"}, "hrTime": [1, 2]},
        {"hrTime": [1795170662, 0]},
        {"t": 1795170662},
        {"t": 1795170662.0},
        {"t": 1795170662000},
        {"updatedAt": 1795170662000, "statusUpdatedAt": "unknown"},
        {"time": {"created": 3}, "t": 1795170662},
        {"id": "evt_1", "properties": {"part": {"text": "hello"}, "time": 1795170662000}},
        {"text": "[2026-11-20T10:31:02Z] [WARN] Attempt 1 failed"},
        {"text": "timestamp=2026-11-20T10:31:02Z level=ERROR"},
        {"text": 'time="2026-11-20T10:31:02Z" level=ERROR'},
        {"text": "2026-11-20 10:31:02Z x"},
    ],
)
def test_every_known_shape_is_read(data: dict[str, object]) -> None:
    """Only records newer than the leg count, so their time must be read wherever it stands."""
    assert find_record_time(data) == MOMENT


def test_nanoseconds_are_kept_to_the_millisecond() -> None:
    """Telemetry gives `[seconds, nanoseconds]`."""
    found = find_record_time({"hrTime": [1795170662, 981000000]})
    assert found == datetime(2026, 11, 20, 10, 31, 2, 981000, tzinfo=UTC)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"at": True},
        {"at": None},
        {"at": "yesterday"},
        {"at": "2026-11-20T10:31:02"},
        {"at": "0001-01-01T00:00:00+23:00"},
        {"at": "1999-01-01T00:00:00Z"},
        {"t": 12},
        {"t": 10**400},
        {"t": 1e300},
        {"t": float("nan")},
        {"t": float("-inf")},
        {"hrTime": [10**400, 0]},
        {"hrTime": [1, 10**400]},
        {"hrTime": ["1", 0]},
        {"attributes": []},
        {"text": 4},
        {"text": "Attempt 1 failed at 2026-11-20T10:31:02Z"},
    ],
)
def test_no_time_is_better_than_a_wrong_one(data: dict[str, object]) -> None:
    """A local time, an absurd number or a time in the middle of a sentence says nothing."""
    assert find_record_time(data) is None
