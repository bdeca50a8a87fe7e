"""An agent speaks for its own session through its tools, and for nobody else's."""

import json
import os
import pwd
import signal
import sys

import pytest

from agent_relay.domain.state import State
from tests.support.at_work import LIMIT, SCENES, WorkingWorld, working_world
from tests.support.mcp_client import read_token, tool_client
from tests.support.relay_world import wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("every")

TASK = {
    "to": "understudy",
    "title": "finish the door",
    "intent": "the door must close",
    "current_state": "the frame stands",
    "next_step": "hang the door",
}
ACTS = ["accept", "complete", "fail", "reject", "checkpoint"]
EVERY = ["status", "recall", "handoff", "compact", "list", "show", "limits", "plan", *ACTS]
REFUSED = "this is not the agent at work in that session"
ASK_AGAIN = "agent-relay's MCP server was restarted: ask again"


def find_servers(world: WorkingWorld) -> list[int]:
    return [pid for pid, command in world.processes().items() if "mcp/server.py" in command]


def test_one_server_serves_every_agent_and_leaves_after_them(world: WorkingWorld) -> None:
    """Its library takes a hundred megabytes: one copy is enough, and none where nobody needs it."""
    session = world.begin()
    who = read_token(world, session)
    with tool_client(world, *who) as one, tool_client(world, *who) as other:
        listed = one.request("tools/list")["result"]
        assert isinstance(listed, dict)
        assert [tool["name"] for tool in listed["tools"]] == EVERY
        assert json.loads(other.call("status"))["session"] == session
        assert len(find_servers(world)) == 1
    wait_until(lambda: not find_servers(world), "the server leaves", limit_s=60)
    with tool_client(world, *who) as later:
        assert json.loads(later.call("status"))["agent"] == "demo"


@pytest.mark.size("test")
def test_an_agent_hands_over_at_its_turns_end(shared: WorkingWorld) -> None:
    """What it wrote reaches its successor, and every file with its lines."""
    session = shared.begin(new=True)
    shared.say(session, "near the end")
    shared.finish_turn(session)
    with tool_client(shared, *read_token(shared, session)) as client:
        files = [{"path": "door.py", "lines": "3-9", "note": "hinges"}]
        told = json.loads(
            client.call("handoff", **TASK, files=files, priority="high", blockers=["no screws"])
        )
        assert told["to"] == "understudy"
        assert told["payload"]["task"]["title"] == "finish the door"
        assert told["payload"]["context"]["files"] == [{"path": "door.py", "lines": "3-9", "note": "hinges"}]
        for part in ("HANDOFF", "TASK\nfinish the door", "NEXT STEP\nhang the door", "door.py:3-9 — hinges"):
            assert part in told["message"]
        done = shared.wait_handed_over(session)
        assert done.done[0].id == told["handoff"]
        assert done.done[0].terms.priority == "high"
        text, is_error = client.try_call("status")
        assert (text.partition(".")[0], is_error) == (REFUSED, True), "it is not at work any more"
    folder = f"{shared.project}/.agent-relay/sessions/{session}"
    with open(f"{folder}/{done.done[0].json_path}", encoding="utf-8") as file:
        packet = json.load(file)
    assert packet["next_task"] == "hang the door"
    assert "the frame stands" in packet["narrative"]
    assert {"path": "door.py", "lines": "3-9", "note": "hinges"}.items() <= packet["touched_files"][0].items()
    with tool_client(shared, *read_token(shared, session)) as successor:
        accepted = json.loads(successor.call("accept", note="understood"))["accepted"]
        assert (accepted["from"], accepted["accepted"], accepted["priority"]) == ("demo", True, "high")
        assert "near the end" in successor.call("recall", query="near the end")
        assert json.loads(successor.call("complete", note="it closes"))["verdict"] == "completed"
        rows = json.loads(successor.call("list"))["handoffs"]
        assert [(row["to"], row["status"]) for row in rows] == [("understudy", "completed")]
        shown = json.loads(successor.call("show", handoff=rows[0]["handoff"][-6:]))
        assert (shown["status"], shown["note"]) == ("completed", "it closes")
        assert shown["lane"] == "read the packet: it had no conversation here"
        assert successor.try_call("show", handoff="other") == (
            "this session has no handoff 'other'. Call list",
            True,
        )


@pytest.mark.size("test")
def test_what_is_missing_is_named(shared: WorkingWorld) -> None:
    """An agent mends its request by itself if it is told all at once."""
    session = shared.begin(new=True)
    with tool_client(shared, *read_token(shared, session)) as client:
        text, is_error = client.try_call("handoff", to="understudy", title="  ")
        assert is_error
        assert text.startswith("the handoff lacks title, intent, current_state, next_step. ")
        for wrong, said in (
            ({"to": "demo"}, "demo is already at work"),
            ({"to": "nobody"}, "there is no agent"),
            ({"priority": "soon"}, "there is no priority 'soon'"),
            ({"title": "x" * 9000}, "title is longer than 8000 characters"),
            ({"to": 7}, "Expected `str`"),
            ({"files": [{"path": "a"}] * 51}, "50 files"),
        ):
            text, is_error = client.try_call("handoff", **{**TASK, **wrong})
            assert is_error
            assert said in text
        assert client.try_call("checkpoint", note="")[1]
        assert client.try_call("recall")[1]
        assert client.try_call("accept")[0].startswith("this agent was not started by a handoff")
        assert client.try_call("launch_rocket")[0].startswith("there is no tool")
    assert shared.session(session).request is None


@pytest.mark.size("test")
def test_nobody_speaks_for_another_session(shared: WorkingWorld) -> None:
    """A forged name, a forged token and none get the same answer, whatever they ask for."""
    session = shared.begin(new=True)
    other = shared.begin(new=True)
    leg, token = read_token(shared, session)
    theirs, _ = read_token(shared, other)
    for who in ((theirs, token), (leg, token[:-1]), (leg, ""), ("", ""), ("L" * 26, token), ("a b", token)):
        with tool_client(shared, *who) as client:
            answers = {client.try_call(tool, **TASK, query="x", note="x") for tool in EVERY}
            assert len(answers) == 1
            text, is_error = answers.pop()
            assert is_error
            assert text.startswith(REFUSED)
            assert session not in text
            assert other not in text


def take_over(world: WorkingWorld, **terms: object) -> tuple[str, str]:
    """A session that the understudy took over on these terms, and the handoff."""
    session = world.begin(new=True)
    world.open("understudy", session=session, **terms)
    return session, world.wait_handed_over(session).done[0].id


@pytest.mark.size("test")
def test_an_agents_verdict_comes_with_evidence(shared: WorkingWorld) -> None:
    """The user's command decides, with the user's environment; what an agent says is kept as its word."""
    session, handoff = take_over(shared, check=["test -f door.txt"], accept=["it opens"])
    with tool_client(shared, *read_token(shared, session)) as client:
        brought = json.loads(client.call("accept"))["accepted"]
        assert (brought["acceptance_criteria"], brought["checks"]) == (["it opens"], ["test -f door.txt"])
        evidence = {
            "criteria": [{"criterion": "1", "met": True, "how": "pushed it"}],
            "blockers": [{"kind": "access", "text": "no key", "requires": "the key"}],
            "completed": ["the frame"],
            "suggested_next": "paint it",
        }
        told = json.loads(client.call("complete", note="done", **evidence))
        assert (told["closed"], [one["verdict"] for one in told["criteria"]]) == (False, ["unmet", "met"])
        assert "is not met. Mend it" in told["message"]
        with open(f"{shared.project}/door.txt", "w", encoding="utf-8"):
            pass
        told = json.loads(client.call("complete", note="done", **evidence))
        assert (told["closed"], told["message"]) == (True, "Recorded.")
    view = json.loads(run(shared, "handoff", "show", handoff, "--json").out)
    assert (view["status"], view["result"]["by"], view["result"]["suggested_next"]) == (
        "completed",
        "understudy",
        "paint it",
    )
    assert [(one["criterion"], one["verdict"], one["by"]) for one in view["criteria"]] == [
        ("it opens", "met", "understudy"),
        ("test -f door.txt", "met", "relay"),
    ]


def test_evidence_is_checked_at_the_door(shared: WorkingWorld) -> None:
    """An agent's loop must not fill the journal, nor one of its words stand for another."""
    trap = f"{shared.project}/trap"
    environ = {**shared.environ, "AGENT_RELAY_LEG": "L"}
    session, handoff = take_over(shared, check=[f"touch {trap}"], accept=["it opens"], env=environ)
    with tool_client(shared, *read_token(shared, session)) as client:
        for wrong, said in (
            ({"deliverables": ["a"] * 21}, "at most 20 texts"),
            ({"questions": ["a" * 2001]}, "2000 characters"),
            ({"criteria": [{"criterion": "1", "met": True, "how": " "}]}, "lacks how it was checked"),
            ({"criteria": [{"criterion": "1", "met": "yes", "how": "x"}]}, "Expected `bool`"),
            ({"criteria": [{"criterion": "9", "met": True, "how": "x"}]}, "there is no criterion 9"),
            ({"blockers": [{"kind": "mood", "text": "x"}]}, "no kind of blocker 'mood'"),
            ({"blockers": ["no key"]}, "Expected `object`"),
            ({"note": "x" * 9000}, "note is longer"),
        ):
            text, is_error = client.try_call("complete", **wrong)
            assert is_error
            assert said in text
        assert client.try_call("reject", note=" ")[1]
        # Fields that only a person may set are no arguments of the tool.
        told = json.loads(client.call("complete", run_proposed=True, anyway=True, by="you"))
        assert told["closed"]
    assert not os.path.exists(trap)
    assert shared.session(session).closed == (handoff,)


def test_an_agent_rejects_its_handoff(shared: WorkingWorld) -> None:
    """The rollback agent follows when the turn is over, with the reason."""
    session, handoff = take_over(shared, expect=["a door"], rollback="demo")
    with tool_client(shared, *read_token(shared, session)) as client:
        told = json.loads(client.call("reject", note="not my trade", questions=["whose is it?"]))
        assert (told["verdict"], told["closed"], told["asked_for"]["to"]) == ("rejected", False, "demo")
    shared.finish_turn(session)
    done = shared.wait_for(session, lambda found: len(found.done) == 2, "the rollback agent took over")
    assert (done.done[-1].to_agent, done.done[-1].rolls_back) == ("demo", handoff)
    view = json.loads(run(shared, "handoff", "show", handoff, "--json").out)
    assert (view["status"], view["result"]["by"], view["result"]["questions"]) == (
        "rejected",
        "understudy",
        ["whose is it?"],
    )
    user = pwd.getpwuid(os.getuid()).pw_name
    assert view["judged_by"] == {"agent": "understudy", "user": user, "via": "mcp"}
    assert f"judged by understudy, {user} (an agent's tool)" in run(shared, "handoff", "show", handoff).out
    assert "rejected" in run(shared, "handoff", "history", session).out


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_rollback_takes_the_place_of_the_limit_that_comes_first(*, is_killed: bool) -> None:
    """Also where the daemon is killed between what the agent said and its limit."""
    with working_world() as world:
        gate = f"{world.folder}/gate"
        waits = {"when": "try it", "do": [{"run": f"until [ -e {gate} ]; do sleep 0.1; done"}, LIMIT]}
        read = {"when": "handoff-context", "do": [{"say": "I have read it."}]}
        world.play(demo=SCENES, understudy=[read, waits])
        session, failed = take_over(world, expect=["a door"], rollback="demo")
        world.wait_for(session, lambda found: found.state is State.READY, "it has read the packet")
        world.say(session, "try it")
        world.wait_for(session, lambda found: found.state is State.BUSY, "its turn began")
        with tool_client(world, *read_token(world, session)) as client:
            client.call("fail", note="no hinges")
        if is_killed:
            world.restart()
        with open(gate, "w", encoding="utf-8"):
            pass
        done = world.wait_for(session, lambda found: len(found.done) == 2, "the rollback agent took over")
        assert (done.done[-1].to_agent, done.done[-1].rolls_back) == ("demo", failed)
        view = json.loads(run(world, "handoff", "show", failed, "--json").out)
        assert (view["status"], view["note"]) == ("failed", "no hinges")
        limits = json.loads(run(world, "limits", "--json").out)["limits"]
        assert [one["agent"] for one in limits] == ["understudy"]


def test_an_agent_sees_limits_and_plan(shared: WorkingWorld) -> None:
    """Whom it can hand over to is known before it asks."""
    session = shared.begin(new=True)
    with tool_client(shared, *read_token(shared, session)) as client:
        agents = {row["agent"]: row for row in json.loads(client.call("limits"))["agents"]}
        assert agents["understudy"]["installed"]
        assert not agents["understudy"]["rests"]
        assert json.loads(client.call("plan"))["successor"] == "understudy"
        assert json.loads(client.call("checkpoint", note="half done", next_step="the rest"))["kept"]
    note = shared.session(session).note
    assert note is not None
    assert (note.text, note.next_step) == ("half done", "the rest")


def test_a_killed_server_and_a_killed_daemon_are_survived(world: WorkingWorld) -> None:
    """The agent keeps its tools as long as it lives, whatever of ours has died meanwhile."""
    session = world.begin()
    with tool_client(world, *read_token(world, session)) as client:
        client.call("status")
        for pid in find_servers(world):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not find_servers(world), "the server is gone")
        # What a dying server took in is not known to have been done: the agent is asked to say it again.
        first = client.request("tools/call", name="status", arguments={})
        assert "result" in first or first["error"] == {"code": -32000, "message": ASK_AGAIN}
        assert json.loads(client.call("status"))["session"] == session
        world.restart()
        assert json.loads(client.call("status"))["session"] == session
        world.kill_daemons()
        os.close(os.open(world.folders.stopped_mark, os.O_CREAT | os.O_WRONLY, 0o600))
        text, is_error = client.try_call("status")
        assert (text.partition(".")[0], is_error) == ("the daemon was stopped", True)
        for pid in find_servers(world):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not find_servers(world), "the server is gone")
        refusal = client.request("tools/list")["error"]
        assert isinstance(refusal, dict)
        assert refusal["message"] in {"agent-relay's daemon is not running", ASK_AGAIN}


def test_hostile_lines_harm_nobody_else(shared: WorkingWorld) -> None:
    """One agent's nonsense ends its own connection at most."""
    session = shared.begin(new=True)
    who = read_token(shared, session)
    with tool_client(shared, *who) as good, tool_client(shared, *who) as bad:
        for line in ("", "{", "[]", '{"jsonrpc": "2.0"}', "\ud7ff" * 10, '{"id": {"method": 1}}', "[" * 5000):
            bad.send(line)
        bad.send("x" * (2 << 20))
        assert json.loads(good.call("status"))["session"] == session


def test_the_command_is_the_same_pipe(shared: WorkingWorld) -> None:
    """Somebody whose agent is configured by hand needs no path inside our package."""
    session = shared.begin(new=True)
    command = [sys.executable, "-m", "agent_relay", "mcp"]
    with tool_client(shared, *read_token(shared, session), command) as client:
        assert json.loads(client.call("status"))["session"] == session
    with tool_client(shared, "", "", command) as client:
        assert client.try_call("status")[0].startswith(REFUSED)
