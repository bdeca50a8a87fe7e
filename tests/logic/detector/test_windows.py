"""What detectors remember of usage windows."""

from datetime import UTC

import pytest

from agent_relay.domain.rules import UsageWindow
from agent_relay.domain.signal import Record, Source
from agent_relay.logic.detector.windows import Windows
from tests.support.detecting import at

WINDOW = UsageWindow(
    name="day", source=Source.STATUS_LINE, used="used", reset="reset", lasts_minutes=1440, minutes="long"
)


@pytest.mark.parametrize(
    ("said", "known"), [({}, 1440), ({"long": 300}, 300), ({"long": True}, 1440), ({"long": "x"}, 1440)]
)
def test_a_windows_length_is_the_records_before_the_adapters(said: dict[str, object], known: int) -> None:
    """Plans differ in how long their windows are; a record that says so is about this user's."""
    windows = Windows((WINDOW,), UTC)
    record = Record(Source.STATUS_LINE, {"used": 42, "reset": at(3600).timestamp(), **said})
    (reading,) = windows.hear(record, at(1))
    assert (reading.used, reading.minutes, reading.at) == (42.0, known, at(1))
    assert windows.newest == (reading,)
