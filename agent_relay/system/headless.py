"""Run a program without a terminal to its end: text in, bounded output out, no process left behind."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Mapping, Sequence

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.system import headless_parent
from agent_relay.system.disk.files import cannot_write, read_end, write_atomic
from agent_relay.system.headless_parent import ENDED, REFUSED
from agent_relay.system.processes import born, end_session, read_ticks

OUTPUT_BYTES = 16 << 20
ERROR_BYTES = 64 << 10
_REQUEST, _OUTPUT, _ERRORS = "request", "output", "errors"
_LOOK_S = 0.1
"""Seconds between looks at the size of its output: a flood fills the disk, or memory, meanwhile."""
_ANSWER_BYTES = 4096


class ProgramResult(msgspec.Struct, frozen=True):
    """End of a program: the exit status as a shell has it, its output, the end of its standard error."""

    status: int
    output: str
    errors: str


async def run_headless(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str, folder: str, text: str, limit_s: float
) -> ProgramResult:
    """Run `argv` to its end, with `text` on standard input, in a Unix session of its own.

    Its streams are files in the private `folder`: processes that outlive it may keep them open. The whole
    session has ended when this returns, raises or is cancelled, and ends soon after this process does,
    however that ended. Raise RelayError if the program cannot be started, is not done within `limit_s`, or
    prints more than a limit allows.
    """
    write_atomic(os.path.join(folder, _REQUEST), text.encode("utf-8", "replace"), durable=False)
    before = read_ticks()
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = await _start(argv, theirs, env=env, cwd=cwd, folder=folder)
        # One that is gone already may have left others in its session, none of them older than that.
        began = born(process.pid) or before
        try:
            async with asyncio.timeout(limit_s):
                streams = [os.path.join(folder, name) for name in (_OUTPUT, _ERRORS)]
                status = await _wait(ours, streams, name=os.path.basename(argv[0]))
        except TimeoutError:
            raise RelayError(f"no answer came within {limit_s:g} s") from None
        finally:
            await _end(process, began)
    return ProgramResult(
        status if status >= 0 else 128 - status,
        _read_end(os.path.join(folder, _OUTPUT), OUTPUT_BYTES),
        _read_end(os.path.join(folder, _ERRORS), ERROR_BYTES),
    )


async def _start(
    argv: Sequence[str], told: socket.socket, *, env: Mapping[str, str], cwd: str, folder: str
) -> asyncio.subprocess.Process:
    create = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND
    with contextlib.ExitStack() as opened:

        def open_stream(name: str, flags: int) -> int:
            handle = os.open(os.path.join(folder, name), flags, 0o600)
            opened.callback(os.close, handle)
            return handle

        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                headless_parent.__file__,
                str(told.fileno()),
                *argv,
                env=dict(env),
                cwd=cwd,
                stdin=open_stream(_REQUEST, os.O_RDONLY | os.O_CLOEXEC),
                stdout=open_stream(_OUTPUT, create),
                stderr=open_stream(_ERRORS, create),
                start_new_session=True,
                pass_fds=(told.fileno(),),
            )
        except (OSError, ValueError) as error:
            raise RelayError(f"{os.path.basename(argv[0])} cannot be started: {error}") from error


async def _wait(told: socket.socket, streams: Sequence[str], *, name: str) -> int:
    """Return the program's status as its parent reports it.

    Raise RelayError if it cannot be started, prints more than 16 MiB to one of its streams, or was ended from
    outside.
    """
    told.setblocking(False)
    waiting = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(told, _ANSWER_BYTES))
    try:
        while not (await asyncio.wait({waiting}, timeout=_LOOK_S))[0]:
            if any(os.stat(stream).st_size > OUTPUT_BYTES for stream in streams):
                raise RelayError(f"it printed more than {OUTPUT_BYTES >> 20} MiB")
        what, _, more = waiting.result().partition(b" ")
    except OSError as error:
        raise RelayError(f"cannot tell how {name} ended: {error}") from error
    finally:
        waiting.cancel()
    if what == REFUSED:
        raise RelayError(f"{name} cannot be started: {more.decode('utf-8', 'replace')}")
    if what != ENDED:
        raise RelayError(f"{name} was ended from outside")
    return int(more)


async def _end(process: asyncio.subprocess.Process, began: int) -> None:
    """End every process of its session, and wait for that even if the caller is cancelled."""
    ending = asyncio.ensure_future(asyncio.to_thread(end_session, process.pid, began))
    while not ending.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({ending})


def _read_end(path: str, limit_bytes: int) -> str:
    try:
        return read_end(path, limit_bytes=limit_bytes).decode("utf-8", "replace")
    except OSError as error:
        raise cannot_write(path, error) from error
