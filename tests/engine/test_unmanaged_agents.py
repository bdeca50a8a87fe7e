"""A limit in an agent that relay did not start is told once, with what to do; nothing else is told."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay import hook
from agent_relay.engine.unmanaged_agents import notify_terminals
from agent_relay.terminal.holder.child import open_pty
from tests.engine.test_notifying import Hook, wish
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

LIMIT = "You've hit your session limit · resets 9pm (UTC)"
PYTHON = [sys.executable, "-I", "-S", os.path.abspath(hook.__file__)]
SEEN_S = 3.0
DAY = r"(?:[A-Z][a-z]{2} \d+, )?"
"""The day of a reset, which is named in the evening, when it is tomorrow."""


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A user whose daemon runs, with folders for the reports of two agents."""
    with working_world(order=("claude", "demo"), starts=False) as made:
        for agent in ("claude", "codex"):
            os.makedirs(f"{made.folders.hooks}/{agent}", mode=0o700)
        yield made


@pytest.fixture
def receiver() -> Iterator[Hook]:
    """A webhook's receiver that is gone afterwards."""
    made = Hook()
    yield made
    made.close()


def report(world: WorkingWorld, agent: str, payload: dict[str, object]) -> None:
    """What the agent's hook does; no daemon is started, as one listens."""
    subprocess.run(
        [*PYTHON, "unmanaged", f"{world.folders.hooks}/{agent}", world.folders.runtime],
        input=json.dumps(payload).encode(),
        check=True,
    )


def build_failure(
    world: WorkingWorld, text: str, session: str = "57460c66", **more: str
) -> dict[str, object]:
    """The payload of a turn that failed."""
    return {
        "session_id": session,
        "transcript_path": f"{world.home}/{session}.jsonl",
        "cwd": world.project,
        "hook_event_name": "StopFailure",
        "error": "rate_limit",
        "last_assistant_message": text,
        **more,
    }


def append(path: str, row: dict[str, object]) -> None:
    """One row of a transcript, written now."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"timestamp": at, **row}) + "\n")


def read_limits(world: WorkingWorld) -> list[str]:
    """Who rests, by the ledger."""
    try:
        return [rest["agent"] for rest in json.loads(Path(world.folders.ledger).read_bytes())["rests"]]
    except FileNotFoundError:
        return []


@pytest.mark.size("test")
def test_a_limit_is_told_once_with_the_command_that_goes_on(world: WorkingWorld, receiver: Hook) -> None:
    """Also after a daemon that reads the same reports again; the ledger knows it, too."""
    wish(world, [f"webhook:{receiver.url}"])
    report(world, "claude", build_failure(world, LIMIT))
    wait_until(lambda: bool(receiver.heard), "the webhook was called")
    [told] = receiver.heard
    assert (told["schema"], told["kind"], told["session"]) == ("agent-relay/notification", "limit", "")
    title = rf"project: claude hit its session limit \(resets {DAY}21:00\)"
    assert re.fullmatch(title, str(told["title"])), told["title"]
    assert told["text"] == "To continue in another agent, run there: agent-relay agent demo."
    assert read_limits(world) == ["claude"]
    report(world, "claude", build_failure(world, LIMIT))
    wish(world, [f"webhook:{receiver.url}"])
    report(world, "claude", build_failure(world, LIMIT, "second", cwd=f"{world.folder}/else;where"))
    wait_until(lambda: len(receiver.heard) > 1, "the other conversation's was told")
    assert [str(one["id"]).split(":")[1] for one in receiver.heard] == ["57460c66", "second"]


def test_what_is_no_limit_is_not_told(world: WorkingWorld, receiver: Hook) -> None:
    """A limit told after it, in another conversation, shows that it was read."""
    wish(world, [f"webhook:{receiver.url}"])
    for text in (
        "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited.",
        "API Error: 529 Overloaded. This is a server-side issue, usually temporary.",
        "Invalid API key · Fix external API key",
    ):
        report(world, "claude", build_failure(world, text, "harmless"))
    for session, more in (
        ("subagents", {"agent_id": "a1"}),
        ("quoted", {"hook_event_name": "Stop"}),
        ("wild", {"transcript_path": f"{world.home}/\0.jsonl"}),
        ("nowhere", {"cwd": f"{world.project}\0"}),
        ("relative", {"cwd": "."}),
    ):
        report(world, "claude", build_failure(world, LIMIT, session, **more))
    report(world, "claude", {"garbage": [1], "transcript_path": "relative", "session_id": 7})
    report(world, "claude", build_failure(world, LIMIT))
    wait_until(lambda: bool(receiver.heard), "the webhook was called")
    assert [str(one["id"]).split(":")[1] for one in receiver.heard] == ["57460c66"]


def test_an_agent_that_goes_on_by_itself_is_told_of_as_one(world: WorkingWorld, receiver: Hook) -> None:
    """It says so in its transcript, which also has the reset to the second."""
    wish(world, [f"webhook:{receiver.url}"])
    resets = (datetime.now(UTC) + timedelta(hours=2)).replace(minute=7, second=3, microsecond=0)
    text = f"You've hit your 5-hour limit · resets {resets:%I:%M%p} (UTC)".replace(" 0", " ").lower()
    text = text.replace("you've", "You've").replace("(utc)", "(UTC)")
    payload = build_failure(world, text)
    row = {
        "type": "assistant",
        "isApiErrorMessage": True,
        "error": "rate_limit",
        "quotaLimits": {
            "status": "rejected",
            "resetsAt": int(resets.timestamp()),
            "rateLimitType": "five_hour",
        },
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": text}]},
    }
    append(str(payload["transcript_path"]), row)
    said = "Usage limit reached · set to continue automatically shortly"
    append(str(payload["transcript_path"]), {"type": "system", "subtype": "informational", "content": said})
    report(world, "claude", payload)
    wait_until(lambda: bool(receiver.heard), "the webhook was called")
    [told] = receiver.heard
    title = rf"project: claude hit its 5-hour limit \(resets {DAY}{resets:%H}:07\)"
    assert re.fullmatch(title, str(told["title"])), told["title"]
    assert re.search(rf"claude goes on by itself at {DAY}{resets:%H}:07\.", str(told["text"])), told["text"]


def test_an_agent_without_such_a_hook_is_heard_by_the_transcript_it_names(
    world: WorkingWorld, receiver: Hook
) -> None:
    """The hook tells where it is; limits of before that are history."""
    wish(world, [f"webhook:{receiver.url}"])
    rollout = f"{world.home}/rollout {{cwd}} *.jsonl"
    limit = {
        "type": "event_msg",
        "payload": {
            "type": "task_complete",
            "error": {
                "message": "You\u2019ve hit your usage limit. Try again later.",
                "codex_error_info": "usage_limit_exceeded",
            },
        },
    }
    Path(rollout).write_text(json.dumps({"timestamp": "2026-11-20T10:00:00Z", **limit}) + "\n", "utf-8")
    started = {"session_id": "01a2", "transcript_path": rollout, "cwd": world.project}
    report(world, "codex", {**started, "hook_event_name": "SessionStart"})
    report(world, "claude", build_failure(world, LIMIT))
    wait_until(lambda: bool(receiver.heard), "what came after it was told")
    assert "claude" in str(receiver.heard[0]["title"])
    append(rollout, limit)
    wait_until(lambda: len(receiver.heard) > 1, "the new limit was told")
    assert receiver.heard[1]["title"] == "project: codex hit its usage limit"


def test_a_terminal_is_notified_once_and_one_that_is_stopped_is_left_alone(tmp_path: Path) -> None:
    """Two programs on one terminal are one person; a terminal that takes nothing must not hold the daemon."""
    master, slave = open_pty(rows=24, cols=80)
    environ = {"PATH": os.defpath, "TERM_PROGRAM": "iTerm.app"}
    with subprocess.Popen(["sleep", "60"], stdout=slave, stdin=subprocess.DEVNULL, env=environ) as first:
        second = subprocess.Popen(["sleep", "60"], stdout=slave, stdin=subprocess.DEVNULL, env=environ)
        with (tmp_path / "log").open("wb") as log:
            elsewhere = subprocess.Popen(["sleep", "60"], stdout=log)
        try:
            pids = [first.pid, second.pid, elsewhere.pid, 1 << 22]
            assert notify_terminals(pids, "a limit", "go on", bell=True, osc=True) == 1
            assert os.read(master, 100) == b"\x07\x1b]9;a limit: go on\x1b\\"
            fill(slave)
            began = threading.Thread(
                target=notify_terminals, args=(pids, "a", "b"), kwargs={"bell": True, "osc": True}
            )
            began.start()
            began.join(60)
            assert not began.is_alive()
        finally:
            for one in (first, second, elsewhere):
                one.kill()
            second.wait()
            elsewhere.wait()
            os.close(master)
            os.close(slave)
    assert (tmp_path / "log").read_bytes() == b""


def fill(slave: int) -> None:
    """Nobody reads the terminal: it takes no byte more."""
    os.set_blocking(slave, False)
    end = time.monotonic() + SEEN_S
    while time.monotonic() < end:
        try:
            os.write(slave, b"x" * 4096)
        except BlockingIOError:
            return
