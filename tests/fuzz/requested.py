"""What comes on the daemon's socket: lines torn, oversize, unknown and wrong, to every operation there is."""

import asyncio
import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Coroutine

from msgspec import structs

from agent_relay.daemon._application import Application, open_app
from agent_relay.daemon.run import Daemon, build_handlers
from agent_relay.daemon.server import Notices, Server
from agent_relay.domain.protocol.operations import OPERATIONS
from agent_relay.domain.protocol.wire import build_hello, parse_line, render_line
from agent_relay.system.clock import SystemClock
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.net.unix_sockets import listen
from tests.fuzz.inputs import Step
from tests.fuzz.messages import make_body

_TEXTS = (
    *("agent", "focus", "model", "session", "task", "race", "message", "handoff", "note", "rollback", "by"),
    *("leg", "token", "query", "to", "title", "intent", "current_state", "next_step", "repo", "branch"),
    *("history_summary", "reason", "suggested_next"),
)
_LISTS = (
    *("agents", "args", "expect", "accept", "check", "propose_check", "constraint", "needs", "question"),
    *("blockers", "deliverables", "completed", "incomplete", "questions"),
)
_FLAGS = (
    *("new", "yes", "no_launch", "wait", "turn", "waits", "stop", "agreed", "apply", "digest"),
    *("skip_checks", "run_proposed", "anyway"),
)
_NUMBERS = (
    *("most", "seen", "after", "runner", "max_time_s"),
    *("test_limit_s", "check_limit_s", "limit", "within_s"),
)
_FIELDS: dict[str, object] = {
    **dict.fromkeys(_TEXTS, "nobody"),
    **{name: ["nobody"] for name in _LISTS},
    **dict.fromkeys(_FLAGS, True),
    **dict.fromkeys(_NUMBERS, 0),
    "cwd": "/nowhere",
    "root": "/nowhere",
    "env": {},
    "rows": 24,
    "cols": 80,
    "from": "a:b",
    "told": {"number": 0},
    "priority": "high",
    "verdict": "failed",
    "test": "true",
    "files": [{"path": "a.txt", "lines": "1-2"}],
    "criteria": [{"criterion": "1", "met": True, "how": "seen"}],
    "report": {"criteria": [{"criterion": "1", "met": True, "how": "seen"}]},
}
# One ends the daemon, the other starts a program of its own.
_LEFT_OUT = {"daemon.stop", "mcp.serve"}
_ANSWER_S = 10.0


class Requested:
    """Whatever was sent, the daemon answers the next one, and nothing it did not expect was raised."""

    name = "requested"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = tempfile.mkdtemp(prefix="fuzz-daemon-")
        self._findings: list[BaseException] = []
        self._app: Application | None = None
        self._server: Server | None = None
        self._ops: dict[str, dict[str, object]] = {}
        self._do(self._begin())

    def _do(self, work: Coroutine[object, object, None]) -> None:
        self._loop.run_until_complete(work)

    def _report(self, error: BaseException, _doing: str) -> str:
        self._findings.append(error)
        return ""

    def _report_task(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self._findings.append(error if isinstance(error, BaseException) else RuntimeError(str(context)))

    async def _begin(self) -> None:
        self._loop.set_exception_handler(self._report_task)
        folders = Folders(*(f"{self._folder}/{name}" for name in ("run", "state", "config")))
        for folder in (folders.runtime, folders.state, folders.config):
            ensure_private(folder)
        clock, notices = SystemClock(), Notices()
        self._app = open_app(folders, clock, notices)
        await self._app.start()
        daemon = Daemon(
            folders,
            clock.now(),
            count_connections=lambda: 0,
            count_subscribers=lambda: len(notices),
            stop=lambda: None,
        )
        handlers = build_handlers(daemon, self._app.handlers())
        self._ops = {
            name: {one.encode_name: _FIELDS[one.encode_name] for one in structs.fields(operation.fields)}
            for name, operation in OPERATIONS.items()
            if name not in _LEFT_OUT
        }
        self._server = Server(handlers, notices, uid=os.geteuid(), report=self._report, place={})
        await self._server.start(listen(f"{folders.runtime}/sock"))

    def make(self, rng: random.Random) -> list[Step]:
        """Two connections, with a hello or without, that speak at once."""
        steps: list[Step] = [["begin"]]
        hello = render_line(build_hello("0")).decode("latin-1")
        # Without a hello there is nothing more to say.
        steps += [["send", number, hello] for number in (0, 1) if rng.random() < 0.95]
        for _ in range(rng.randrange(1, 6)):
            number, luck = rng.randrange(2), rng.random()
            line = make_body(rng, self._ops).decode("latin-1") + "\n"
            if luck < 0.1:
                line = line[: rng.randrange(len(line) + 1)]
            elif luck < 0.12:
                line = "x" * rng.choice(((1 << 20) - 1, 1 << 20, 3 << 20))
            steps.append(["send", number, line])
            if rng.random() < 0.1:
                steps.append([rng.choice(("close", "eof")), number])
        return steps

    def run(self, steps: list[Step]) -> None:
        """The input, sent; the daemon is asked how it is."""
        self._findings.clear()
        self._do(self._send(steps))
        self._do(self._ask())
        for error in self._findings:
            raise error

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(f"{self._folder}/run/sock", limit=1 << 21)

    async def _send(self, steps: list[Step]) -> None:
        streams: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        ended: set[int] = set()
        for step in steps[1:]:
            number = int(str(step[1]))
            if number not in streams:
                streams[number] = await self._connect()
            _reader, writer = streams[number]
            if writer.is_closing() or number in ended:
                continue
            with contextlib.suppress(OSError):
                match step[0]:
                    case "send":
                        writer.write(str(step[2]).encode("latin-1"))
                    case "eof":
                        ended.add(number)
                        writer.write_eof()
                    case _:
                        streams.pop(number)
                        writer.close()
        for reader, writer in streams.values():
            with contextlib.suppress(OSError):
                writer.write_eof()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_ANSWER_S):
                    while await reader.read(1 << 16):
                        pass
            writer.close()

    async def _ask(self) -> None:
        reader, writer = await self._connect()
        writer.write(render_line(build_hello("0")) + render_line({"op": "ping", "id": 7}))
        async with asyncio.timeout(_ANSWER_S):
            await reader.readline()
            assert parse_line(await reader.readline()) == {"id": 7, "ok": True}
        writer.close()

    def close(self) -> None:
        """The daemon is gone."""
        assert self._server is not None
        assert self._app is not None
        self._do(self._server.stop())
        self._do(self._app.stop())
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)
