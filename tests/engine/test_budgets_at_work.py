"""Budgets under a real daemon: told, handed over, ended; on the screen and without one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.domain.limits import Mark
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import begin, finish_turn, folder_of, has_taken_over, restart, say
from tests.support.handoffs import write_screenplays
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, wait_until

pytestmark = pytest.mark.size("test")

SCENES = [
    {"when": "some", "do": [{"use": {"input": 700, "output": 100}, "say": "some"}]},
    {"when": "long", "do": [{"use": {"input": 2000}}, {"say": "I go on"}, {"wait_s": 50}]},
    {"when": "rest", "do": [{"use": {"input": 0, "output": 900}, "say": "the rest"}]},
    {"when": "dear", "do": [{"use": {"input": 1_000_000, "model": "claude-opus-4-8"}, "say": "dear"}]},
    {"again": True, "do": [{"say": "heard"}]},
]
BUDGET = '[[budgets]]\nper = "{0}"\nagent = "demo"\ntokens = 1000\nthen = "{1}"\n'


def configure(world: RelayWorld, text: str) -> None:
    """A new daemon knows the budgets and what the agents play."""
    with Path(world.folders.config, "config.toml").open("a", encoding="utf-8") as file:
        file.write(text)
    world.environ |= write_screenplays(f"{world.folder}/budgets", demo=SCENES, understudy=SCENES[-1:])
    restart(world)


def wait_mark(world: RelayWorld, session: str, mark: Mark) -> Session:
    return world.wait_for(
        session, lambda found: mark in {known.mark for known in found.budgets}, f"a budget to be {mark}"
    )


def count(world: RelayWorld, session: str, name: str) -> int:
    return [event.body.name for event in world.events(session)].count(name)


def run_command(world: RelayWorld, *words: str) -> "subprocess.CompletedProcess[str]":
    environ = {**world.environ, "PYTHONPATH": tree.CHECKOUT}
    return subprocess.run(
        [sys.executable, "-m", "agent_relay", *words], cwd=world.project, env=environ, capture_output=True,
        text=True, stdin=subprocess.DEVNULL, timeout=180, check=False,
    )  # fmt: skip


def test_the_user_is_told_before_and_when_it_is_used_up(world: RelayWorld) -> None:
    """On the terminal and in `status`, and nothing else happens."""
    configure(world, BUDGET.format("session", "warn"))
    session = begin(world)
    say(world, session, "some")
    wait_mark(world, session, Mark.WARN)
    assert str(world.ask("where", session=session)["message"]) == (
        "→ 800 tokens of your budget of 1,000 tokens a session for demo is used"
    )
    assert (
        "800 tokens of your budget of 1,000 tokens a session for demo" in run_command(world, "status").stdout
    )
    say(world, session, "rest")
    wait_mark(world, session, Mark.SPENT)
    assert str(world.ask("where", session=session)["message"]) == (
        "→ Your budget of 1,000 tokens a session for demo is used up (1,700 tokens). "
        "You decide what happens next"
    )
    view = json.loads(run_command(world, "status", "--json").stdout)["sessions"][0]["budgets"]
    assert [one["mark"] for one in view.values()] == ["spent"]
    assert (count(world, session, "budget.noted"), world.session(session).handoff) == (2, None)


@pytest.mark.parametrize("per", ["session", "day"])
def test_who_used_up_a_budget_gives_way_once_and_for_all(world: RelayWorld, per: str) -> None:
    """After the turn, and not while somebody types; a day's is in the ledger until midnight."""
    configure(world, BUDGET.format(per, "handoff"))
    session = begin(world)
    say(world, session, "some")
    wait_mark(world, session, Mark.WARN)
    say(world, session, "rest")
    type_into(folder_of(world, session), b"and another th")
    wait_mark(world, session, Mark.SPENT)
    finish_turn(world, session)
    assert world.session(session).handoff is None
    type_into(folder_of(world, session), b"\x03")
    found = world.wait_for(session, has_taken_over, "the understudy to take over")
    assert found.done[0].why == f"your budget of 1,000 tokens a {per} for demo is used up (1,700 tokens)"
    say(world, session, "hello")
    finish_turn(world, session)
    assert (count(world, session, "handoff.begun"), count(world, session, "budget.applied")) == (1, 1)
    rests = run_command(world, "limits").stdout
    assert ("demo" in rests) == (per == "day")


def test_who_takes_over_for_a_budget_is_told_that(world: RelayWorld) -> None:
    """It would explain a limit of unknown scope to its user, which nobody met."""
    configure(world, BUDGET.format("session", "handoff"))
    session = begin(world)
    say(world, session, "some")
    finish_turn(world, session)
    say(world, session, "rest")
    handoff = world.wait_for(session, has_taken_over, "the understudy to take over").done[0]
    spent = "your budget of 1,000 tokens a session for demo is used up (1,700 tokens)"
    folder = Path(world.project, ".agent-relay", "sessions", session)
    packet = json.loads((folder / handoff.json_path).read_text(encoding="utf-8"))
    assert (packet["budget"], packet["checkpoint_reason"]) == (spent, "rate_limit")
    text = (folder / handoff.text_path).read_text(encoding="utf-8")
    assert f"until the user's budget for it was spent ({spent})" in " ".join(text.split())
    assert "hit a limit" not in text


def test_a_session_that_is_to_end_is_ended_in_the_middle_of_its_turn(world: RelayWorld) -> None:
    """Whoever works on uses more; the work stays, and the session says why it ended."""
    configure(world, BUDGET.format("session", "stop"))
    session = begin(world)
    assert world.find_workers()
    say(world, session, "long")
    found = world.wait_for(session, lambda found: found.state is State.ENDED, "the session to end")
    assert found.why == "your budget of 1,000 tokens a session for demo is used up (2,000 tokens)"
    wait_until(lambda: not world.find_workers(), "nothing of the agent to be left")


def test_a_daemon_killed_before_it_acted_acts_when_it_is_back(world: RelayWorld) -> None:
    """Neither forgotten nor done twice."""
    configure(world, BUDGET.format("session", "handoff"))
    session = begin(world)
    say(world, session, "some")
    wait_mark(world, session, Mark.WARN)
    say(world, session, "rest")
    type_into(folder_of(world, session), b"half a line")
    wait_mark(world, session, Mark.SPENT)
    world.kill_daemons()
    type_into(folder_of(world, session), b"\x03")
    world.start_daemon()
    world.wait_for(session, has_taken_over, "the understudy to take over")
    assert (count(world, session, "budget.noted"), count(world, session, "budget.applied")) == (2, 1)


def test_money_whose_price_is_not_known_is_told_and_known_money_counts(world: RelayWorld) -> None:
    """1 M tokens of that model cost $5; the demo agent's own has no price."""
    configure(world, '[[budgets]]\nper = "day"\ndollars = 6\n')
    session = begin(world)
    say(world, session, "some")
    wait_mark(world, session, Mark.UNPRICED)
    lost = "no price is known for 800 tokens of scripted"
    assert str(world.ask("where", session=session)["message"]) == (
        f"→ N{lost[1:]}, so your budget of $6.00 a day cannot be kept for them"
    )
    say(world, session, "dear")
    wait_mark(world, session, Mark.WARN)
    assert world.session(session).budgets[0].text == (
        f"at least $5.00 of your budget of $6.00 a day is used; {lost}"
    )


def test_a_headless_run_goes_on_with_somebody_else_or_ends(world: RelayWorld) -> None:
    """Nobody watches it: that is what budgets are for."""
    configure(world, BUDGET.format("session", "handoff"))
    done = run_command(world, "run", "demo", "long", "--json")
    assert done.returncode == 0
    view = json.loads(run_command(world, "status", "--all", "--json").stdout)["sessions"][0]
    assert (view["state"], view["agent"], view["handoffs"]) == ("ended", "understudy", 1)
    assert [one["text"] for one in view["budgets"].values()] == [
        "your budget of 1,000 tokens a session for demo is used up (2,000 tokens)"
    ]


def test_a_headless_run_tells_of_a_budget_on_its_terminal(world: RelayWorld) -> None:
    """Of a day's at its beginning already: whoever runs one turn after the other is never attached."""
    configure(world, '[[budgets]]\nper = "day"\ntokens = 1000\n')
    assert run_command(world, "run", "demo", "some").returncode == 0
    done = run_command(world, "run", "demo", "hello")
    assert done.returncode == 0
    assert "→ 800 tokens of your budget of 1,000 tokens a day is used\n" in done.stderr


def test_a_headless_run_is_ended_beyond_its_budget(world: RelayWorld) -> None:
    """In the middle of its turn, with the reason and a failure's status."""
    configure(world, BUDGET.format("session", "stop"))
    done = run_command(world, "run", "demo", "long")
    assert done.returncode == 1
    assert "budget of 1,000 tokens a session for demo is used up (2,000 tokens)" in done.stderr
    wait_until(lambda: not world.find_workers(), "nothing of the agent to be left")


def test_a_budget_that_cannot_be_counted_says_so_until_it_can_be(world: RelayWorld) -> None:
    """An agent's damaged records, another one's even, may hold what uses it up."""
    damaged = Path(world.home, ".local/share/opencode/opencode.db")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    configure(world, '[[budgets]]\nper = "day"\ntokens = 100000\n')
    session = begin(world)
    say(world, session, "some")
    wait_mark(world, session, Mark.UNCOUNTED)
    said = "not all that counts for your budget of 100,000 tokens a day can be counted"
    assert said.capitalize() in str(world.ask("where", session=session)["message"])
    assert said in run_command(world, "status").stdout
    damaged.unlink()
    say(world, session, "rest")
    wait_mark(world, session, Mark.OPEN)
    assert said.capitalize() not in str(world.ask("where", session=session)["message"])
    assert said not in run_command(world, "status").stdout
    damaged.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    say(world, session, "some")
    wait_mark(world, session, Mark.UNCOUNTED)
