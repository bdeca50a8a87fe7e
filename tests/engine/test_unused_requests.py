"""What is wished of a session that is at work already: taken, or refused in a sentence, never passed over."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.limits import Rest
from agent_relay.domain.state import State
from agent_relay.store.ledger import update_ledger
from agent_relay.system.disk.folders import ensure_private
from tests.support.at_work import WorkingWorld

pytestmark = pytest.mark.size("every")


@pytest.mark.size("test")
def test_what_an_agent_at_work_cannot_be_given_is_refused_with_the_way_to_get_it(world: WorkingWorld) -> None:
    """A task dropped without a word is found out an hour later."""
    session = world.begin(task="paint the shed", model="large", args=["--name", "demo"])
    for wish, words in (
        ({"task": "mow the lawn"}, "the task"),
        ({"model": "small"}, "--model"),
        ({"args": ["--name", "other"]}, "the words after --"),
        ({"task": "x", "model": "y", "args": ["z"]}, "the task and --model and the words after --"),
    ):
        with pytest.raises(WrongUseError) as refused:
            world.open("demo", **wish)
        assert refused.value.sentence == f"demo is at work here already, so {words} would not be used"
        assert refused.value.hint == "Leave that out to attach to it, or begin another session: --new"
    again = world.open("demo", task="paint the shed", model="large", args=["--name", "demo"])
    assert (again["session"], again["note"]) == (session, "")
    assert world.open("demo", new=True, task="mow the lawn")["session"] != session


def test_a_task_for_a_session_that_goes_on_is_refused(world: WorkingWorld) -> None:
    """The agent resumes its own conversation: nothing is typed into that."""
    session = world.begin()
    world.type(session, b"\x04")
    world.wait_state(session, State.ENDED)
    with pytest.raises(WrongUseError, match="goes on where demo left it, so the task would not be used"):
        world.open("demo", session=session, task="mow the lawn")
    assert world.open("demo", session=session, model="small")["session"] == session
    with pytest.raises(WrongUseError, match="demo's own session goes on where it was left, so the task"):
        world.open("demo", new=True, task="mow the lawn", **{"from": "demo"})


def test_a_task_given_with_a_handover_is_what_the_successor_looks_at_first(world: WorkingWorld) -> None:
    """The user said what to do, to whom: that is what a focus is."""
    session = world.begin(task="paint the shed")
    world.open("understudy", task="mow the lawn", focus="the edges")
    world.wait_handed_over(session)
    (begun,) = [event.body for event in world.events(session) if isinstance(event.body, HandoffBegun)]
    assert begun.focus == "mow the lawn\nthe edges"


def test_a_new_session_under_a_resting_agent_begins_and_says_so(world: WorkingWorld) -> None:
    """The user may know better than the ledger, and may have forgotten."""
    until = datetime.now(UTC) + timedelta(days=3)
    ensure_private(world.folders.state)
    rest = Rest("demo", "", "account", until, evidence="session limit", seen_at=datetime.now(UTC))
    update_ledger(world.folders.ledger, lambda _: (rest,))
    answer = world.open("demo")
    note = str(answer["note"])
    assert note.startswith("→ demo rests until ")
    assert note.endswith("started all the same. If it does not rest: agent-relay limits clear demo")
    assert world.open("demo")["note"] == ""
