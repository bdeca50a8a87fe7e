"""Who rests until when, which budgets are used up and how much of the windows is told, or is unknown."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import work
from agent_relay.domain.events.session import LegStarting, SessionCreated, SessionEnded
from agent_relay.domain.limits import Rest
from agent_relay.store.ledger import update_ledger
from agent_relay.store.usage_windows import update_windows
from tests.faces.cli_run import World
from tests.support.shells import ShellPerson, shell_world

pytestmark = pytest.mark.size("test")

NOW = datetime.now(UTC)
SOON, LATER = (NOW + timedelta(hours=hours) for hours in (1, 3))
SESSIONS = tuple(f"01JD000000000000000000000{number}" for number in range(3))
USED = "20,000,000 tokens of your budget a session are used"


def rest(world: World, *rests: tuple[str, str, datetime | None]) -> None:
    """The ledger holds these: agent, scope, end."""
    rows = [Rest(agent, "", scope, until, "spent", seen_at=NOW) for agent, scope, until in rests]
    update_ledger(f"{world.home}/state/ledger.json", lambda _: rows)


def note(world: World, session: str, *noted: work.BudgetNoted, has_ended: bool = False) -> None:
    """A session of the demo agent whose journal has these lines on budgets."""
    created = SessionCreated(session, world.cwd, world.cwd, ("demo",), "mow the lawn")
    end = (SessionEnded("the agent was left"),) if has_ended else ()
    world.plant(session, *((NOW, body) for body in (created, LegStarting("L1", "demo", 1), *noted, *end)))


def read_row(world: World) -> Mapping[str, object]:
    """What programs are told of the demo agent."""
    rows = json.loads(world.run("agents", "--json").out)["agents"]
    found: Mapping[str, object] = next(row for row in rows if row["name"] == "demo")
    return found


def test_of_several_rests_the_one_that_ends_last_counts(world: World) -> None:
    """Whoever plans by an earlier one asks an agent that still rests."""
    rest(world, ("demo", "budget", LATER), ("demo", "account", SOON))
    row = read_row(world)
    assert (row["rests_until"], row["scope"]) == (LATER.isoformat(), "budget")
    assert [one["scope"] for one in row["rests"]] == ["budget", "account"]
    (line,) = [one for one in world.run("agents", "--all").out.splitlines() if " demo " in one]
    assert f"{LATER:%H:%M} (budget, usage limit)" in line
    rest(world, ("demo", "billing", None), ("demo", "account", LATER))
    assert read_row(world)["scope"] == "billing"
    assert "you say otherwise (credit limit, usage limit)" in world.run("agents", "--all").out


def test_a_budget_that_is_used_up_is_told_though_nobody_rests_for_it(world: World) -> None:
    """A session's budget, and one that only warns, are in no ledger."""
    spent = work.BudgetNoted("L1", "yours", "spent", USED)
    warned = work.BudgetNoted("L1", "other", "warn", "half of it is used")
    today = work.BudgetNoted("L1", "today", "spent", "$5 a day is used up", "demo", until=LATER.isoformat())
    over = work.BudgetNoted("L1", "over", "spent", "$4 a day was used up", until="2020-01-01T00:00:00+00:00")
    note(world, SESSIONS[0], spent, warned, today, over)
    note(world, SESSIONS[1], today, has_ended=True)
    note(world, SESSIONS[2], spent, has_ended=True)
    told = read_row(world)["budgets"]
    assert sorted(told, key=str) == [
        {"budget": "today", "text": "$5 a day is used up", "until": LATER.isoformat(), "session": ""},
        {"budget": "yours", "text": USED, "until": "", "session": SESSIONS[0]},
    ]
    shown = world.run("agents", "--all").out.splitlines()[-2:]
    assert sorted(shown) == ["demo: $5 a day is used up", f"demo: {USED}"]


def _row(name: str, minutes: int, used: float) -> dict[str, object]:
    return {
        "agent": "demo",
        "model": "",
        "name": name,
        "resets_at": (NOW + timedelta(hours=2)).isoformat(),
        "source": "transcript",
        "read_at": (datetime.now(UTC) - timedelta(minutes=7, seconds=5)).isoformat(),
        "minutes": minutes,
        "used_percent": used,
    }


@pytest.fixture
def seen(world: World) -> World:
    """A user whose demo agent told of two windows seven minutes ago."""
    rows = [_row("session", 300, 91.6), _row("week", 10_080, 13)]
    update_windows(f"{world.home}/state/usage-windows.json", rows, datetime.now(UTC))
    return world


def test_limits_tells_use_age_and_source(seen: World) -> None:
    """Whoever plans by it has to know how old it is and who said so."""
    table = seen.run("limits").out
    assert "No agent is resting." in table
    (line,) = [one.split() for one in table.splitlines() if " 5 h " in one]
    assert " ".join(line).startswith("demo 5 h 92 % ")
    assert " ".join(line).endswith("7 min ago its transcript")
    told = json.loads(seen.run("limits", "--json").out)
    assert [(one["name"], one["used_percent"]) for one in told["windows"]] == [
        ("session", 91.6),
        ("week", 13),
    ]
    assert (told["limits"], told["unseen"]) == ([], [])


def test_agents_and_status_tell_it_in_short(seen: World) -> None:
    """Beside who may take over, and who rests."""
    known = "5 h 92 %, week 13 % (7 min ago)"
    table = seen.run("agents", "--all").out
    assert known in table
    # Nothing said is not room: it may be about to stop.
    (line,) = [one for one in table.splitlines() if " understudy " in one]
    assert " unknown " in line
    assert f"demo: used of its limits: {known}" in seen.run("status").out
    rows = {row["name"]: row["windows"] for row in json.loads(seen.run("agents", "--json").out)["agents"]}
    assert [len(rows["demo"]), len(rows["understudy"])] == [2, 0]
    assert len(json.loads(seen.run("status", "--json").out)["windows"]) == 2


def test_a_ledger_that_cannot_be_read_is_told_and_not_taken_for_an_empty_one(world: World) -> None:
    """Whoever plans with it would ask an agent that rests: people and programs read the error's own words."""
    why = world.spoil_ledger()
    for words in ("limits", "limits clear ann", "status"):
        done = world.run(*words.split())
        assert (words, done.status) == (words, 1)
        assert why in done.err
        assert "rest" not in done.out.lower()
    done = world.run("agents", "--all")
    assert done.status == 1
    assert why in done.err
    cells = [line.split() for line in done.out.splitlines() if line.split()[1:2] == ["demo"]]
    assert [row[-3] for row in cells] == ["unknown"]
    listed = world.run("agents", "--json")
    assert listed.status == 1
    assert {row["resting"] for row in json.loads(listed.out)["agents"]} == {None}
    assert f"who rests is unknown: {why}" in world.run("watch", "--no-follow").out
    told = [json.loads(line) for line in world.run("watch", "--no-follow", "--json").out.splitlines()]
    (rests,) = [one for one in told if one["type"] == "resting"]
    assert (rests["agents"], rests["unknown"]) == ([], why)


@pytest.mark.size("every")
def test_the_shell_says_that_it_is_unknown() -> None:
    """Its line above the prompt is where people look for who rests."""
    with shell_world() as shells:
        os.symlink("ledger.json", shells.folders.ledger)
        person = ShellPerson(shells)
        person.wait_for("resting agents unknown")
        person.terminal.close()
