"""`agent-relay watch` without a terminal: what is now, and what happens as a stream of events."""

import json
import os
import signal
from collections.abc import Iterator

import jsonschema
import pytest

from agent_relay.store.session_index import write_entry
from tests.support.at_work import WorkingWorld, working_world
from tests.support.piped import Piped, piped
from tests.support.preloaded import Command
from tests.support.seats import run

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A user with two scripted agents and no daemon yet."""
    with working_world(starts=False) as made:
        yield made


class Stream:
    """A running `watch --json`, read line by line; every line is held against the published schema."""

    def __init__(self, command: Piped, schema: str) -> None:
        self.command = command
        self.seen: list[dict[str, object]] = []
        self._check = jsonschema.Draft202012Validator(json.loads(schema))

    def next(self, **wanted: object) -> dict[str, object]:
        """The next event that has these values; a test's own limit ends a wait for one that does not come."""
        for line in self.command.stdout:
            event: dict[str, object] = json.loads(line)
            self._check.validate(event)
            self.seen.append(event)
            if all(event.get(name) == value for name, value in wanted.items()):
                return event
        raise AssertionError(f"the stream ended before {wanted}")


@pytest.fixture
def stream(world: WorkingWorld) -> Iterator[Stream]:
    """The user watches."""
    schema = run(world, "watch", "--schema").out
    with piped(Command(["watch", "--json"], world.environ, world.project)) as command:
        yield Stream(command, schema)


def test_what_happens_is_told_as_it_happens(world: WorkingWorld, stream: Stream) -> None:
    """From nothing to a handoff: a script that watches can follow all of it."""
    assert stream.next(type="daemon")["state"] == "away"
    session = world.begin()
    assert stream.next(type="daemon")["state"] == "here"
    assert stream.next(type="session", state="ready")["agent"] == "demo"
    world.say(session, "hello")
    shown: list[object] = []
    while "* demo heard you" not in shown:
        rows = stream.next(type="screen")["rows"]
        assert isinstance(rows, list)
        shown = rows
    world.say(session, "out")
    assert stream.next(type="session", agent="understudy", handoffs=1)["limits"] == 1
    told = [event["text"] for event in stream.seen if event["type"] == "event"]
    assert "handoff from demo to understudy begins: rate limit" in told
    assert "handoff done: understudy works on it" in told
    resting = [event["agents"] for event in stream.seen if event["type"] == "resting"][-1]
    assert isinstance(resting, list)
    assert [rest["agent"] for rest in resting] == ["demo"]
    assert stream.command.end(signal.SIGINT) == 130


@pytest.mark.size("every")
def test_a_daemon_that_dies_is_told_of_and_so_is_the_next_one(world: WorkingWorld, stream: Stream) -> None:
    """Watching goes on: agents work without a daemon, and so does their journal's reader."""
    session = world.begin()
    stream.next(type="daemon", state="here")
    stream.next(type="session", state="ready")
    world.kill_daemons()
    stream.next(type="daemon", state="away")
    world.start_daemon()
    stream.next(type="daemon", state="here")
    world.say(session, "hello")
    stream.next(type="screen")
    assert stream.command.end(signal.SIGTERM) == 143


def test_a_reader_that_goes_away_ends_the_stream(stream: Stream) -> None:
    """A forgotten `watch --json | head -1` must not run on until the next event, which may be tomorrow's."""
    stream.next(type="daemon")
    stream.command.stdout.close()
    assert stream.command.wait() == 141


def test_what_is_now_needs_no_daemon_and_starts_none(world: WorkingWorld) -> None:
    """Whoever only looks changes nothing."""
    session = world.begin()
    now = run(world, "watch", "--no-follow").out
    assert "ready  demo" in now
    assert "  | demo agent - a scripted agent, no account needed" in now
    one = run(world, "watch", session[-6:], "--no-follow", "--json").out.splitlines()
    assert {json.loads(line).get("session", session) for line in one} == {session}
    run(world, "daemon", "stop")
    later = run(world, "watch", "--no-follow", "--json").out.splitlines()
    assert json.loads(later[0]) == {"type": "daemon", "state": "away"}
    assert "screen" not in {json.loads(line)["type"] for line in later}
    assert run(world, "daemon", "status").status == 69


def test_nothing_to_watch_is_said(world: WorkingWorld) -> None:
    """An empty page looks like a broken one."""
    done = run(world, "watch", "--no-follow", "--all")
    assert "No session is running in this repository." in done.out
    assert "No daemon is running" in done.out
    assert run(world, "watch", "--all", "X").status == 2
    assert run(world, "watch", "X").status == 2


@pytest.mark.size("every")
def test_a_broken_journal_is_told_and_the_others_are_shown(world: WorkingWorld) -> None:
    """One damaged file must not blind whoever watches ten sessions."""
    world.begin()
    broken = f"{world.project}/.agent-relay/sessions/01M80MD95G9351J4RSS45ZWJFX"
    os.makedirs(broken)
    entries = f"{world.folders.state}/sessions"
    write_entry(entries, os.path.basename(broken), root=world.project, cwd=world.project)
    with open(f"{broken}/journal.jsonl", "w", encoding="utf-8") as stream:
        stream.write("no json\n")
    now = run(world, "watch", "--no-follow").out
    assert "cannot be trusted" in now
    assert "ready  demo" in now
