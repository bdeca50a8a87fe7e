"""An MCP client that talks with the pipe as agents do: one JSON message a line, on its standard streams."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

from agent_relay.agents.launch import PIPE_PATH
from agent_relay.domain.names import LEG_VARIABLE, TOKEN_VARIABLE
from tests.support.relay_world import RelayWorld

LIMIT_S = 90.0


class ToolClient:
    """The client's side of one connection."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._buffer = b""
        self._number = 0

    def send(self, text: str) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, object]:
        """The next message; an assertion fails if none comes."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + LIMIT_S
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
            assert ready, "no answer came"
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            assert part, "the pipe ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def request(self, method: str, **params: object) -> dict[str, object]:
        """The answer to one request."""
        self._number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}))
        answer = self.read()
        assert answer["id"] == self._number
        return answer

    def begin(self) -> dict[str, object]:
        """The handshake, and what the server says of itself."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}}
        answer = self.request("initialize", **about, clientInfo={"name": "test", "version": "1"})
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return answer

    def call(self, tool: str, **arguments: object) -> str:
        """What the tool answers; it must not refuse."""
        text, is_error = self.try_call(tool, **arguments)
        assert not is_error, text
        return text

    def try_call(self, tool: str, **arguments: object) -> tuple[str, bool]:
        """What the tool answers, and whether it refused."""
        answer = self.request("tools/call", name=tool, arguments=arguments)
        result = answer.get("result")
        assert isinstance(result, dict), answer
        return result["content"][0]["text"], bool(result.get("isError"))


@contextlib.contextmanager
def tool_client(
    world: RelayWorld, leg: str, token: str, command: list[str] | None = None
) -> Iterator[ToolClient]:
    """A client whose pipe has this leg and token, after its handshake."""
    environ: Mapping[str, str] = {**world.environ, LEG_VARIABLE: leg, TOKEN_VARIABLE: token}
    pipe = [sys.executable, "-I", "-S", PIPE_PATH, world.folders.runtime]
    with subprocess.Popen(
        command or pipe, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        client = ToolClient(process)
        try:
            client.begin()
            yield client
        finally:
            process.kill()


def read_token(world: RelayWorld, session: str) -> tuple[str, str]:
    """The leg and the token of the agent at work, as its own environment has them."""
    leg = world.session(session).living_leg
    assert leg is not None
    with open(f"/proc/{leg.child_pid}/environ", "rb") as file:
        pairs = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
    return pairs[LEG_VARIABLE.encode()].decode(), pairs[TOKEN_VARIABLE.encode()].decode()
