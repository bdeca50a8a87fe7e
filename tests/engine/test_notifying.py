"""Somebody who looks elsewhere is called for, in the ways they wished for, and no handoff waits for it."""

import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.support.at_work import LIMIT, WorkingWorld
from tests.support.handoffs import PICKED_UP
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

SENDS = """#!{python} -IS
import json, os, sys
with open({path!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
{after}
"""
HANDOVER = ["project: understudy took over", "demo hit its session limit."]


class Hook:
    """A receiver on this machine; `answers` is the status it gives."""

    def __init__(self) -> None:
        self.heard: list[dict[str, object]] = []
        self.answers = 204
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(hook.answers)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
                del format, args

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()

    def close(self) -> None:
        """Nobody listens any more."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A receiver that is gone afterwards."""
    made = Hook()
    yield made
    made.close()


def wish(world: WorkingWorld, notify: object) -> None:
    """The user's `notify`, `None` for nothing of it, and a daemon that goes by it."""
    path = f"{world.folders.config}/config.toml"
    with open(path, encoding="utf-8") as file:
        kept = [line for line in file if not line.startswith("notify")]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([*([f"notify = {json.dumps(notify)}\n"] if notify is not None else []), *kept])
    world.restart()


def add_desktop(world: WorkingWorld, *, after: str = "") -> str:
    """A `notify-send` on the user's PATH that notes what it is told, and a session bus; the notes' path."""
    folder = Path(world.folder) / "desktop"
    folder.mkdir()
    notes = str(folder / "notes.jsonl")
    program = folder / "notify-send"
    program.write_text(SENDS.format(python=sys.executable, path=notes, after=after))
    program.chmod(0o755)
    world.environ |= {
        "PATH": f"{folder}:{world.environ['PATH']}",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    }
    return notes


def read_notes(path: str) -> list[list[str]]:
    """What the desktop was told so far."""
    text = Path(path).read_text("utf-8") if os.path.exists(path) else ""
    return [json.loads(line)[2:] for line in text.splitlines(keepends=True) if line.endswith("\n")]


def test_a_webhook_is_told_of_a_handover_and_of_a_rest(world: WorkingWorld, hook: Hook) -> None:
    """A phone is where people are when all agents rest."""
    scenes = [{"when": "handoff-context", "do": [{"say": PICKED_UP}]}, {"when": "out", "do": [LIMIT]}]
    world.play(understudy=scenes)
    wish(world, [f"webhook:{hook.url}"])
    session = world.begin()
    world.run_out(session)
    wait_until(lambda: len(hook.heard) == 1, "the webhook is told")
    world.say(session, "out")
    world.wait_state(session, State.RESTING)
    wait_until(lambda: len(hook.heard) == 2, "the webhook is told again")
    rest = hook.heard[1]
    assert (rest["kind"], rest["title"]) == ("resting", "project: every agent rests")
    assert str(rest["text"]).startswith("understudy hit its session limit. The first reset is at ")
    told = hook.heard[0]
    assert (told["schema"], told["version"], told["session"]) == ("agent-relay/notification", 1, session)
    assert (told["kind"], [told["title"], told["text"]]) == ("handoff", HANDOVER)
    assert datetime.fromisoformat(str(told["at"])).tzinfo is not None


@pytest.mark.size("test")
def test_the_desktop_is_told_of_a_handover_where_no_terminal_is_attached(world: WorkingWorld) -> None:
    """Nothing has to be configured for it.

    A setting that says off is off; a daemon that comes later reads history, which is no news.
    """
    notes = add_desktop(world)
    wish(world, "off")
    world.run_out(world.begin())
    wish(world, None)
    world.run_out(world.begin(new=True))
    wait_until(lambda: bool(read_notes(notes)), "the desktop is told")
    assert read_notes(notes) == [HANDOVER]


def test_a_desktop_and_a_webhook_that_fail_keep_no_handoff_and_are_lines_in_the_log(
    world: WorkingWorld, hook: Hook
) -> None:
    """What only tells of work must not stop it."""
    add_desktop(world, after="sys.exit(1)")
    hook.answers = 404
    wish(world, ["desktop", f"webhook:{hook.url}"])
    session = world.begin()
    world.run_out(session)

    def read_log() -> str:
        return Path(str(world.ask("daemon.logs")["log"])).read_text("utf-8")

    wait_until(lambda: "notification-failed to=desktop why=status-1" in read_log(), "the desktop's failure")
    wait_until(lambda: "notification-delivery to=webhook" in read_log(), "the webhook's failure")
    assert hook.url not in read_log()
