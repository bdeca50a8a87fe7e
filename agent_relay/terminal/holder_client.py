"""Start holders, check whether one could be started, and talk to them, for the daemon."""

import asyncio
import contextlib
import errno
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Self

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.screen import Screen, parse_screen
from agent_relay.domain.text.plain import find_reason
from agent_relay.system.programs import Ending, run_program
from agent_relay.terminal.holder.entry import CHECK
from agent_relay.terminal.holder.wire import FrameError, FrameReader, HolderSpec, render_frame, render_spec
from agent_relay.terminal.waiting_holder import ENTRY, WaitingHolder, build_command, take_spare

_START_S = 20.0
_ANSWER_S = 10.0
_READ_BYTES = 1 << 16


class HolderError(RelayError):
    """A holder could not be started or reached, or refused; `why` is its word for that, empty if none."""

    def __init__(self, sentence: str, *, hint: str = "", why: str = "") -> None:
        super().__init__(sentence, hint=hint)
        self.why = why


class SpawnError(HolderError):
    """The program itself could not be started; `errno` says why."""

    def __init__(self, sentence: str, *, hint: str, number: int) -> None:
        super().__init__(sentence, hint=hint, why="spawn")
        self.errno = number


class StartedHolder(msgspec.Struct, frozen=True):
    """A holder and its child, both alive when it reported. `child_born` is the child's start in clock ticks.

    `emulator_error` is empty, or why screens will be refused.
    """

    holder_pid: int
    child_pid: int
    child_born: int
    emulator_error: str = ""


def start_holder(
    spec: HolderSpec, *, python: str = sys.executable, limit_s: float = _START_S
) -> StartedHolder:
    """Start the holder of a new leg, listening on `<leg_folder>/sock`: the waiting program, or a new one.

    A new one takes some 40 ms: call it in a thread. The spec's descriptors stay open here; the holder
    keeps copies of its own for life. The holder is not a child of this process and outlives it. Raise
    SpawnError if the program could not be started, HolderError if the holder could not.
    """
    order = render_spec(spec)
    spare = take_spare() if python == sys.executable else None
    try:
        said = spare.hold(order, spec, limit_s=limit_s) if spare is not None else None
        if said is None:
            # A program that waited may have been killed meanwhile. A holder that ended may have had an agent
            # at work: that one is not begun anew here.
            said = WaitingHolder(python=python).hold(order, spec, limit_s=limit_s)
    except TimeoutError as error:
        raise HolderError(f"the holder did not start within {limit_s:g} s") from error
    except OSError as error:
        raise HolderError(f"{python} cannot be started: {error.strerror}") from error
    try:
        line = json.loads(said or b"")
    except (ValueError, RecursionError) as error:
        raise HolderError(
            "the holder ended before it answered", hint=f"Look into {spec.leg_folder}."
        ) from error
    if not line["ok"]:
        raise _build_spawn_error(line, spec)
    return StartedHolder(int(line["pid"]), int(line["child"]), int(line["born"]), str(line["emulator_error"]))


def _build_spawn_error(line: dict[str, object], spec: HolderSpec) -> SpawnError:
    number = line["errno"] if isinstance(line["errno"], int) else 0
    hint = "Is it installed and on PATH?" if number == errno.ENOENT else ""
    return SpawnError(
        f"{spec.argv[0]} cannot be started: {line['file']}: {line['error']}", hint=hint, number=number
    )


class HolderConnection:
    """One connection of an asyncio daemon to a holder: requests, and after `watch` events.

    Every request raises HolderError if the holder is gone (`why` is `gone`) or refuses (`why` is its code).
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._events: asyncio.Queue[dict[str, object] | None] = asyncio.Queue()
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, leg_folder: str) -> Self:
        """Connect to the holder of that leg. Raise HolderError if none listens."""
        directory = -1
        try:
            # By way of /proc the length of the folder's path does not matter (sun_path has 108 bytes).
            directory = os.open(leg_folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            streams = await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/sock")
        except OSError as error:
            raise HolderError(f"no holder listens in {leg_folder}: {error.strerror}", why="gone") from error
        finally:
            if directory >= 0:
                os.close(directory)
        return cls(*streams)

    async def request(self, op: str, **fields: object) -> dict[str, object]:
        """Send a request; return the answer. Raise HolderError if refused, after 10 s, or with no holder."""
        self._next_id += 1
        number = self._next_id
        if self._pump.done():
            raise _build_gone_error()
        answer: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._writer.write(render_frame({"op": op, "id": number, **fields}))
            async with asyncio.timeout(_ANSWER_S):
                await self._writer.drain()
                found = await answer
        except TimeoutError as error:
            raise HolderError(f"the holder did not answer {op} within {_ANSWER_S:g} s", why="slow") from error
        except OSError as error:
            raise _build_gone_error() from error
        finally:
            self._waiting.pop(number, None)
        if not found.get("ok"):
            raise HolderError(f"the holder refused {op}: {found.get('error')}", why=str(found.get("code")))
        return found

    async def watch(self) -> dict[str, object]:
        """Subscribe to `events` and return the status now."""
        return await self.request("watch")

    async def events(self) -> AsyncIterator[dict[str, object]]:
        """Yield events as they come, until the holder is gone."""
        while (event := await self._events.get()) is not None:
            yield event
        # Whoever asks again must not wait for ever.
        self._events.put_nowait(None)

    async def screen(self, *, peek: bool = False) -> Screen:
        """Return the screen now, with rows scrolled away and states announced since the last non-peek."""
        return parse_screen((await self.request("screen", peek=peek))["screen"])

    async def type(
        self, data: bytes, *, unless_typed: bool = False, goes_on: bool = False, note: str | None = None
    ) -> None:
        """Send input whole; with `unless_typed` it is refused (`why`: `typed`) while a person types a line.

        With `goes_on` all others' input waits for what we send next, two seconds at most. A `note` is kept by
        the holder exactly if the input was sent, also if we die before its answer arrives.
        """
        kept = {} if note is None else {"note": note}
        text = data.decode("latin-1")
        await self.request("input", data=text, unless_typed=unless_typed, goes_on=goes_on, **kept)

    async def read_note(self) -> str | None:
        """Return the note of the last input that had one, empty for none; `None` if the holder keeps none."""
        noted = (await self.request("status")).get("noted")
        return noted if isinstance(noted, str) else None

    async def signal(self, name: str) -> int:
        """Send a Unix signal (`SIGTERM`) to the child's whole session; return how many processes got it."""
        return _number(await self.request("signal", signal=name), "reached")

    async def tail(self, offset: int, limit: int = 1 << 17) -> tuple[int, bytes]:
        """Return output from byte `offset` or the oldest byte kept, with the offset it begins at."""
        answer = await self.request("tail", offset=offset, limit=limit)
        return _number(answer, "offset"), str(answer["data"]).encode("latin-1")

    async def luggage(self) -> str:
        """Return the opaque text the holder was started with."""
        return str((await self.request("luggage"))["luggage"])

    async def collect(self) -> dict[str, object]:
        """Return the exit record; end what the child left behind."""
        exit_record = (await self.request("collect"))["exit"]
        return exit_record if isinstance(exit_record, dict) else {}

    async def leave(self) -> None:
        """End the holder of an ended child; its luggage is gone then."""
        await self.request("leave")

    async def leave_later(self) -> None:
        """Have the holder leave by itself soon after its child's end, even if nobody collects that."""
        await self.request("leave", later=True)

    async def close(self) -> None:
        """Close the connection; the holder lives on."""
        self._pump.cancel()
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._pump, return_exceptions=True)
            await self._writer.wait_closed()

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(_READ_BYTES):
                for message in self._frames.feed(data):
                    self._deal(message)
        except (OSError, FrameError):
            return
        finally:
            self._events.put_nowait(None)
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_build_gone_error())

    def _deal(self, message: dict[str, object]) -> None:
        if "event" in message:
            self._events.put_nowait(message)
            return
        number = message.get("id")
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is not None and not answer.done():
            answer.set_result(message)


def _build_gone_error() -> HolderError:
    return HolderError("the holder is gone", why="gone")


def _number(answer: dict[str, object], name: str) -> int:
    value = answer.get(name)
    return value if isinstance(value, int) else 0


_CHECK_S = 20.0
_AGAIN_S = 1.0
"""Seconds that a fault is remembered: frequent checks must not start a program each time."""


class HolderCheck:
    """Checks by a start that holds nothing whether a holder could be started.

    Success counts until files change, a fault is checked again after 1 s. Safe to call from several threads.
    """

    def __init__(
        self, *, python: str = sys.executable, entry: str = ENTRY, limit_s: float = _CHECK_S
    ) -> None:
        self._limit_s = limit_s
        self._python = python
        self._entry = entry
        self._place = entry.rsplit(os.sep, 3)[0]
        self._proven: dict[str, tuple[int, int, int]] = {}
        self._fault = ""
        self._asked_at = float("-inf")
        self._turn = threading.Lock()

    def find_fault(self) -> str:
        """Return why no holder can be started, for the user; empty if one can.

        Takes some 60 ms if its files have changed since the last successful check, else a hundredth of that.
        """
        with self._turn:
            if self._proven and all(_identify(path) == known for path, known in self._proven.items()):
                return ""
            if not os.path.exists(self._entry):
                return f"agent-relay is no longer installed in {self._place}"
            if not os.path.exists(self._python):
                return f"the Python that agent-relay runs on has gone: {self._python}"
            if not self._fault or time.monotonic() - self._asked_at >= _AGAIN_S:
                self._fault = self._try_out()
                self._asked_at = time.monotonic()
            return self._fault

    def _try_out(self) -> str:
        self._proven = {}
        command = [*build_command(python=self._python, entry=self._entry), CHECK]
        answer = run_program(command, limit_s=self._limit_s, environ={})
        if answer.ending is Ending.LATE:
            late = f"agent-relay in {self._place} did not start a program within {self._limit_s:g} s"
            return f"{late}: this machine is overloaded, or the disk it is on does not answer"
        files: list[str] = []
        with contextlib.suppress(ValueError, RecursionError):
            files = json.loads(answer.output) if answer.ok else []
        if not files:
            said = find_reason(answer.errors.decode("utf-8", "replace"))
            why = answer.why or said or f"status {answer.status}"
            return f"agent-relay in {self._place} cannot start anything: {why}"
        self._proven = {path: _identify(path) for path in (self._python, *files)}
        return ""


def _identify(path: str) -> tuple[int, int, int]:
    """Return what changes when another file takes the place of this one; zeros if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)
