"""One loopback HTTP server that speaks the wires of all four agents' providers."""

import gzip
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.support.provider import anthropic, errors, google, openai
from tests.support.provider.script import Part, asks_for_document, flatten
from tests.support.provider.steps import Step, say

Json = dict[str, Any]
AGENTS = ("claude", "codex", "gemini", "opencode")
PACE_S = 0.01  # between two events of a stream, so that a screen is painted in several frames
SIDE = say('{"title": "A scripted title"}')


class Wire(NamedTuple):
    """One wire format."""

    is_main: Callable[[Json], bool]
    render_stream: Callable[[Json, Step], Iterable[bytes]]
    build_whole: Callable[[Json, Step], Json]


WIRES = {
    "/messages": Wire(anthropic.is_main, anthropic.render_stream, anthropic.build_whole),
    "/responses": Wire(openai.is_main, openai.render_responses, openai.build_responses),
    "/completions": Wire(openai.is_main, openai.render_chat, openai.build_chat),
}


class Provider(ThreadingHTTPServer):
    """The server of the worlds in `folder`: a path names one, then an agent. Its port is `server_port`."""

    daemon_threads = True

    def __init__(self, folder: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._folder = folder
        self._parts: dict[str, Part] = {}

    def get_part(self, world: str) -> Part:
        """What is played in the world; to use it raises `OSError` once the world is gone."""
        return self._parts.setdefault(world, Part(os.path.join(self._folder, world)))

    def handle_error(self, _request: object, _client_address: object) -> None:
        """An agent that ends in the middle of a request is no error; anything else is told."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


class Handler(BaseHTTPRequestHandler):
    """One connection of one agent."""

    protocol_version = "HTTP/1.1"
    server: Provider
    part: Part

    def log_message(self, *_args: object) -> None:
        """Say nothing on stderr: the log file has it all."""

    def do_GET(self) -> None:
        """Answer the questions agents ask on the side; none of them matters to a turn."""
        agent, path = self.split_path()
        if (self.headers.get("upgrade") or "").lower() == "websocket":
            return self.send(426, {"error": {"message": "use HTTP"}})
        self.part.log.write({"agent": agent, "method": "GET", "path": path, "main": False})
        if path.endswith("/models"):
            return self.send(200, {"object": "list", "data": [], "models": []})
        if path.endswith("getCodeAssistGlobalUserSetting"):
            return self.send(200, {"cloudaicompanionProject": "scripted-project"})
        return self.send(404, {"error": {"message": "not scripted", "code": 404, "status": "NOT_FOUND"}})

    def do_HEAD(self) -> None:
        """Be there."""
        self.send(200, {})

    def do_POST(self) -> None:
        """Answer a model request by its wire; a client that goes away ends its own answer only."""
        agent, path = self.split_path()
        request = self.read_request()
        try:
            self.answer(agent, path, request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, agent: str, path: str, request: Json) -> None:
        """Choose the wire by the path."""
        if path.endswith(("/count_tokens", ":countTokens")):
            self.send(200, {"input_tokens": 1234, "totalTokens": 1234})
        elif "/v1internal:" in path or "/models/" in path:
            self.answer_google(agent, path, request)
        elif (wire := WIRES.get("/" + path.rsplit("/", 1)[1])) is not None:
            main = wire.is_main(request) or asks_for_document(request)
            step = self.take_step(agent, path, request, main=main)
            if self.refuse(step):
                return
            headers = self.success_headers(agent, step)
            if request.get("stream"):
                self.stream(wire.render_stream(request, step), headers)
            else:
                self.send(200, wire.build_whole(request, step), headers)
        else:
            self.part.log.write({"agent": agent, "method": "POST", "path": path, "main": False})
            self.send(404, {"error": {"message": "not scripted"}})

    def answer_google(self, agent: str, path: str, request: Json) -> None:
        """Answer on the Gemini wire, plain or wrapped by Code Assist."""
        operation = path.rsplit(":", 1)[1]
        wrapped = "/v1internal:" in path
        if wrapped and operation not in ("generateContent", "streamGenerateContent"):
            return self.send(200, google.CODE_ASSIST.get(operation, {}))
        inner: Json = request.get("request", {}) if wrapped else request
        model = str(request.get("model") or path.rsplit("/", 1)[1].split(":", maxsplit=1)[0])
        main = google.is_main(inner)
        step = self.take_step(agent, path, request, main=main)
        if not main:
            step = say(google.get_side_text(inner))
        if self.refuse(step):
            return None
        if operation == "streamGenerateContent":
            return self.stream(google.render_stream(model, step, wrapped=wrapped), {})
        return self.send(200, google.build_whole(model, step, wrapped=wrapped))

    def take_step(self, agent: str, path: str, request: Json, *, main: bool) -> Step:
        """Log the request, wait if the step says so, and return the step (a fixed one for side requests)."""
        step = self.part.script.take_step(agent) if main else SIDE
        row = {"agent": agent, "method": "POST", "path": path, "main": main, "step": step}
        self.part.log.write({**row, "text": flatten(request), "body": request})
        time.sleep(step.get("hang_s", 0))
        return step

    def refuse(self, step: Step) -> bool:
        """Send the step's refusal if it is one."""
        if "error" not in step:
            return False
        status, headers, body = errors.get_refusal(step["error"], step.get("given", {}))
        self.send(status, body, headers)
        return True

    def success_headers(self, agent: str, step: Step) -> dict[str, str]:
        """What a healthy answer carries for this agent, or the step's own headers."""
        if "headers" in step:
            return step["headers"]
        match agent:
            case "claude":
                return errors.claude_headers()
            case "codex":
                return errors.codex_headers()
            case _:
                return {}

    def split_path(self) -> tuple[str, str]:
        """The agent that the path names after the world, and the rest without the query."""
        world, _, path = self.path.split("?")[0].lstrip("/").partition("/")
        self.part = self.server.get_part(world)
        agent, _, rest = path.partition("/")
        return (agent, "/" + rest) if agent in AGENTS else ("", "/" + path)

    def read_request(self) -> Json:
        """The JSON body, `{}` when there is none."""
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        while not length and "chunked" in (self.headers.get("transfer-encoding") or ""):
            size = int(self.rfile.readline().split(b";")[0], 16)
            raw += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        if (self.headers.get("content-encoding") or "") == "gzip":
            raw = gzip.decompress(raw)
        body: Json = json.loads(raw) if raw else {}
        return body

    def send(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        """Answer with one JSON object."""
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for key, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events: Iterable[bytes], headers: dict[str, str]) -> None:
        """Answer with server-sent events; the connection ends with them."""
        self.send_response(200)
        for key, value in {"content-type": "text/event-stream", "connection": "close", **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.close_connection = True
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()
            time.sleep(PACE_S)
