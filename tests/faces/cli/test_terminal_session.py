import json
import os
import signal

import pexpect
import pytest

from tests.faces.terminals import Spawned, Terminals, press, see
from tests.house import tree

pytestmark = pytest.mark.size("every")


def _end(child: Spawned) -> int | None:
    child.expect(pexpect.EOF)
    child.close()
    status: int | None = child.exitstatus
    return status


def _open(terminals: Terminals, *words: str) -> Spawned:
    """A terminal whose agent waits for a prompt."""
    child = terminals.open("agent", "demo", *words)
    child.expect_exact("ready | demo")
    return child


def _begin(terminals: Terminals) -> Spawned:
    """The same, whose agent was said hello to and has answered."""
    child = _open(terminals)
    see(child, "demo heard you", typed="hello\r")
    return child


@pytest.mark.size("test")
def test_an_agent_named_from_another_terminal_takes_over_in_both_with_what_is_to_be_done(
    terminals: Terminals,
) -> None:
    """`claude "fix the bug"` is what fingers know, and `agent-relay codex` beside it the plainest switch."""
    first = terminals.open("agent", "demo", "fix the bug")
    first.expect_exact("demo heard you")
    (session,) = terminals.read_status()
    assert (session["agent"], session["task"]) == ("demo", "fix the bug")
    second = terminals.open("understudy", "mind the tests")
    see(first, "demo → understudy", "understudy goes on")
    second.expect_exact("understudy goes on")
    (session,) = terminals.read_status()
    assert (session["agent"], session["task"]) == ("understudy", "fix the bug")
    with open(f"{session['folder']}/{session['packet']}", encoding="utf-8") as stream:
        assert "mind the tests" in stream.read()


@pytest.mark.size("test")
def test_detach_leaves_the_agent_and_attach_brings_it_back(terminals: Terminals) -> None:
    """Closing a laptop must not cost a turn. Ctrl-] belongs to telnet, so the key can be another one.

    A script reads relay's numbers, which mean the same whichever agent failed; a person is told its own.
    """
    terminals.world.configure('order = ["demo", "understudy"]\nrelay_key = "ctrl-t"\n')
    child = _begin(terminals)
    see(child, "Detached; demo keeps working.", typed="\x14/detach\r")
    assert _end(child) == 0
    (session,) = terminals.read_status()
    assert session["agent"] == "demo"
    again = terminals.open("attach")
    see(again, "demo heard you", "ready | demo")
    see(again, "demo ended with status 7.", typed="leave\r")
    assert _end(again) == 1
    assert terminals.read_status() == []


@pytest.mark.size("test")
def test_the_relay_prompt_answers_and_hands_over_to_the_next_of_the_order(terminals: Terminals) -> None:
    """Switching must need neither a limit nor a name that is remembered."""
    child = _begin(terminals)
    see(child, "under demo, 0 handoffs", typed="\x1d/status\r")
    see(child, "ready | demo", typed=" ")
    see(child, "demo → understudy", "understudy goes on", typed="\x1d/handoff the tests first\r")
    assert "the tests first" in terminals.world.run("packet", "show").out


def test_a_killed_daemon_costs_the_person_nothing(terminals: Terminals) -> None:
    """The agent runs on, the screen goes on, and the limit afterwards is still seen."""
    child = _open(terminals)
    status = json.loads(terminals.world.run("daemon", "status", "--json").out)
    os.kill(int(status["pid"]), signal.SIGKILL)
    see(child, "demo heard you", typed="hello\r")
    assert terminals.world.run("daemon", "start").status == 0
    see(child, "demo → understudy", "understudy goes on", typed="now the limit\r")


@pytest.mark.size("test")
def test_nobody_left_is_status_three_with_the_first_reset(terminals: Terminals) -> None:
    """Scripts retry at the reset; people go home."""
    child = _open(terminals)
    see(child, "understudy goes on", "ready | understudy", typed="limit\r")
    child.send("limit\r")
    child.expect_exact("No agent is available (demo: rests until")
    child.expect_exact("Every agent rests. First reset: demo at")
    press(child, "l", "To return: agent-relay attach")
    assert _end(child) == 3
    limits = json.loads(terminals.world.run("limits", "--json").out)["limits"]
    assert {limit["agent"] for limit in limits} == {"demo", "understudy"}


def _start_without_relay(terminals: Terminals, task: str) -> "pexpect.spawn[str]":
    """The person uses the agent as it is."""
    plain = terminals.spawn(os.path.join(tree.ADAPTERS, "demo", "agent.py"), "--name", "demo")
    plain.expect_exact("ready | demo")
    see(plain, "demo heard you", typed=f"{task}\r")
    return plain


def _work_without_relay(terminals: Terminals, task: str = "paint the shed green") -> None:
    """The person used the agent as it is, and left."""
    plain = _start_without_relay(terminals, task)
    plain.send("\x04")
    plain.expect(pexpect.EOF)


@pytest.mark.size("test")
def test_a_session_relay_did_not_start_is_handed_over(terminals: Terminals) -> None:
    """Most people hit their limit before they have heard of relay."""
    _work_without_relay(terminals)
    child = terminals.open("understudy", "--from", "demo")
    see(child, "demo → understudy", "understudy goes on")
    packet = terminals.world.run("packet", "show").out
    assert "paint the shed green" in packet


def test_a_session_relay_did_not_start_is_resumed_by_its_own_agent(terminals: Terminals) -> None:
    """From here on its limit is relay's business."""
    _work_without_relay(terminals)
    child = terminals.open("agent", "demo", "--from", "demo")
    see(child, "> paint the shed green", "ready | demo")


@pytest.mark.size("test")
def test_a_session_of_the_agents_own_is_offered_beside_what_cannot_be_read(terminals: Terminals) -> None:
    """People forget `--from`; and yes to what is shown would be yes to older work."""
    _work_without_relay(terminals)
    closed = f"{terminals.world.home}/agents/demo/newer.jsonl"
    os.makedirs(closed)
    child = terminals.open("understudy")
    child.expect_exact(
        f"a session of demo's is left out: cannot read the transcript {closed}: Is a directory"
    )
    see(child, "demo has a session of its own here", "paint the shed green")
    see(child, "understudy goes on", typed="y\r")


def test_an_offer_that_is_not_taken_starts_a_new_session(terminals: Terminals) -> None:
    """Enter alone must not adopt anything."""
    _work_without_relay(terminals)
    child = terminals.open("agent", "demo")
    child.expect_exact("Go on with it?")
    see(child, "ready | demo", typed="\r")
    (session,) = terminals.read_status()
    assert session["handoffs"] == 0


def test_of_several_sessions_one_is_chosen_by_its_number(terminals: Terminals) -> None:
    """Whoever tried two things this morning means one of them."""
    _work_without_relay(terminals)
    _work_without_relay(terminals, "mow the lawn")
    child = terminals.open("understudy")
    child.expect_exact("Agents have sessions of their own here:")
    child.expect(r"1  demo, 0 min old: mow the lawn\s+2  demo, 0 min old: paint the shed green")
    child.expect_exact("Go on with one of them? [1-2, Enter for none]")
    see(child, "understudy goes on", typed="2\r")
    assert "paint the shed" in terminals.world.run("packet", "show").out


def test_nothing_to_adopt_is_said(terminals: Terminals) -> None:
    """An empty session under the wrong name would look like lost work."""
    child = terminals.open("understudy", "--from", "demo")
    child.expect_exact("demo has no session in")
    assert _end(child) == 2


def test_a_session_whose_own_program_still_runs_is_not_taken_over_unasked(terminals: Terminals) -> None:
    """It may go on by itself at its reset: two agents at one task, and nobody knows."""
    plain = _start_without_relay(terminals, "paint the shed green")
    refused = terminals.open("understudy", "--from", "demo")
    refused.expect_exact(f"(process {plain.pid}) and may go on with that session itself")
    assert _end(refused) == 2
    assert plain.isalive()
    child = terminals.open("understudy", "--from", "demo", "--yes")
    child.expect_exact("understudy goes on")
    plain.expect(pexpect.EOF)
    assert not plain.isalive()
