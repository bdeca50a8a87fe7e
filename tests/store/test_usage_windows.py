"""What agents said of their usage windows, as commands read it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.store.usage_windows import read_windows, render_known, update_windows

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
LATER = NOW + timedelta(seconds=2_000)


def row(used: float, *, agent: str = "ada", read_s: float = 0, **changes: object) -> dict[str, object]:
    """A reading of the session's window, which begins anew in two hours."""
    return {
        "agent": agent,
        "model": "",
        "name": "session",
        "resets_at": (NOW + timedelta(hours=2)).isoformat(),
        "source": "transcript",
        "read_at": (NOW + timedelta(seconds=read_s)).isoformat(),
        "minutes": 300,
        "used_percent": used,
        **changes,
    }


def test_of_two_readings_the_newer_one_stays_whoever_writes_last(tmp_path: Path) -> None:
    """Two daemons, and two sessions of one, write what they know."""
    path = f"{tmp_path}/windows.json"
    update_windows(path, [row(50, read_s=-10)], NOW)
    update_windows(path, [row(40, read_s=-60), row(7, agent="bob")], NOW)
    assert [(one["agent"], one["used_percent"]) for one in read_windows(path, NOW)] == [
        ("ada", 50),
        ("bob", 7),
    ]


def test_a_reading_by_a_clock_that_was_ahead_is_replaced(tmp_path: Path) -> None:
    """It would stand until its time came."""
    path = f"{tmp_path}/windows.json"
    update_windows(path, [row(50, read_s=3600)], NOW)
    update_windows(path, [row(60)], NOW)
    assert [one["used_percent"] for one in read_windows(path, NOW)] == [60]


def test_a_window_that_began_anew_is_not_known(tmp_path: Path) -> None:
    """What was used before the reset is nothing to anybody, and least of all room."""
    path = f"{tmp_path}/windows.json"
    update_windows(path, [row(97)], NOW)
    later = NOW + timedelta(hours=3)
    assert read_windows(path, later) == []
    update_windows(path, [], later)
    assert json.loads(Path(path).read_text(encoding="utf-8"))["windows"] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        '{"windows": 3}',
        '{"windows": [3, {}, {"agent": 1}]}',
        json.dumps({"windows": [row(float("nan"))]}),
        json.dumps({"windows": [row(-3), row(10**9), row(50, resets_at="soon"), row(50, minutes=True)]}),
    ],
)
def test_a_damaged_file_is_no_reading_and_is_written_anew(tmp_path: Path, text: str) -> None:
    """A command that shows something else must not fail for it."""
    path = tmp_path / "windows.json"
    path.write_text(text, encoding="utf-8")
    assert read_windows(str(path), NOW) == []
    update_windows(str(path), [row(12)], NOW)
    assert len(read_windows(str(path), NOW)) == 1


def test_of_very_many_windows_the_newest_are_kept(tmp_path: Path) -> None:
    """An agent with hundreds of models must not keep its own present out of the file."""
    path = str(tmp_path / "windows.json")
    update_windows(path, [row(1, model=f"m{number}", read_s=number - 300) for number in range(256)], NOW)
    update_windows(path, [row(2, model="ahead", read_s=9_000), row(3, model="now", read_s=1_000)], LATER)
    kept = {str(one["model"]) for one in read_windows(path, LATER)}
    assert len(kept) == 256
    assert "now" in kept
    assert {"m0", "ahead"} & kept == set()


def test_what_nobody_said_is_unknown_and_not_room() -> None:
    """An agent without a reading may be about to stop."""
    assert render_known([], NOW) == "unknown"
    week = row(13.4, name="week", minutes=10_080, read_s=-400)
    assert render_known([row(42), week], NOW) == "5 h 42 %, week 13 % (6 min ago)"
    assert render_known([row(100, model="large")], NOW) == "5 h of large 100 % (0 min ago)"
