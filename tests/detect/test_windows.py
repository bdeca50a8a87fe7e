"""What detectors remember of usage windows."""

import os
from datetime import UTC, datetime

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.reported_usage import UsageWindows
from agent_relay.domain.documents.rules import UsageWindow
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.values import replace
from tests.support.detecting import at

WINDOW = UsageWindow(
    name="day", source=Source.STATUS_LINE, used="used", reset="reset", lasts_minutes=1440, minutes="long"
)


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({}, 1440),
        ({"long": 300}, 300),
        ({"long": True}, 1440),
        ({"long": "x"}, 1440),
        ({"long": 10**400}, 1440),
    ],
)
def test_a_windows_length_is_the_records_before_the_adapters(said: dict[str, object], known: int) -> None:
    """Plans differ in how long their windows are; a record that says so is about this user's."""
    windows = UsageWindows((WINDOW,), UTC)
    record = Record(Source.STATUS_LINE, {"used": 42, "reset": at(3600).timestamp(), **said})
    (reading,) = windows.hear(record, at(1), at(1))
    assert (reading.used, reading.minutes, reading.at) == (42.0, known, at(1))
    assert windows.newest == (reading,)


@pytest.mark.parametrize(
    "strange",
    [10**400, -(10**400), float("inf"), float("nan")],
    ids=["huge", "far below nothing", "endless", "none"],
)
def test_a_number_beyond_all_others_is_no_reading(strange: float) -> None:
    """Whole numbers of records have no bound, and what cannot be divided must not end the detector."""
    windows = UsageWindows((WINDOW, replace(WINDOW, forms=("epoch",))), UTC)
    for said in ({"used": strange, "reset": 1795177945}, {"used": 42, "reset": strange}):
        assert windows.hear(Record(Source.STATUS_LINE, said), at(1), at(1)) == ()


def test_a_share_becomes_a_percentage() -> None:
    """Some records count to one."""
    windows = UsageWindows((replace(WINDOW, full=1.0),), UTC)
    (reading,) = windows.hear(Record(Source.STATUS_LINE, {"used": 0.92, "reset": 1795177945}), at(1), at(1))
    assert reading.used == 92.0


def test_what_a_stream_tells_of_a_window_is_read_where_it_says_how_much() -> None:
    """As Claude Code 2.1.197 wrote it without a screen; of most windows it tells no share."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), "claude"), origin="built-in"))
    windows = UsageWindows(rules.windows, UTC)
    said = {"status": "allowed", "resetsAt": 1795177943, "rateLimitType": "five_hour"}
    near = {
        "status": "allowed_warning",
        "resetsAt": 1795177945,
        "rateLimitType": "five_hour",
        "utilization": 0.92,
    }
    for info in (said, near, {"status": "rejected", "isUsingOverage": False}):
        windows.hear(
            Record(Source.STREAM, {"type": "rate_limit_event", "rate_limit_info": info}), at(1), at(1)
        )
    assert [(one.window.name, one.used, one.minutes, one.resets_at) for one in windows.newest] == [
        ("five_hour", 92.0, 300, datetime.fromtimestamp(1795177945, UTC))
    ]
