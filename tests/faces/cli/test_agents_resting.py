"""`agents` tells until when each agent rests and which budgets are used up, for people and for programs."""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import work
from agent_relay.domain.events.session import LegStarting, SessionCreated, SessionEnded
from agent_relay.domain.limits import Rest
from agent_relay.store.ledger import update_ledger
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal
from tests.faces.cli_run import World, create_world

pytestmark = pytest.mark.size("test")

NOW = datetime.now(UTC)
SOON, LATER = (NOW + timedelta(hours=hours) for hours in (1, 3))
SESSIONS = tuple(f"01JD000000000000000000000{number}" for number in range(3))
USED = "20,000,000 tokens of your budget a session are used"


@pytest.fixture
def world(tmp_path: os.PathLike[str]) -> World:
    """A user without agents or sessions."""
    return create_world(f"{tmp_path}")


def rest(world: World, *rests: tuple[str, str, datetime | None]) -> None:
    """The ledger holds these: agent, scope, end."""
    rows = [Rest(agent, "", scope, until, "spent", seen_at=NOW) for agent, scope, until in rests]
    update_ledger(f"{world.home}/state/ledger.json", lambda _: rows)


def note(world: World, session: str, *noted: work.BudgetNoted, has_ended: bool = False) -> None:
    """A session of the demo agent whose journal has these lines on budgets."""
    folder = make_session_folder(world.cwd, session)
    created = SessionCreated(session, world.cwd, world.cwd, ("demo",), "mow the lawn")
    end = (SessionEnded("the agent was left"),) if has_ended else ()
    with closing(SessionJournal(f"{folder}/journal.jsonl")) as journal:
        for body in (created, LegStarting("L1", "demo", 1), *noted, *end):
            journal.append(body, at=NOW, generation=1, durable=False)
    write_entry(f"{world.home}/state/sessions", session, root=world.cwd, cwd=world.cwd)


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
