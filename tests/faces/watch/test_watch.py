"""`agent-relay watch` without a terminal: what is now, and what happens as a stream of events."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import jsonschema
import pytest

from agent_relay.store.session_index import write_entry
from tests.faces.cli_run import World, create_world
from tests.faces.terminals import Terminals
from tests.support.measured import measured

pytestmark = pytest.mark.size("test")


@pytest.fixture
def terminals(tmp_path: os.PathLike[str]) -> Iterator[Terminals]:
    """A user with two scripted agents."""
    found = Terminals(create_world(f"{tmp_path}"))
    yield found
    found.close()


class Stream:
    """A running `watch --json`, read line by line; every line is held against the published schema."""

    def __init__(self, world: World, environ: dict[str, str], *words: str) -> None:
        schema = json.loads(world.run("watch", "--schema").out)
        self._check = jsonschema.Draft202012Validator(schema)
        self.seen: list[dict[str, object]] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent_relay", "watch", "--json", *words],
            cwd=world.cwd,
            env=environ | measured(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def next(self, **wanted: object) -> dict[str, object]:
        """The next event that has these values; a test's own limit ends a wait for one that does not come."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, object] = json.loads(line)
            self._check.validate(event)
            self.seen.append(event)
            if all(event.get(name) == value for name, value in wanted.items()):
                return event
        raise AssertionError(f"the stream ended before {wanted}")

    def end(self, number: int) -> int:
        """How it ended after the Unix signal `number`, as a shell has it."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        self.process.stdout.close()
        status = self.process.wait(120)
        return 128 - status if status < 0 else status


@pytest.fixture
def stream(terminals: Terminals) -> Iterator[Stream]:
    """The user watches."""
    found = Stream(terminals.world, terminals.environ())
    yield found
    found.process.kill()
    found.process.wait(120)
    if found.process.stdout is not None:
        found.process.stdout.close()


def test_what_happens_is_told_as_it_happens(terminals: Terminals, stream: Stream) -> None:
    """From nothing to a handoff: a script that watches can follow all of it."""
    assert stream.next(type="daemon")["state"] == "away"
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    assert stream.next(type="daemon")["state"] == "here"
    ready = stream.next(type="session", state="ready")
    assert ready["agent"] == "demo"
    child.send("hello\r")
    shown: list[object] = []
    while "* demo heard you" not in shown:
        rows = stream.next(type="screen")["rows"]
        assert isinstance(rows, list)
        shown = rows
    child.send("limit\r")
    assert stream.next(type="session", agent="understudy", handoffs=1)["limits"] == 1
    told = [event["text"] for event in stream.seen if event["type"] == "event"]
    assert "handoff from demo to understudy begins: rate limit" in told
    assert "handoff done: understudy works on it" in told
    resting = [event["agents"] for event in stream.seen if event["type"] == "resting"][-1]
    assert isinstance(resting, list)
    assert [rest["agent"] for rest in resting] == ["demo"]
    assert stream.end(signal.SIGINT) == 130


def test_a_daemon_that_dies_is_told_of_and_so_is_the_next_one(terminals: Terminals, stream: Stream) -> None:
    """Watching goes on: agents work without a daemon, and so does their journal's reader."""
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    stream.next(type="daemon", state="here")
    stream.next(type="session", state="ready")
    pid = int(json.loads(terminals.world.run("daemon", "status", "--json").out)["pid"])
    os.kill(pid, signal.SIGKILL)
    stream.next(type="daemon", state="away")
    assert terminals.world.run("daemon", "start").status == 0
    stream.next(type="daemon", state="here")
    child.send("hello\r")
    child.expect_exact("demo heard you")
    stream.next(type="screen")
    assert stream.end(signal.SIGTERM) == 143


def test_a_reader_that_goes_away_ends_the_stream(stream: Stream) -> None:
    """A forgotten `watch --json | head -1` must not run on until the next event, which may be tomorrow's."""
    stream.next(type="daemon")
    assert stream.process.stdout is not None
    stream.process.stdout.close()
    assert stream.process.wait(120) == 141


def test_what_is_now_needs_no_daemon_and_starts_none(terminals: Terminals) -> None:
    """Whoever only looks changes nothing."""
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    now = terminals.world.run("watch", "--no-follow").out
    assert "ready  demo" in now
    assert "  | demo agent - a scripted agent, no account needed" in now
    session = str(terminals.read_status()[0]["session"])
    one = terminals.world.run("watch", session[-6:], "--no-follow", "--json").out.splitlines()
    assert {json.loads(line).get("session", session) for line in one} == {session}
    terminals.world.run("daemon", "stop")
    later = terminals.world.run("watch", "--no-follow", "--json").out.splitlines()
    assert json.loads(later[0]) == {"type": "daemon", "state": "away"}
    assert "screen" not in {json.loads(line)["type"] for line in later}
    assert terminals.world.run("daemon", "status").status == 69
    child.send("leave\r")


def test_nothing_to_watch_is_said(terminals: Terminals) -> None:
    """An empty page looks like a broken one."""
    done = terminals.world.run("watch", "--no-follow", "--all")
    assert "No session is running in this repository." in done.out
    assert "No daemon is running" in done.out
    assert terminals.world.run("watch", "--all", "X").status == 2
    assert terminals.world.run("watch", "X").status == 2


def test_a_broken_journal_is_told_and_the_others_are_shown(terminals: Terminals) -> None:
    """One damaged file must not blind whoever watches ten sessions."""
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    broken = f"{terminals.world.cwd}/.agent-relay/sessions/01M80MD95G9351J4RSS45ZWJFX"
    os.makedirs(broken)
    world = terminals.world
    write_entry(f"{world.home}/state/sessions", os.path.basename(broken), root=world.cwd, cwd=world.cwd)
    with open(f"{broken}/journal.jsonl", "w", encoding="utf-8") as stream:
        stream.write("no json\n")
    now = terminals.world.run("watch", "--no-follow").out
    assert "cannot be trusted" in now
    assert "ready  demo" in now
    child.send("leave\r")
