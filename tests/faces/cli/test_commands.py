import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pexpect
import pytest

from agent_relay.domain.events.session import LegReady, LegStarting, SessionCreated
from agent_relay.domain.limits import Rest
from agent_relay.domain.names import build_ulid
from agent_relay.store.ledger import update_ledger
from tests.faces.cli_run import World
from tests.faces.terminals import Spawned, see
from tests.support import preloaded
from tests.support.preloaded import Command

pytestmark = pytest.mark.size("test")

LOGGED = '{"error":{"type":"billing","message":"out of credits now"}}'
AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = build_ulid(1_795_000_000_000, b"0123456789")


def _plant_session(world: World, *, task: str = "fix the parser") -> str:
    """The folder of a session that is ready under `demo`, as a daemon left it."""
    created = SessionCreated(SESSION, world.cwd, world.cwd, ("demo",), task)
    bodies = (created, LegStarting("L1", "demo", 1), LegReady("L1"))
    return os.path.dirname(world.plant(SESSION, *((AT, body) for body in bodies)))


def test_the_version_is_one_line(world: World) -> None:
    """Bug reports begin with it."""
    done = world.run("--version")
    assert (done.status, done.out, done.err) == (0, "agent-relay 0.1.0\n", "")


def test_a_misspelt_word_is_wrong_use_with_a_suggestion(world: World) -> None:
    """Starting a daemon for a typo would be a strange answer; an escape sequence in it stays one."""
    done = world.run("sttaus")
    assert (done.status, done.out) == (2, "")
    assert "there is no agent and no command 'sttaus'" in done.err
    assert "Did you mean status?" in done.err
    hostile = world.run("../../\x1b[31mx")
    assert (hostile.status, "\x1b" in hostile.err) == (2, False)
    assert not os.path.exists(f"{world.home}/run")


def test_status_shows_what_runs_here(world: World) -> None:
    """The one command people type without thinking; a task comes from anywhere, and moves no cursor."""
    none = "No session is running in this repository. Start one: agent-relay <agent>\n"
    assert world.run("status").out == none
    folder = _plant_session(world, task="\x1b[2Jfix\nthe parser")
    done = world.run("status")
    assert (done.status, "\x1b" in done.out) == (0, False)
    head, row = (line.split() for line in done.out.splitlines()[:2])
    assert head == ["state", "agent", "since", "session", "title", "about"]
    assert row[:2] == ["ready", "demo"]
    assert done.out.splitlines()[1].endswith("fix the parser")
    view = json.loads(world.run("status", "--json").out)
    assert view["root"] == world.cwd
    (session,) = view["sessions"]
    assert (session["session"], session["state"], session["agent"]) == (SESSION, "ready", "demo")
    assert (session["folder"], session["task"], session["handoffs"]) == (folder, "\x1b[2Jfix\nthe parser", 0)
    assert session["title"].endswith("fix the parser")


def test_order_is_set_shown_and_checked(world: World) -> None:
    """The order decides who is asked at 18:20 on a Friday."""
    assert world.run("order", "nobody").status == 2
    twice = world.run("order", "demo", "demo")
    assert (twice.status, twice.err) == (
        2,
        "agent-relay: the order cannot be set: demo is named twice\n  Name each agent once\n",
    )
    assert world.run("order", "understudy", "demo").out == "understudy demo\n"
    assert json.loads(world.run("order", "--json").out) == {"order": ["understudy", "demo"]}


def test_resume_says_that_it_needs_a_terminal(world: World) -> None:
    """The list of all commands does not tell a script what was wrong with this one."""
    done = world.run("resume")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "agent-relay: no session can be resumed: the relay shell needs a terminal\n"
        "  Without one: agent-relay run AGENT TASK --continue ID\n"
    )
    assert world.run("resume", "--help").out.startswith("usage: agent-relay resume [SESSION]")
    assert world.run("resume", "one", "two").status == 2


def test_a_model_is_shown_and_set(world: World) -> None:
    """The file is the user's own; this is the way to change one word of it without opening it."""
    assert world.run("model").out == "Every agent has its own model.\n"
    assert world.run("model", "demo", "large").out == "agent  model\ndemo   large\n"
    assert '"demo": "large"' in world.run("model", "--json").out
    assert world.run("model", "demo", "-").out == "agent  model\ndemo   its own\n"
    refused = world.run("model", "nobody", "large")
    assert (refused.status, refused.err.splitlines()[0]) == (2, "agent-relay: there is no agent 'nobody'")


def test_agents_say_what_keeps_them_from_taking_over(world: World) -> None:
    """`not installed` is the answer to most questions."""
    rows = {row["name"]: row for row in json.loads(world.run("agents", "--json").out)["agents"]}
    assert rows["demo"]["program"].endswith("/demo/agent.py")
    assert (rows["demo"]["signed_in"], rows["demo"]["place"], rows["demo"]["scripted"]) == (True, None, True)
    others = [row for row in rows.values() if not row["scripted"]]
    assert [row["program"] for row in others] == [None, None, None, None]
    assert [row["place"] for row in others] == [1, 2, 3, 4]
    assert "demo" not in world.run("agents").out


def test_limits_show_who_rests_and_the_user_may_end_it(world: World) -> None:
    """A limit without a reset lasts until the user says that it was paid."""
    assert world.run("limits").out == "No agent is resting.\n"
    rest = Rest(agent="demo", model="", scope="billing", until=None, evidence=LOGGED, seen_at=AT)
    os.makedirs(f"{world.home}/state", mode=0o700)
    update_ledger(f"{world.home}/state/ledger.json", lambda _: [rest])
    (limit,) = json.loads(world.run("limits", "--json").out)["limits"]
    assert (limit["agent"], limit["scope"], limit["until"]) == ("demo", "billing", "")
    row = "demo   credit limit  you say otherwise  out of credits now"
    assert world.run("limits").out.splitlines()[1] == row
    assert re.search(r"demo .* you say otherwise ", world.run("agents", "--all").out)
    assert "(credit limit). It may work again: agent-relay limits clear demo" in world.run("status").out
    assert world.run("limits", "clear", "demo").status == 0
    assert world.run("limits").out == "No agent is resting.\n"
    assert world.run("limits", "clear", "demo").err.splitlines()[0] == "agent-relay: demo does not rest"
    # That a misspelt agent does not rest is true, and hides that another one still does.
    unknown = world.run("limits", "clear", "nobody")
    assert (unknown.status, unknown.err.splitlines()[0]) == (2, "agent-relay: there is no agent 'nobody'")
    update_ledger(f"{world.home}/state/ledger.json", lambda _: [rest])
    assert json.loads(world.run("limits", "clear", "demo", "--json").out) == {"cleared": "demo"}


def test_an_hour_that_relay_assumes_is_not_shown_as_the_agents_word(world: World) -> None:
    """An agent that only said "later" may be back sooner, or not: the user has to know who named the hour."""
    rest = Rest("demo", "", "account", None, "daily quota", datetime.now(UTC))
    os.makedirs(f"{world.home}/state", mode=0o700)
    update_ledger(f"{world.home}/state/ledger.json", lambda _: [rest])
    for word, rows in (("limits", "limits"), ("status", "resting"), ("agents", "agents")):
        shown = world.run(word, *(("--all",) if word == "agents" else ())).out
        assert len(re.findall(r"about .*\d\d:\d\d \(assumed\)", shown)) == 1
        told = json.loads(world.run(word, "--json").out)[rows]
        assert [row.get("name", "demo") for row in told if row["assumed"]] == ["demo"]


def test_init_is_harmless_when_repeated(world: World) -> None:
    """The second time somebody's own configuration stands there."""
    assert world.run("init").status == 0
    path = f"{world.home}/config/config.toml"
    Path(path).write_text("patience_s = 10\n", "utf-8")
    assert world.run("init").status == 0
    assert Path(path).read_text("utf-8") == "patience_s = 10\n"
    assert Path(f"{world.cwd}/.agent-relay/.gitignore").read_text("utf-8") == "*\n"


def test_a_configuration_error_is_78_and_names_the_key(world: World) -> None:
    """The user goes straight to the line that is off."""
    world.configure("patience = 10\n")
    done = world.run("order")
    assert done.status == 78
    assert "config.toml: patience: " in done.err


def test_commands_go_on_beside_a_broken_adapter_and_doctor_names_it(world: World) -> None:
    """A folder of an experiment must not stop what has nothing to do with it."""
    folder = f"{world.home}/config/adapters/zed"
    os.makedirs(folder)
    os.chmod(f"{world.home}/config", 0o700)
    Path(f"{folder}/adapter.toml").write_text("name = [\n", "utf-8")
    _plant_session(world)
    for words in (
        *("agents", "order", "model", "limits", "sessions", "sessions --native", "metrics", "status"),
        *("adapters list", "order codex claude"),
    ):
        assert (words, world.run(*words.split()).status) == (words, 0)
    for words in ("order zed", "model zed large", "metrics --agent zed"):
        done = world.run(*words.split())
        assert (words, done.status) == (words, 78)
        assert f"{folder}/adapter.toml is not TOML" in done.err
    assert f"an adapter is left out: {folder}/adapter.toml is not TOML" in world.run("doctor").out
    broken = json.loads(world.run("adapters", "list", "--json").out)["broken"]
    assert [one["name"] for one in broken] == ["zed"]


def test_doctor_names_agents_there_are_none_of(world: World) -> None:
    """A misspelt name's budget would never count; with fewer than two agents nothing can be handed over."""
    world.configure('order = ["codex"]\n[[budgets]]\nper = "day"\nagent = "cluade"\ntokens = 5\n')
    done = world.run("doctor")
    assert done.status == 1
    assert "budgets in config.toml names cluade, which is not an agent" in done.out
    assert "names codex" not in done.out
    assert "0 agents can work here, a handoff takes two" in done.out


def test_no_daemon_is_69(world: World) -> None:
    """A script can tell an idle machine from a broken one."""
    done = world.run("daemon", "status", "--json")
    assert (done.status, json.loads(done.out)) == (69, {"running": False})
    assert world.run("daemon", "stop").out == "No daemon was running.\n"


def test_trust_shows_the_files_and_then_loads_them(world: World) -> None:
    """Nobody should trust what was not listed."""
    with open(f"{_plant_adapter(world)}/adapter.toml", "a", encoding="utf-8") as stream:
        stream.write(
            'title = "Zed"\nquit = []\n'
            '[launch]\nprogram = "zed"\n[deliver]\npacket_by = "paste"\nopening = "go"\n'
        )
    assert "is not trusted, so it is ignored" in world.run("adapters", "list").out
    assert "zed/adapter.toml" in world.run("adapters", "trust", "--yes").out
    listed = json.loads(world.run("adapters", "list", "--json").out)
    assert ("zed", "project") in [(row["name"], row["origin"]) for row in listed["adapters"]]


def _plant_adapter(world: World) -> str:
    folder = f"{world.cwd}/.agent-relay/adapters/zed"
    os.makedirs(folder)
    Path(f"{folder}/adapter.toml").write_text('name = "zed"\n', "utf-8")
    return folder


def _ask_trust(world: World) -> Spawned:
    """A terminal on which somebody is asked whether the project's adapters are to be trusted."""
    child = Spawned(Command(["adapters", "trust"], world.environ() | {"TERM": "xterm"}, world.cwd))
    child.expect_exact("Trust them? ")
    return child


def test_what_changed_while_its_user_was_asked_is_not_trusted(world: World) -> None:
    """An agent at work in the repository has the time a person takes to read."""
    folder = _plant_adapter(world)
    child = _ask_trust(world)
    Path(f"{folder}/run").write_text("#!/bin/sh\n", "utf-8")
    see(child, "was changed while you were asked, so nothing is trusted", typed="y\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 78


def test_trust_that_is_refused_is_no_bug(world: World) -> None:
    """To say no is an ordinary answer, as Enter or no answer are: one sentence, and nothing is trusted."""
    _plant_adapter(world)
    for answer in (b"n\n", b"\n", b"maybe\n", b"", b"n"):
        done = preloaded.run(["adapters", "trust"], env=world.environ(), cwd=world.cwd, given=answer)
        (said, *_) = done.stderr.decode().splitlines()
        assert (answer, done.returncode) == (answer, 1)
        assert said == "agent-relay: the project's adapters are not trusted"
    assert json.loads(world.run("adapters", "list", "--json").out)["project"]["trusted"] is False


def test_trust_is_refused_by_any_key_of_a_terminal(world: World) -> None:
    """Ctrl-C is an interruption, Ctrl-D and Enter are no."""
    _plant_adapter(world)
    for key, status in (("\x03", 130), ("\x04", 1), ("\r", 1), ("n\r", 1), ("y\r", 0)):
        child = _ask_trust(world)
        child.send(key)
        child.expect(pexpect.EOF)
        assert "internal error" not in str(child.before)
        child.close()
        assert (key, child.exitstatus) == (key, status)
