"""The hook in an agent's own settings reports, and its agent notices nothing, whatever is gone."""

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from agent_relay import hook
from agent_relay.agents.launch import build_unmanaged_command
from agent_relay.client import autostart
from agent_relay.domain.names import LEG_VARIABLE, RACE_VARIABLE
from tests.agents.broken_hooks import BREAKS, install
from tests.support.relay_world import wait_until
from tests.support.sizes import sized

PAYLOAD = b'{"hook_event_name": "StopFailure", "session_id": "57460c66"}'
DAEMON = """import json, os
json.dump(dict(os.environ), open({path!r} + '.tmp', 'w'))
os.rename({path!r} + '.tmp', {path!r})
"""
ROUNDS = 9


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A Python, a hook, a daemon that tells of its start, and folders for reports and sockets."""
    place = install(tmp_path / "it's here")
    for name in ("daemon", "reports", "run"):
        (place / name).mkdir()
    (place / "daemon" / "__main__.py").write_text(DAEMON.format(path=str(tmp_path / "started")), "utf-8")
    return place


@pytest.fixture
def listener(place: Path) -> Iterator[socket.socket]:
    """A daemon that accepts nobody."""
    with socket.socket(socket.AF_UNIX) as listening:
        folder = os.open(place / "run", os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{folder}/daemon.sock")
        os.close(folder)
        listening.listen(0)
        yield listening


def call(place: Path, *, stdin: bytes = PAYLOAD, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """One call as an agent makes it: by a shell, with a comment behind the command."""
    command = build_unmanaged_command(
        str(place / "reports"),
        str(place / "run"),
        "",
        python=str(place / "python"),
        hook=str(place / "hook.py"),
    )
    return subprocess.run(
        ["/bin/sh", "-c", f"{command} # owned by agent-relay, made=1"],
        input=stdin,
        env={"PATH": os.defpath, "HOME": "/home/dev", "SECRET": "x", **variables},
        capture_output=True,
        timeout=120,
        check=False,
    )


def assert_silent(done: subprocess.CompletedProcess[bytes]) -> None:
    """The agent noticed nothing."""
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def read_reports(place: Path) -> list[dict[str, object]]:
    """What was reported, oldest first."""
    path = place / "reports" / "hooks.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


@pytest.mark.size("test")
def test_a_report_is_kept_and_a_daemon_is_started_where_none_listens(place: Path) -> None:
    """Nobody else would read it; the daemon gets where things are, and nothing else of its environment."""
    assert_silent(call(place, AGENT_RELAY_HOME="/relay"))
    assert [one["payload"] for one in read_reports(place)] == [json.loads(PAYLOAD)]
    started = place.parent / "started"
    wait_until(started.exists, "the daemon to be started")
    environ = json.loads(started.read_bytes())
    assert environ["HOME"] == "/home/dev"
    assert environ["AGENT_RELAY_HOME"] == "/relay"
    assert "SECRET" not in environ


def test_it_passes_on_the_variables_that_every_start_of_a_daemon_does() -> None:
    """The hook imports nothing of ours, so it has a list of its own."""
    assert (hook.KEPT, hook.KEPT_PREFIXES) == (autostart._KEPT, autostart._KEPT_PREFIXES)  # noqa: SLF001 - to be alike
    assert (LEG_VARIABLE, RACE_VARIABLE) == hook.DROPPED


@pytest.mark.size("test")
def test_none_is_started_beside_one_that_listens(place: Path, listener: socket.socket) -> None:
    """One that hangs listens, and one whose queue is full: neither is waited for."""
    listener.setblocking(True)
    for _ in range(4):
        assert_silent(call(place))
    assert len(read_reports(place)) == 4
    assert not (place.parent / "started").exists()


@pytest.mark.size("test")
def test_none_is_started_after_one_that_was_stopped_on_purpose(place: Path) -> None:
    """Its user wanted quiet; the report is there for the next one."""
    (place / "run" / "stopped").touch()
    assert_silent(call(place))
    assert len(read_reports(place)) == 1
    assert not (place.parent / "started").exists()


@pytest.mark.size("test")
def test_inside_a_leg_it_does_nothing(place: Path) -> None:
    """Relay has hooks of its own there: what happens would be told twice."""
    assert_silent(call(place, **{LEG_VARIABLE: "01J0000000000000000000000"}))
    assert read_reports(place) == []
    assert not (place.parent / "started").exists()


def remove_reports(place: Path) -> None:
    """The state folder was deleted."""
    os.rmdir(place / "reports")


def remove_daemon(place: Path) -> None:
    """The package is half removed."""
    os.unlink(place / "daemon" / "__main__.py")


def remove_runtime(place: Path) -> None:
    """The user's last session ended, and its runtime folder with it."""
    os.rmdir(place / "run")


def replace_reports(place: Path) -> None:
    """A pipe in the report's place would block whoever opens it."""
    os.mkfifo(place / "reports" / "hooks.jsonl")


@pytest.mark.size("every")
@pytest.mark.parametrize(
    "breaks",
    sized(
        [*BREAKS, remove_reports, remove_daemon, remove_runtime, replace_reports],
        [BREAKS[0], remove_daemon, replace_reports],
        name=attrgetter("__name__"),
    ),
)
def test_whatever_is_gone_the_agent_does_not_notice(place: Path, breaks: Callable[[Path], None]) -> None:
    """A status of 2 would block a prompt, and a word would become part of its conversation."""
    breaks(place)
    assert_silent(call(place))
    assert_silent(call(place, stdin=b""))
    assert_silent(call(place, stdin=b"garbage \xff" * 100_000))


@pytest.mark.size("test")
def test_reports_never_grow_beyond_a_mebibyte(place: Path, listener: socket.socket) -> None:
    """The newest one counts; nobody may be there to read for months."""
    assert listener.fileno() >= 0
    path = place / "reports" / "hooks.jsonl"
    path.write_bytes(b'{"payload":{"old":1}}\n' * 47_662)
    assert_silent(call(place))
    assert [one["payload"] for one in read_reports(place)] == [json.loads(PAYLOAD)]
    assert os.listdir(place / "reports") == ["hooks.jsonl"]


def measure(run: Callable[[], object]) -> float:
    """The processor time of the children that `run` waits for, in seconds, the least of several."""
    found = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@pytest.mark.size("test")
def test_it_costs_hardly_more_than_a_bare_python(place: Path, listener: socket.socket) -> None:
    """Processor time, in the same run: the agent waits for its hooks."""
    assert listener.fileno() >= 0
    bare = measure(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True))
    ours = measure(lambda: call(place))
    os.unlink(place / "python")
    gone = measure(lambda: call(place))
    assert ours < 3 * bare
    assert gone < bare
