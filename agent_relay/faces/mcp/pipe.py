"""The program that an agent starts as its MCP server: pass lines to the one server of this user, and back.

Run as `python -I -S pipe.py FOLDER`, by its path: nothing of the package is imported, so that it costs hardly
more than an empty Python. FOLDER is where the daemon's sockets are; with `started-only` behind it, an agent
that relay did not start is told of no tools, and no server is started for it. The server is connected to with
the first line and again after it was lost; a request that cannot be answered gets an error, and the agent
goes on. If the agent closes its side, what it asked before is still answered.
"""

import os
import select
import sys
from _socket import AF_UNIX, SO_PEERCRED, SOCK_CLOEXEC, SOCK_STREAM, SOL_SOCKET, socket

LEG, TOKEN = "AGENT_RELAY_LEG", "AGENT_RELAY_LEG_TOKEN"
STARTED_ONLY = "started-only"
MAX_LINE_BYTES = 8 << 20
PART_BYTES = 1 << 16
CONNECT_S = 5.0
START_S = 40.0
"""Longest wait for the server to start, in seconds: loading its library takes one, on a busy machine more."""
_OTHERS_MAY_WRITE = 0o022
_LOST = "agent-relay's MCP server was restarted: ask again"


class Unreachable(Exception):  # noqa: N818 - it is no error of a program
    """The server cannot be reached; the text says why."""


class Pipe:
    """The agent's two streams and the connection to the server, if there is one."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sock: socket | None = None
        self._agent, self._server = bytearray(), bytearray()
        self._opening: list[bytes] = []
        self._asked: list[bytes] = []
        self._answered: list[bytes] = []
        self._skipped = 0

    def run(self) -> int:
        """Pass lines on until the agent closes its side, then the answers it still waits for; return 0."""
        while True:
            sources: list[int | socket] = [0] if self._sock is None else [0, self._sock]
            ready, _, _ = select.select(sources, [], [])
            # A server that has gone is noticed before anything more is asked of it.
            if self._sock is not None and self._sock in ready:
                self._receive()
            if 0 in ready:
                part = os.read(0, PART_BYTES)
                for line in _take_lines(self._agent, part or b"\n"):
                    self._ask(line)
                if not part:
                    self._await_answers()
                    return 0

    def _await_answers(self) -> None:
        """Pass on the answers that the server still owes; it has time limits of its own.

        Also ends when nobody reads them any more.
        """
        while self._sock is not None and self._asked:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            poll.register(1, 0)
            if any(ready == 1 for ready, _ in poll.poll()):
                return
            self._receive()

    def _ask(self, line: bytes) -> None:
        """Pass the agent's line on, or answer it with an error."""
        is_request = b'"id"' in line and b'"method"' in line
        why = _LOST
        for _ in range(2):
            try:
                self._pass_on(line, is_request=is_request)
            except Unreachable as error:
                why = str(error)
                break
            except OSError:
                # Gone before it had heard the line: another server can answer it.
                self._lose()
            else:
                return
        if is_request:
            _refuse([line], [], why)

    def _pass_on(self, line: bytes, *, is_request: bool) -> None:
        sock = self._sock or self._connect()
        sock.sendall(line)
        self._keep_opening(line)
        if is_request:
            self._asked.append(line)

    def _keep_opening(self, line: bytes) -> None:
        """Keep the handshake: a server that is started later has to hear it, too."""
        if not self._opening or (len(self._opening) == 1 and b"notifications/initialized" in line):
            self._opening.append(line)

    def _receive(self) -> None:
        """Pass on what the server says, but not a second answer to the handshake."""
        try:
            part = self._sock.recv(PART_BYTES) if self._sock is not None else b""
        except OSError:
            part = b""
        if not part:
            self._lose()
            return
        for line in _take_lines(self._server, part):
            if self._skipped:
                self._skipped -= 1
                continue
            if b'"result"' in line or b'"error"' in line:
                self._answered.append(line)
            _write(line)
        if len(self._answered) >= len(self._asked):
            self._asked.clear()
            self._answered.clear()

    def _lose(self) -> None:
        """Answer requests to a server that is gone with errors; the next line connects to another one."""
        if self._sock is not None:
            self._sock.close()
        self._sock = None
        self._server.clear()
        asked, answered = self._asked, self._answered
        self._asked, self._answered = [], []
        _refuse(asked, answered, _LOST)

    def _connect(self) -> socket:
        """Return a new connection, to a server that the daemon starts if none runs. Raise Unreachable."""
        try:
            os.chdir(self._folder)  # a path of any length can be connected to from inside
            found = os.stat(".")
        except OSError:
            raise Unreachable("agent-relay's daemon is not running") from None
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_MAY_WRITE:
            raise Unreachable("agent-relay's runtime folder is not private to you")
        sock = _open("mcp.sock", CONNECT_S)
        if sock is None:
            _start_server()
            sock = _open("mcp.sock", CONNECT_S)
        if sock is None:
            raise Unreachable("agent-relay's MCP server does not answer")
        who = [os.environ.get(name, "") for name in (LEG, TOKEN)]
        words = [word if word.isascii() and word.isprintable() and " " not in word else "" for word in who]
        sock.sendall(f"{words[0] or '-'} {words[1] or '-'}\n".encode() + b"".join(self._opening))
        self._skipped = 1 if self._opening and b'"id"' in self._opening[0] else 0
        self._sock = sock
        return sock


def _take_lines(buffer: bytearray, part: bytes) -> list[bytes]:
    """Add the part to the buffer, and take the whole lines out. Raise OSError for an endless one."""
    buffer += part
    end = buffer.rfind(b"\n") + 1
    if len(buffer) - end > MAX_LINE_BYTES:
        raise OSError("a line without an end")
    whole = bytes(buffer[:end])
    del buffer[:end]
    # A return alone ends no line: JSON may have it between its words.
    return [line + b"\n" for line in whole.split(b"\n") if line.strip()]


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


def _refuse(asked: list[bytes], answered: list[bytes], why: str) -> None:
    """Answer each request that has no answer with an error."""
    if not asked:
        return
    import json  # no agent that is answered needs it

    done = [_read_id(json.loads, line) for line in answered]
    for line in asked:
        number = _read_id(json.loads, line)
        if number is not None and number not in done:
            error = {"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": why}}
            _write(json.dumps(error).encode() + b"\n")


def _read_id(parse: "Callable[[bytes], object]", line: bytes) -> object:
    try:
        message = parse(line)
    except (ValueError, RecursionError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _open(name: str, limit_s: float) -> socket | None:
    """Return a connection to the socket in the working folder; `None` if no process of this user listens."""
    sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    sock.settimeout(limit_s)
    try:
        sock.connect(name)
        listener = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    except OSError:
        sock.close()
        return None
    if int.from_bytes(listener[4:8], sys.byteorder) != os.geteuid():
        sock.close()
        return None
    return sock


def _start_server() -> None:
    """Have the daemon start the server; raise Unreachable if it does not."""
    import json

    sock = _open("daemon.sock", CONNECT_S)
    if sock is None:
        raise Unreachable("agent-relay's daemon is not running")
    buffer = bytearray()
    try:
        sock.settimeout(START_S)
        for request in ({"op": "hello", "version": 1, "client": ""}, {"op": "mcp.serve", "id": 1}):
            sock.sendall(json.dumps(request).encode() + b"\n")
        while part := sock.recv(PART_BYTES):
            for line in _take_lines(buffer, part):
                answer = json.loads(line)
                if answer.get("ok") is False:
                    raise Unreachable(f"agent-relay: {answer.get('error')}")
                if answer.get("id") == 1:
                    return
    except (OSError, ValueError):
        pass
    finally:
        sock.close()
    raise Unreachable("agent-relay's daemon did not start its MCP server")


def _serve_none() -> int:
    """Answer an agent that has no session: there are no tools. Return 0 when it closes its side."""
    import json

    buffer, part = bytearray(), b"\n"
    while part:
        part = os.read(0, PART_BYTES)
        for line in _take_lines(buffer, part or b"\n"):
            try:
                asked = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(asked, dict) and "id" in asked and "method" in asked:
                _write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **_answer(asked)}).encode() + b"\n")
    return 0


def _answer(asked: "dict[str, object]") -> "dict[str, object]":
    """Return the result of a request by an agent without tools, or the error."""
    match asked["method"]:
        case "initialize":
            params = asked.get("params")
            version = params.get("protocolVersion") if isinstance(params, dict) else None
            server = {"name": "agent-relay", "version": "1"}
            about: dict[str, object] = {"protocolVersion": version or "2025-06-18", "serverInfo": server}
            return {"result": {**about, "capabilities": {"tools": {}}}}
        case "tools/list":
            return {"result": {"tools": []}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "agent-relay did not start this agent"}}


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main(arguments: list[str]) -> int:
    """Serve the agent on standard input and output; return the exit status."""
    if not arguments or arguments[1:] not in ([], [STARTED_ONLY]):
        sys.stderr.write(f"usage: pipe.py FOLDER [{STARTED_ONLY}]\n")
        return 2
    try:
        if arguments[1:] and not (os.environ.get(LEG) and os.environ.get(TOKEN)):
            return _serve_none()
        return Pipe(arguments[0]).run()
    except (OSError, KeyboardInterrupt):
        return 1  # the agent is gone, or says what is no message


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
