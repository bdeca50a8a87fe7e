"""`agent-relay chat` in a world of two scripted agents, for tests."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jsonschema import Draft202012Validator

from agent_relay.domain.protocol.run_output import build_chat_schema
from tests.house import tree
from tests.support import preloaded
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, relay_world

AGREES = {"again": True, "do": [{"say": "It is fine.\n\nAGREED"}]}
SLOW = {"do": [{"say": "I begin."}, {"wait_s": 5}, {"say": "I end."}]}


@contextmanager
def chat_world(
    demo: Sequence[Mapping[str, object]], understudy: Sequence[Mapping[str, object]]
) -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=demo, understudy=understudy)
        made.environ["PYTHONPATH"] = tree.CHECKOUT
        made.start_daemon()
        yield made


def start_chat(world: RelayWorld, *words: str) -> subprocess.Popen[bytes]:
    """A chat under way, without a terminal."""
    command = [sys.executable, "-m", "agent_relay", "chat", *words]
    return subprocess.Popen(
        command,
        cwd=world.project,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def chat(world: RelayWorld, *words: str) -> tuple[int, str, str]:
    """How a chat ended: its status, what was said and what was said about it."""
    done = preloaded.run(["chat", *words], env=world.environ, cwd=world.project)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def read_chat_lines(out: str) -> list[dict[str, Any]]:
    """The events printed, each of which the published schema allows."""
    allowed = Draft202012Validator(build_chat_schema())
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        allowed.validate(line)
    return lines
