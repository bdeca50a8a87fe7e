"""The command line as people and scripts meet it: first steps, pipes, JSON, exit codes."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.limits import Rest
from agent_relay.domain.state import State
from agent_relay.store.ledger import update_ledger
from agent_relay.system.disk.folders import ensure_private
from tests.support.person import at_terminal
from tests.support.relay_world import RelayWorld, relay_world
from tests.support.seats import Done, find_session, relay, run, seat, seated_world


@pytest.fixture
def newcomer() -> Iterator[RelayWorld]:
    """A home with nothing in it, a folder that is no repository, and none of the agents installed."""
    with relay_world(order=()) as world:
        os.remove(f"{world.folders.config}/config.toml")
        os.rmdir(world.folders.config)
        os.rmdir(os.path.dirname(world.folders.config))
        world.environ["PATH"] = "/usr/bin:/bin"
        yield world


def let_rest(world: RelayWorld, *agents: str) -> None:
    """Those agents have hit their limit in another session."""
    now = datetime.now(UTC)
    until = now + timedelta(hours=1)
    rests = [Rest(agent, "", "account", until, evidence="session limit", seen_at=now) for agent in agents]
    ensure_private(world.folders.state)
    update_ledger(world.folders.ledger, lambda _: rests)


WRONG = (
    (("nonsense",), 2, "there is no agent and no command 'nonsense'"),
    (("sttaus",), 2, "there is no agent and no command 'sttaus'"),
    (("agent",), 2, "`agent` needs the name of an agent"),
    (("agent", "nobody"), 2, "there is no agent and no command 'nobody'"),
    (("attach",), 2, "no session is running here"),
    (("attach", "XYZ"), 2, "no session has the id 'XYZ'"),
    (("attach", "--nope"), 2, " attach: unknown option '--nope'"),
    (("stop",), 2, "no session is running here"),
    (("status", "--nope"), 2, " status: unknown option '--nope'"),
    (("packet", "show"), 2, "there is no packet here yet"),
    (("packet",), 2, " packet: missing command"),
    (("packet", "nonsense"), 2, " packet: unknown command 'nonsense'"),
    (("packet", "build"), 2, " packet build: missing option '--agent'"),
    (("sessions", "--nope"), 2, " sessions: unknown option '--nope'"),
    (("limits", "clear"), 2, " limits clear: missing argument 'agent'"),
    (("limits", "clear", "demo"), 2, "demo does not rest"),
    (("order", "nobody"), 2, "there is no agent 'nobody'"),
    (("daemon", "nonsense"), 2, " daemon: unknown command 'nonsense'"),
    (("replay",), 2, " replay: missing argument 'recording'"),
    (("replay", "/nonexistent", "--agent", "demo"), 2, "the recording /nonexistent cannot be read"),
    (("demo", "--nope"), 2, " demo: unknown option '--nope'"),
    (("agent", "demo", "--nope"), 2, " agent demo: unknown option '--nope'"),
    (
        ("agent", "demo", "fix", "it"),
        2,
        " agent demo: the task must be one argument, and 'it' is a second one",
    ),
    (("nobody", "fix it"), 2, "there is no agent and no command 'nobody'"),
)


@pytest.mark.size("test")
def test_every_wrong_step_is_one_sentence_and_one_hint(newcomer: RelayWorld) -> None:
    """Someone who has never seen relay makes all of these in the first hour."""
    for words, status, sentence in WRONG:
        done = run(newcomer, *words)
        assert (done.status, done.out) == (status, ""), words
        said, hint = done.err.splitlines()
        start = "agent-relay" if sentence.startswith(" ") else "agent-relay: "
        assert said.startswith(f"{start}{sentence}"), words
        assert hint.startswith("  "), words
    assert not os.path.exists(newcomer.environ["AGENT_RELAY_HOME"]), "a mistake leaves nothing behind"


@pytest.mark.size("test")
def test_the_first_steps_say_what_is_and_what_comes_next(newcomer: RelayWorld) -> None:
    """Nothing is installed, nothing was prepared, and there is no repository."""
    root = newcomer.project
    steps: tuple[tuple[str, int, str], ...] = (
        ("status", 0, "No session is running in this repository. Start one: agent-relay <agent>\n"),
        ("sessions", 0, "There are no sessions.\n"),
        ("limits", 0, "No agent is resting.\n"),
        ("doctor", 1, "0 agents can work here, a handoff takes two - Install or sign in to another one;"),
        ("init", 0, f"{root}/.agent-relay is ready: private, and ignored by git.\n"),
        ("init", 0, "exists already and was not changed.\n"),
        ("agents", 0, "not installed"),
        ("order", 0, "\n"),
        ("daemon", 2, ""),
    )
    for word, status, text in steps:
        done = run(newcomer, word)
        assert done.status == status, word
        assert text in done.out, word
        assert "Traceback" not in done.out + done.err, word
    agent = run(newcomer, "order").out.split()[0]
    with seat(newcomer, agent) as person:
        assert person.wait_for_end() == 1
        shown = person.received.decode().replace("\r\n", "\n")
    said, hint = shown.splitlines()
    assert said.startswith("agent-relay: ")
    assert said.endswith(f" is not installed: {agent} is not on your PATH")
    assert hint == "  See what is missing: agent-relay doctor"
    assert (
        run(newcomer, "status", "--all").out
        == "No session is running in this repository. Start one: agent-relay <agent>\n"
    )


def test_each_exit_code_is_what_it_says() -> None:
    """Scripts branch on them."""
    with seated_world() as world:
        assert run(world, "daemon", "status") == Done(69, "No daemon is running.\n", "")
        assert run(world, "agent", "demo", "--json").status == 0
        session = find_session(world)
        world.wait_for(session, lambda found: found.state is State.READY, "the agent is ready")
        let_rest(world, "understudy")
        nobody = run(world, "understudy", "--json")
        assert nobody.status == 3
        assert re.search(r"understudy: rests until (?:[A-Z][a-z]{2} \d+, )?\d\d:\d\d\)\n", nobody.err)
        assert run(world, "understudy", "--json", "--yes").status == 0
        world.wait_for(session, lambda found: len(found.done) == 1, "a packet was made")
        document = json.loads(run(world, "packet", "path", "--json").out)["document"]
        with open(document, "r+", encoding="utf-8") as file:
            file.write("!")
        broken = run(world, "packet", "show", "--json")
        assert (broken.status, broken.out) == (65, "")
        assert broken.err.splitlines()[0].endswith("0001-understudy.json is not valid JSON")
        assert run(world, "status", AGENT_RELAY_HOME="here").status == 78


def test_an_interrupted_command_is_130_and_says_nothing() -> None:
    """Ctrl-C is not an error to be explained."""
    with seated_world() as world:
        assert run(world, "agent", "demo", "--json").status == 0
        command = subprocess.Popen(
            relay(world, "daemon", "logs", "--follow"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert command.stdout is not None
        assert command.stderr is not None
        with command, command.stdout, command.stderr:
            assert command.stdout.read(1), "it has begun"
            os.kill(command.pid, signal.SIGINT)
            command.stdout.read()
            assert (command.stderr.read(), command.wait(60)) == (b"", 130)


@pytest.mark.parametrize(
    ("words", "refused"), [(("agent", "demo"), "show demo"), (("attach",), "attach")], ids=["agent", "attach"]
)
def test_without_a_terminal_nothing_is_started_and_run_is_named(words: tuple[str, ...], refused: str) -> None:
    """A job would start an agent that nobody answers, and fill its log with escape sequences."""
    named = "AGENT" if words == ("attach",) else "demo"
    expected = (
        f"agent-relay: cannot {refused}: input and output must be a terminal\n"
        f"  In a script or a pipe: agent-relay run {named} TASK\n"
    )
    with seated_world() as world:
        if words == ("attach",):
            assert run(world, "agent", "demo", "--json").status == 0
        before = len(json.loads(run(world, "status", "--json").out)["sessions"])
        assert run(world, *words) == Done(2, "", expected)
        assert len(json.loads(run(world, "status", "--json").out)["sessions"]) == before
        with at_terminal(["sh", "-c", f"{shlex.join(relay(world, *words))} | cat"]) as person:
            person.wait_for("must be a terminal")
            person.wait_for_end()
            assert b"\x1b" not in person.received
        with at_terminal(["sh", "-c", f"{shlex.join(relay(world, *words))} </dev/null"]) as person:
            person.wait_for("must be a terminal")
            assert person.wait_for_end() == 2
        assert len(json.loads(run(world, "status", "--json").out)["sessions"]) == before
