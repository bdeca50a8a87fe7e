"""Budgets under a real daemon: told, handed over, ended; on the screen and without one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.limits import Mark
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import wait_until
from tests.support.seats import Done, run
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

SCENES = [
    {"when": "some", "do": [{"use": {"input": 700, "output": 100}, "say": "some"}]},
    {"when": "long", "do": [{"use": {"input": 2000}}, {"say": "I go on"}, {"wait_s": 50}]},
    {"when": "rest", "do": [{"use": {"input": 0, "output": 900}, "say": "the rest"}]},
    {"when": "dear", "do": [{"use": {"input": 1_000_000, "model": "claude-opus-4-8"}, "say": "dear"}]},
    {"again": True, "do": [{"say": "heard"}]},
]
BUDGET = '[[budgets]]\nper = "{0}"\nagent = "demo"\ntokens = 1000\nthen = "{1}"\n'


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """Two scripted agents, and no daemon yet."""
    with working_world(starts=False, demo=SCENES, understudy=SCENES[-1:]) as made:
        yield made


def begin(world: WorkingWorld, text: str) -> str:
    """A session under a daemon that knows these budgets."""
    world.configure(text)
    return world.begin()


def wait_mark(world: WorkingWorld, session: str, mark: Mark) -> Session:
    return world.wait_for(
        session, lambda found: mark in {known.mark for known in found.budgets}, f"a budget to be {mark}"
    )


def test_the_user_is_told_before_and_when_it_is_used_up(world: WorkingWorld) -> None:
    """On the terminal and in `status`, and nothing else happens."""
    session = begin(world, BUDGET.format("session", "warn"))
    world.say(session, "some")
    wait_mark(world, session, Mark.WARN)
    assert world.where(session, "message") == (
        "→ 800 tokens of your budget of 1,000 tokens a session for demo is used"
    )
    assert "800 tokens of your budget of 1,000 tokens a session for demo" in run(world, "status").out
    world.say(session, "rest")
    wait_mark(world, session, Mark.SPENT)
    assert world.where(session, "message") == (
        "→ Your budget of 1,000 tokens a session for demo is used up (1,700 tokens). "
        "You decide what happens next"
    )
    view = json.loads(run(world, "status", "--json").out)["sessions"][0]["budgets"]
    assert [one["mark"] for one in view.values()] == ["spent"]
    assert (world.names(session).count("budget.noted"), world.session(session).handoff) == (2, None)


@pytest.mark.parametrize("per", sized(["session", "day"], ["session"]))
@pytest.mark.size("every")
def test_who_used_up_a_budget_gives_way_once_and_for_all(world: WorkingWorld, per: str) -> None:
    """After the turn, and not while somebody types; a day's is in the ledger until midnight.

    Who takes over is told: it would explain a limit of unknown scope to its user, which nobody met.
    """
    session = begin(world, BUDGET.format(per, "handoff"))
    world.say(session, "some")
    wait_mark(world, session, Mark.WARN)
    world.say(session, "rest")
    world.type(session, b"and another th")
    wait_mark(world, session, Mark.SPENT)
    world.finish_turn(session)
    assert world.session(session).handoff is None
    world.type(session, b"\x03")
    done = world.wait_handed_over(session).done[0]
    spent = f"your budget of 1,000 tokens a {per} for demo is used up (1,700 tokens)"
    assert done.why == spent
    packet = world.read_packet(session)
    assert (packet["budget"], packet["checkpoint_reason"]) == (spent, "rate_limit")
    text = world.path(session, done.text_path).read_text("utf-8")
    assert f"until the user's budget for it was spent ({spent})" in " ".join(text.split())
    assert "hit a limit" not in text
    world.say(session, "hello")
    world.finish_turn(session)
    names = world.names(session)
    assert (names.count("handoff.begun"), names.count("budget.applied")) == (1, 1)
    assert ("demo" in run(world, "limits").out) == (per == "day")


def test_a_session_that_is_to_end_is_ended_in_the_middle_of_its_turn(world: WorkingWorld) -> None:
    """Whoever works on uses more; the work stays, and the session says why it ended."""
    session = begin(world, BUDGET.format("session", "stop"))
    assert world.find_workers()
    world.say(session, "long")
    found = world.wait_state(session, State.ENDED)
    assert found.why == "your budget of 1,000 tokens a session for demo is used up (2,000 tokens)"
    wait_until(lambda: not world.find_workers(), "nothing of the agent to be left")


@pytest.mark.size("every")
def test_money_whose_price_is_not_known_is_told_and_known_money_counts(world: WorkingWorld) -> None:
    """1 M tokens of that model cost $5; the demo agent's own has no price."""
    session = begin(world, '[[budgets]]\nper = "day"\ndollars = 6\n')
    world.say(session, "some")
    wait_mark(world, session, Mark.UNPRICED)
    lost = "no price is known for 800 tokens of scripted"
    assert world.where(session, "message") == (
        f"→ N{lost[1:]}, so your budget of $6.00 a day cannot be kept for them"
    )
    world.say(session, "dear")
    wait_mark(world, session, Mark.WARN)
    assert world.session(session).budgets[0].text == (
        f"at least $5.00 of your budget of $6.00 a day is used; {lost}"
    )


def run_headless(world: WorkingWorld, task: str, text: str) -> Done:
    """A turn without a screen, under a daemon that knows these budgets."""
    world.configure(text)
    return run(world, "run", "demo", task)


@pytest.mark.size("every")
def test_a_headless_run_goes_on_with_somebody_else_or_ends(world: WorkingWorld) -> None:
    """Nobody watches it: that is what budgets are for."""
    assert run_headless(world, "long", BUDGET.format("session", "handoff")).status == 0
    view = json.loads(run(world, "status", "--all", "--json").out)["sessions"][0]
    assert (view["state"], view["agent"], view["handoffs"]) == ("ended", "understudy", 1)
    assert [one["text"] for one in view["budgets"].values()] == [
        "your budget of 1,000 tokens a session for demo is used up (2,000 tokens)"
    ]


@pytest.mark.size("every")
def test_a_headless_run_tells_of_a_budget_on_its_terminal(world: WorkingWorld) -> None:
    """Of a day's at its beginning already: whoever runs one turn after the other is never attached."""
    assert run_headless(world, "some", '[[budgets]]\nper = "day"\ntokens = 1000\n').status == 0
    done = run(world, "run", "demo", "hello")
    assert done.status == 0
    assert "→ 800 tokens of your budget of 1,000 tokens a day is used\n" in done.err


@pytest.mark.size("every")
def test_a_headless_run_is_ended_beyond_its_budget(world: WorkingWorld) -> None:
    """In the middle of its turn, with the reason and a failure's status."""
    done = run_headless(world, "long", BUDGET.format("session", "stop"))
    assert done.status == 1
    assert "budget of 1,000 tokens a session for demo is used up (2,000 tokens)" in done.err
    wait_until(lambda: not world.find_workers(), "nothing of the agent to be left")


@pytest.mark.size("every")
def test_a_budget_that_cannot_be_counted_says_so_until_it_can_be(world: WorkingWorld) -> None:
    """An agent's damaged records, another one's even, may hold what uses it up."""
    damaged = Path(world.home, ".local/share/opencode/opencode.db")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    session = begin(world, '[[budgets]]\nper = "day"\ntokens = 100000\n')
    world.say(session, "some")
    wait_mark(world, session, Mark.UNCOUNTED)
    said = "not all that counts for your budget of 100,000 tokens a day can be counted"
    assert said.capitalize() in str(world.where(session, "message"))
    assert said in run(world, "status").out
    damaged.unlink()
    world.say(session, "rest")
    wait_mark(world, session, Mark.OPEN)
    assert said.capitalize() not in str(world.where(session, "message"))
    assert said not in run(world, "status").out
    damaged.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    world.say(session, "some")
    wait_mark(world, session, Mark.UNCOUNTED)
