"""The pipe costs an agent no more than an empty Python, and says why it cannot be answered."""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_relay.agents.launch import PIPE_PATH

pytestmark = pytest.mark.size("test")

STARTS = 15


def spend(command: list[str]) -> float:
    """Processor seconds of the command, the least of several starts."""
    spent = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


@pytest.mark.timed
def test_the_pipe_starts_like_an_empty_python(tmp_path: object) -> None:
    """Every agent starts one, and some wait for it before their first prompt."""
    bare = spend([sys.executable, "-I", "-S", "-c", "pass"])
    piped = spend([sys.executable, "-I", "-S", PIPE_PATH, str(tmp_path)])
    assert piped < 2 * bare, f"{piped:.4f} s of {bare:.4f} s"


def ask(folder: str, *lines: str, more: tuple[str, ...] = (), env: dict[str, str] | None = None) -> list[Any]:
    """What the pipe answers to these lines where nobody listens."""
    command = [sys.executable, "-I", "-S", PIPE_PATH, folder, *more]
    sent = "\n".join(lines).encode() + b"\n"
    done = subprocess.run(command, input=sent, capture_output=True, check=True, timeout=60, env=env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_daemon_each_request_is_answered_with_why(tmp_path: object) -> None:
    """The agent says that one of its servers failed, and works."""
    request = '{"jsonrpc":"2.0",\r"id":"a","method":"initialize"}'
    told = ask(str(tmp_path), request, '{"jsonrpc":"2.0","method":"notifications/x"}', '{"id":{}}', "\xff{")
    error = {"code": -32000, "message": "agent-relay's daemon is not running"}
    assert told == [{"jsonrpc": "2.0", "id": "a", "error": error}]
    assert ask(f"{tmp_path}/gone", request)[0]["error"] == error


def test_an_agent_that_relay_did_not_start_is_told_of_no_tools(tmp_path: object) -> None:
    """An extension is there in every run of the agent: where it is of no use it must not cost words."""
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "status"}},
    ]
    lines = ["{", "[]", *map(json.dumps, requests)]
    told = ask(f"{tmp_path}", *lines, more=("started-only",), env={})
    assert told[0]["result"]["protocolVersion"] == "2025-06-18"
    assert [one.get("result") for one in told[1:]] == [{"tools": []}, {}, None]
    assert "did not start this agent" in told[3]["error"]["message"]
    leg = {"AGENT_RELAY_LEG": "L", "AGENT_RELAY_LEG_TOKEN": "T"}
    (first, *_) = ask(f"{tmp_path}", *lines, more=("started-only",), env=leg)
    assert "daemon is not running" in first["error"]["message"]


def test_a_folder_that_others_may_change_is_not_used(tmp_path: object) -> None:
    """Somebody else could listen there."""
    os.chmod(str(tmp_path), 0o777)  # noqa: S103 - the fault that is looked for
    told = ask(str(tmp_path), '{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    assert "not private" in str(told[0]["error"])


def serve(listening: socket.socket, answers: list[bytes]) -> None:
    """Answer the first pipe once it has asked all it asks, some time after it closed its side."""
    with listening, listening.accept()[0] as peer:
        heard = b""
        while heard.count(b"\n") < 1 + len(ASKED):
            heard += peer.recv(1 << 16)
        for answer in answers:
            peer.sendall(answer + b"\n")
        peer.recv(1)


ASKED = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
)


def begin_pipe(folder: Path, answers: list[bytes]) -> subprocess.Popen[bytes]:
    """A pipe to a server that gives these answers."""
    os.chmod(folder, 0o700)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{folder}/mcp.sock")
    listening.listen()
    threading.Thread(target=serve, args=(listening, answers), daemon=True).start()
    command = [sys.executable, "-I", "-S", PIPE_PATH, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_who_asks_and_closes_is_still_answered(tmp_path: Path) -> None:
    """Scripts pipe requests in. What the server says unasked is no answer; the last line may lack its end."""
    answers = [b'{"id":1,"result":{}}', b'{"method":"notifications/x"}', b'{"id":2,"error":{}}']
    done, _ = begin_pipe(tmp_path, answers).communicate(b"\n".join(ASKED), timeout=60)
    assert done.splitlines() == answers


def test_an_agent_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    """Its pipe would stay for as long as the slowest tool takes."""
    pipe = begin_pipe(tmp_path, [b'{"method":"notifications/x"}'])
    assert pipe.stdin is not None
    assert pipe.stdout is not None
    pipe.stdin.write(b"\n".join(ASKED) + b"\n")
    pipe.stdin.flush()
    assert pipe.stdout.readline() == b'{"method":"notifications/x"}\n'
    pipe.stdout.close()
    pipe.stdin.close()
    assert pipe.wait(60) == 0


def test_it_says_how_it_is_used() -> None:
    """Nobody starts it by hand twice."""
    done = subprocess.run([sys.executable, "-I", "-S", PIPE_PATH], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"usage: pipe.py FOLDER [started-only]\n")
