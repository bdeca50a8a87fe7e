"""Handoffs as records under a real daemon: expected, listed, drawn, cancelled, retried, judged."""

import json

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.seats import run

pytestmark = pytest.mark.size("every")

TERMS = {
    "expect": ["doors/front.txt"],
    "accept": ["it opens"],
    "constraint": ["no nails"],
    "priority": "high",
    "rollback": "demo",
    "question": ["what is missing?"],
}


def read(world: WorkingWorld, *words: str) -> dict[str, object]:
    done = run(world, "handoff", *words, "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.size("test")
def test_a_failed_handoff_is_rolled_back_with_what_was_expected(world: WorkingWorld) -> None:
    """From the command that asks for a door to the one that says it is missing."""
    session = world.begin()
    world.open("understudy", session=session, **TERMS)
    world.wait_handed_over(session)
    packet = world.read_packet(session)
    assert packet["expectations"] == {
        "deliverables": ["doors/front.txt"],
        "acceptance_criteria": ["it opens"],
        "constraints": ["no nails"],
        "priority": "high",
    }
    assert packet["rollback"] == {"agent": "demo", "questions": ["what is missing?"]}
    (row,) = read(world, "list")["handoffs"]
    assert (row["status"], row["priority"], row["depth"]) == ("working", "high", 1)
    text = run(world, "handoff", "show", row["handoff"][-8:]).out
    assert "deliverable doors/front.txt: missing" in text
    assert "question: what is missing?" in text
    done = run(world, "handoff", "fail", row["handoff"], "--note", "it does not open")
    assert (done.status, done.err) == (0, "")
    assert "is under way" in done.out
    found = world.wait_for(session, lambda now: len(now.done) == 2, "the rollback agent took over")
    assert found.agent == "demo"
    packet = world.read_packet(session, 1)
    assert packet["rollback"] == {
        "agent": "demo",
        "questions": ["what is missing?"],
        "failed": row["handoff"],
        "why": "it does not open",
    }
    shown = run(world, "handoff", "history").out
    tree = shown[shown.index("session ") :].splitlines()
    assert [line.lstrip(" │├└─").split()[0] for line in tree] == ["session", *["leg", "handoff"] * 2, "leg"]
    assert "failed, depth 1, high priority, it does not open" in tree[2]
    view = read(world, "history")
    assert [one["parent"] for one in view["handoffs"]] == ["", row["handoff"]]
    (row,) = read(world, "list", "--session", session)["handoffs"]
    done = run(world, "handoff", "complete", row["handoff"], "--json")
    assert json.loads(done.out)["message"] == f"→ Handoff {row['handoff']} is closed."
    assert run(world, "handoff", "list").out == "No handoff is open.\n"
    assert len(read(world, "list", "--all")["handoffs"]) == 2
    again = run(world, "handoff", "complete", row["handoff"])
    assert (again.status, again.out) == (2, "")
    assert "was judged already" in again.err


def test_a_packet_that_cannot_be_written_lets_the_rollback_agent_go_on(world: WorkingWorld) -> None:
    """The disk refuses every packet: the predecessor has its own session back, and nothing was lost."""
    session = world.begin_worked("paint the shed")
    before = world.session(session).legs[0]
    resume = world.path(session, "resume")
    if resume.is_dir():
        resume.rmdir()
    resume.touch()
    world.open("understudy", session=session, rollback="demo", question=["what is missing?"])

    def is_back(found: Session) -> bool:
        return found.state is State.READY and found.agent == "demo" and len(found.legs) == 2

    found = world.wait_for(session, is_back, "the predecessor goes on")
    leg = found.legs[1]
    assert (leg.resumes, leg.native_id, found.handoff, found.done) == (True, before.native_id, None, ())
    assert [leg.agent for leg in found.legs if not leg.is_over] == ["demo"]
    message = str(world.where(session, "message"))
    assert message.startswith(f"→ The handoff failed: {resume} is a file")
    assert message.endswith(". demo goes on in its own session")
    rows = read(world, "list", "--all")["handoffs"]
    assert isinstance(rows, list)
    assert {(row["to"], row["status"]) for row in rows} == {("understudy", "failed"), ("demo", "failed")}
    resume.unlink()
    world.open("understudy", session=session)
    world.wait_handed_over(session)
    turns = world.read_packet(session)["recent_turns"]
    assert isinstance(turns, list)
    assert turns[0]["text"] == "paint the shed"


def test_a_plan_changes_nothing(world: WorkingWorld) -> None:
    """People look before they leap; an ended session is looked at as well."""
    session = world.begin()
    before = len(world.events(session))
    view = read(world, "plan")
    assert (view["successor"], view["agent"]) == ("understudy", "demo")
    assert [row["verdict"] for row in view["agents"]] == ["at work", "next"]
    view = read(world, "plan", "--session", session, "--needs", "shell")
    assert view["successor"] == ""
    assert view["agents"][1]["why"] == "its adapter does not declare shell"
    assert "No other agent is available." in run(world, "handoff", "plan", "--needs", "shell").out
    assert len(world.events(session)) == before
    world.stop(session)
    assert read(world, "plan")["agents"][0]["verdict"] == "last"


def test_what_cannot_be_meant_or_nobody_would_be_told_is_refused(world: WorkingWorld) -> None:
    """In one sentence, before anybody is stopped: a new session has no handoff, nor has who is at work."""
    with pytest.raises(WrongUseError, match="understudy would be the first agent of a new session"):
        world.open("understudy", expect=["a door"])
    session = world.begin()
    for fields, complaint in (
        ({"priority": "now"}, "there is no priority 'now'"),
        ({"question": ["why?"]}, "--question needs a rollback agent to answer it"),
        ({"rollback": "understudy"}, "understudy cannot be its own rollback agent"),
        ({"rollback": "nobody"}, "there is no agent 'nobody'"),
        ({"expect": ["x"] * 21}, "--expect takes at most 20 texts of 2000 characters"),
        ({"needs": ["vision"]}, "understudy: its adapter does not declare vision"),
    ):
        with pytest.raises(RelayError, match=complaint):
            world.open("understudy", session=session, **fields)
        assert world.session(session).state is State.READY
        with pytest.raises(RelayError, match=complaint):
            world.ask("use", session=session, agent="understudy", **fields)
    with pytest.raises(WrongUseError, match="demo is this session's agent already"):
        world.open("demo", session=session, expect=["a door"])
    done = run(world, "handoff", "show", "nothing")
    assert (done.status, done.out) == (2, "")
    assert done.err == "agent-relay: no handoff has the id 'nothing'\n  See: agent-relay handoff history\n"
