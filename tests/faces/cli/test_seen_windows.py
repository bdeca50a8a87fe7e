"""`limits`, `agents` and `status` tell what agents said of their usage windows, or that they did not."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.store.usage_windows import update_windows
from tests.faces.cli_run import World, create_world

pytestmark = pytest.mark.size("test")


def _row(name: str, minutes: int, used: float) -> dict[str, object]:
    now = datetime.now(UTC)
    return {
        "agent": "demo",
        "model": "",
        "name": name,
        "resets_at": (now + timedelta(hours=2)).isoformat(),
        "source": "transcript",
        "read_at": (now - timedelta(minutes=7, seconds=5)).isoformat(),
        "minutes": minutes,
        "used_percent": used,
    }


@pytest.fixture
def world(tmp_path: os.PathLike[str]) -> World:
    """A user whose demo agent told of two windows seven minutes ago."""
    found = create_world(f"{tmp_path}")
    rows = [_row("session", 300, 91.6), _row("week", 10_080, 13)]
    update_windows(f"{found.home}/state/usage-windows.json", rows, datetime.now(UTC))
    return found


def test_limits_tells_use_age_and_source(world: World) -> None:
    """Whoever plans by it has to know how old it is and who said so."""
    table = world.run("limits").out
    assert "No agent is resting." in table
    (line,) = [one.split() for one in table.splitlines() if " 5 h " in one]
    assert " ".join(line).startswith("demo 5 h 92 % ")
    assert " ".join(line).endswith("7 min ago its transcript")
    told = json.loads(world.run("limits", "--json").out)
    assert [(one["name"], one["used_percent"]) for one in told["windows"]] == [
        ("session", 91.6),
        ("week", 13),
    ]
    assert (told["limits"], told["unseen"]) == ([], [])


def test_agents_and_status_tell_it_in_short(world: World) -> None:
    """Beside who may take over, and who rests."""
    known = "5 h 92 %, week 13 % (7 min ago)"
    table = world.run("agents", "--all").out
    assert known in table
    assert f"demo: used of its limits: {known}" in world.run("status").out
    rows = {row["name"]: row["windows"] for row in json.loads(world.run("agents", "--json").out)["agents"]}
    assert [len(rows["demo"]), len(rows["understudy"])] == [2, 0]
    assert len(json.loads(world.run("status", "--json").out)["windows"]) == 2


def test_an_agent_that_said_nothing_is_unknown(world: World) -> None:
    """Nothing said is not room: it may be about to stop."""
    (line,) = [one for one in world.run("agents", "--all").out.splitlines() if " understudy " in one]
    assert " unknown " in line
