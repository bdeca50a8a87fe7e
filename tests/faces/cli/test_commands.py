import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pexpect
import pytest

from agent_relay.domain.events.session import LegReady, LegStarting, SessionCreated
from agent_relay.domain.limits import Rest
from agent_relay.domain.names import build_ulid
from agent_relay.store.ledger import update_ledger
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal
from tests.faces.cli_run import World, create_world

pytestmark = pytest.mark.size("test")

LOGGED = '{"error":{"type":"billing","message":"out of credits now"}}'
AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = build_ulid(1_795_000_000_000, b"0123456789")


@pytest.fixture
def world(tmp_path: os.PathLike[str]) -> World:
    """A user without agents or sessions."""
    return create_world(f"{tmp_path}")


def _plant_session(world: World, *, task: str = "fix the parser") -> str:
    """The folder of a session that is ready under `demo`, as a daemon left it."""
    write_entry(f"{world.home}/state/sessions", SESSION, root=world.cwd, cwd=world.cwd)
    folder = make_session_folder(world.cwd, SESSION)
    journal = SessionJournal(f"{folder}/journal.jsonl")
    created = SessionCreated(SESSION, world.cwd, world.cwd, ("demo",), task)
    for generation, body in ((0, created), (1, LegStarting("L1", "demo", 1)), (1, LegReady("L1"))):
        journal.append(body, at=AT, generation=generation, durable=False)
    journal.close()
    return folder


def test_the_version_is_one_line(world: World) -> None:
    """Bug reports begin with it."""
    done = world.run("--version")
    assert (done.status, done.out, done.err) == (0, "agent-relay 0.1.0\n", "")


def test_help_names_every_command(world: World) -> None:
    """A command nobody can find does not exist."""
    done = world.run("--help")
    assert done.status == 0
    for word in ("attach", "status", "sessions", "limits", "order", "packet", "replay", "doctor", "daemon"):
        assert f"\n  {word} " in done.out
    assert world.run().out == done.out


def test_a_misspelt_word_is_wrong_use_with_a_suggestion(world: World) -> None:
    """Starting a daemon for a typo would be a strange answer."""
    done = world.run("sttaus")
    assert (done.status, done.out) == (2, "")
    assert "there is no agent and no command 'sttaus'" in done.err
    assert "Did you mean status?" in done.err
    assert not os.path.exists(f"{world.home}/run")


def test_hostile_words_are_shown_harmlessly(world: World) -> None:
    """An escape sequence in an error message would reach the terminal."""
    done = world.run("../../\x1b[31mx")
    assert done.status == 2
    assert "\x1b" not in done.err


def test_an_unknown_option_is_wrong_use_everywhere(world: World) -> None:
    """Exit status 2 means the same in hot and in cold commands."""
    for words in (
        ("status", "--nope"),
        ("sessions", "--nope"),
        ("demo", "--nope"),
        ("agent", "demo", "--nope"),
    ):
        assert world.run(*words).status == 2, words


def test_status_shows_what_runs_here(world: World) -> None:
    """The one command people type without thinking."""
    assert (
        world.run("status").out
        == "No session is running in this repository. Start one: agent-relay <agent>\n"
    )
    _plant_session(world)
    done = world.run("status")
    assert done.status == 0
    assert done.out.splitlines()[0].split() == ["state", "agent", "since", "session", "title", "about"]
    assert done.out.splitlines()[1].split()[:2] == ["ready", "demo"]
    assert done.out.splitlines()[1].endswith(f"{SESSION}  fix the parser")


def test_status_as_json_is_the_same_view(world: World) -> None:
    """What a person sees, a script can read."""
    folder = _plant_session(world)
    view = json.loads(world.run("status", "--json").out)
    assert view["root"] == world.cwd
    (session,) = view["sessions"]
    assert (session["session"], session["state"], session["agent"]) == (SESSION, "ready", "demo")
    assert (session["folder"], session["task"], session["handoffs"]) == (folder, "fix the parser", 0)
    assert session["title"] == "fix the parser"


def test_control_characters_in_a_task_do_not_reach_the_terminal(world: World) -> None:
    """A task comes from anywhere; clearing the screen from a list would be a trick."""
    _plant_session(world, task="\x1b[2Jboo\nsecond line")
    out = world.run("status").out
    assert "\x1b" not in out
    assert "boo second line" in out


def test_a_damaged_journal_is_a_line_not_a_crash(world: World) -> None:
    """One broken session must not hide the others."""
    folder = _plant_session(world)
    with open(f"{folder}/journal.jsonl", "wb") as stream:
        stream.write(b"\xff\xfe not json\n{}\n")
    done = world.run("status")
    assert done.status == 0
    assert "unreadable" in done.out


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


def test_clearing_a_limit_of_nobody_names_the_wrong_word(world: World) -> None:
    """That a misspelt agent does not rest is true, and hides that another one still does."""
    unknown = world.run("limits", "clear", "nobody")
    assert (unknown.status, unknown.err.splitlines()[0]) == (2, "agent-relay: there is no agent 'nobody'")
    assert world.run("limits", "clear", "demo").err.splitlines()[0] == "agent-relay: demo does not rest"


def test_resume_says_that_it_needs_a_terminal(world: World) -> None:
    """The list of all commands does not tell a script what was wrong with this one."""
    done = world.run("resume")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "agent-relay: no session can be resumed: the relay shell needs a terminal\n"
        "  Without one: agent-relay run AGENT TASK --continue ID\n"
    )


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
    assert world.run("limits", "clear", "demo").status == 2
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
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("patience_s = 10\n")
    assert world.run("init").status == 0
    with open(path, encoding="utf-8") as stream:
        assert stream.read() == "patience_s = 10\n"
    with open(f"{world.cwd}/.agent-relay/.gitignore", encoding="utf-8") as stream:
        assert stream.read() == "*\n"


def test_a_configuration_error_is_78_and_names_the_key(world: World) -> None:
    """The user goes straight to the line that is off."""
    os.makedirs(f"{world.home}/config", mode=0o700)
    with open(f"{world.home}/config/config.toml", "w", encoding="utf-8") as stream:
        stream.write("patience = 10\n")
    done = world.run("order")
    assert done.status == 78
    assert "config.toml: patience: " in done.err


def test_doctor_says_one_line_each_and_fails_where_no_handoff_can_be(world: World) -> None:
    """With fewer than two agents the product cannot do its one thing."""
    done = world.run("doctor")
    assert done.status == 1
    assert "0 agents can work here, a handoff takes two" in done.out
    findings = json.loads(world.run("doctor", "--json").out)["findings"]
    assert {finding["level"] for finding in findings} == {"ok", "note", "problem"}


def test_commands_go_on_beside_a_broken_adapter_and_doctor_names_it(world: World) -> None:
    """A folder of an experiment must not stop what has nothing to do with it."""
    folder = f"{world.home}/config/adapters/zed"
    os.makedirs(folder)
    os.chmod(f"{world.home}/config", 0o700)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as stream:
        stream.write("name = [\n")
    _plant_session(world)
    for words in (
        ("agents",), ("order",), ("model",), ("limits",), ("sessions",), ("sessions", "--native"),
        ("metrics",), ("status",), ("adapters", "list"), ("order", "codex", "claude"),
    ):  # fmt: skip
        done = world.run(*words)
        assert (words, done.status) == (words, 0)
    for words in (("order", "zed"), ("model", "zed", "large"), ("metrics", "--agent", "zed")):
        done = world.run(*words)
        assert (words, done.status) == (words, 78)
        assert f"{folder}/adapter.toml is not TOML" in done.err
    assert f"an adapter is left out: {folder}/adapter.toml is not TOML" in world.run("doctor").out
    broken = json.loads(world.run("adapters", "list", "--json").out)["broken"]
    assert [one["name"] for one in broken] == ["zed"]


def test_doctor_names_agents_there_are_none_of(world: World) -> None:
    """A budget for a name that is misspelt would never count, and nobody would know."""
    os.makedirs(f"{world.home}/config", mode=0o700, exist_ok=True)
    with open(f"{world.home}/config/config.toml", "w", encoding="utf-8") as file:
        file.write('order = ["codex"]\n[[budgets]]\nper = "day"\nagent = "cluade"\ntokens = 5\n')
    out = world.run("doctor").out
    assert "budgets in config.toml names cluade, which is not an agent" in out
    assert "names codex" not in out


def test_no_daemon_is_69(world: World) -> None:
    """A script can tell an idle machine from a broken one."""
    done = world.run("daemon", "status", "--json")
    assert (done.status, json.loads(done.out)) == (69, {"running": False})
    assert world.run("daemon", "stop").out == "No daemon was running.\n"


def test_packets_schema_is_a_json_schema(world: World) -> None:
    """Other tools check packets with it."""
    schema = json.loads(world.run("packet", "schema").out)
    assert schema["properties"]["schema"]["const"] == "agent-relay/resume-packet"


def test_no_packet_yet_says_what_makes_one(world: World) -> None:
    """An empty answer would look like an empty packet."""
    done = world.run("packet", "show")
    assert done.status == 2
    assert "there is no packet here yet" in done.err


def test_trust_shows_the_files_and_then_loads_them(world: World) -> None:
    """Nobody should trust what was not listed."""
    folder = f"{world.cwd}/.agent-relay/adapters/zed"
    os.makedirs(folder)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as stream:
        stream.write(
            'name = "zed"\ntitle = "Zed"\nquit = []\n'
            '[launch]\nprogram = "zed"\n[deliver]\npacket_by = "paste"\nopening = "go"\n'
        )
    assert "is not trusted, so it is ignored" in world.run("adapters", "list").out
    assert "zed/adapter.toml" in world.run("adapters", "trust", "--yes").out
    listed = json.loads(world.run("adapters", "list", "--json").out)
    assert ("zed", "project") in [(row["name"], row["origin"]) for row in listed["adapters"]]


@pytest.mark.parametrize("words", [("limits",), ("limits", "clear", "ann"), ("status",)])
def test_a_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(
    world: World, words: tuple[str, ...]
) -> None:
    """It was said that nobody rests, and whoever was asked then did."""
    os.makedirs(f"{world.home}/state", mode=0o700)
    os.symlink("ledger.json", f"{world.home}/state/ledger.json")
    done = world.run(*words)
    assert done.status == 1
    assert f"cannot read {world.home}/state/ledger.json: Too many levels of symbolic links" in done.err
    assert "rest" not in done.out.lower()


def test_what_changed_while_its_user_was_asked_is_not_trusted(world: World) -> None:
    """An agent at work in the repository has the time a person takes to read."""
    _plant_adapter(world)
    folder = f"{world.cwd}/.agent-relay/adapters/zed"
    asking = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "adapters", "trust"],
        cwd=world.cwd,
        env=world.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert asking.stdout is not None
    shown = b""
    while b"Trust them?" not in shown:
        part = os.read(asking.stdout.fileno(), 4096)
        assert part, shown
        shown += part
    with open(f"{folder}/run", "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\n")
    _, said = asking.communicate(b"y\n", timeout=60)
    assert asking.returncode == 78
    assert b"was changed while you were asked, so nothing is trusted" in said


def _plant_adapter(world: World) -> None:
    folder = f"{world.cwd}/.agent-relay/adapters/zed"
    os.makedirs(folder)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as stream:
        stream.write('name = "zed"\n')


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"maybe\n", b"", b"n"])
def test_trust_that_is_refused_is_no_bug(world: World, answer: bytes) -> None:
    """To say no is an ordinary answer: one sentence, and nothing is trusted."""
    _plant_adapter(world)
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", "adapters", "trust"],
        cwd=world.cwd,
        env=world.environ(),
        input=answer,
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, said.splitlines()[0]) == (
        1,
        "agent-relay: the project's adapters are not trusted",
    )
    assert json.loads(world.run("adapters", "list", "--json").out)["project"]["trusted"] is False


@pytest.mark.parametrize(("key", "status"), [("\x03", 130), ("\x04", 1), ("\r", 1), ("n\r", 1), ("y\r", 0)])
def test_trust_is_refused_by_any_key_of_a_terminal(world: World, key: str, status: int) -> None:
    """Ctrl-C is an interruption, Ctrl-D and Enter are no."""
    _plant_adapter(world)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "agent_relay", "adapters", "trust"],
        cwd=world.cwd,
        env=world.environ() | {"TERM": "xterm"},
        encoding="utf-8",
    )
    child.expect_exact("Trust them? ", timeout=60)
    child.send(key)
    child.expect(pexpect.EOF, timeout=60)
    assert child.before is not None
    assert "internal error" not in child.before
    child.close()
    assert child.exitstatus == status


def test_a_reader_that_leaves_early_is_no_error(world: World) -> None:
    """`agent-relay packet schema | head -1` is ordinary."""
    pipe = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "packet", "schema"],
        cwd=world.cwd,
        env=world.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert pipe.stdout is not None
    assert pipe.stderr is not None
    with pipe.stdout, pipe.stderr:
        pipe.stdout.close()
        err = pipe.stderr.read()
    assert pipe.wait(60) in {0, 1, 141}
    assert err == b""
