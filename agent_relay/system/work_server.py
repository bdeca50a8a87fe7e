"""The server that processes with a limit are forked from: it imports given modules, and runs nothing else.

Forked from its client while that is young (`serve_forked`), or run by its path: then requests come by its
standard output. Its standard input is a pipe that is never written to, whose other end only its client has.
Whatever ends the client closes that end, and the kernel then ends the whole group with a signal, whatever it
is doing: importing, working, or waiting for work.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import sys
from typing import NoReturn

UNLOADED = 1
"""The exit status of a process that cannot load its work: a package whose files are gone."""
BEGUN = b"+"
"""Sent before every answer: without it nothing was done."""
LACKING = b"-"
"""Sent instead, with the number of an error after it: what no process could be started for lack of."""
_LONGEST_MESSAGE = 1 << 17
_BROKEN = 2
_CLIENT = 0
_REQUESTS = 1
_ERRORS = 2


def serve_forked(requests: int, pipe: int) -> NoReturn:
    """Make the process that was just forked from a client its server. Everything else it has open is closed.

    The client must have had one thread, and no event loop yet.
    """
    try:
        os.setsid()
        gc.enable()
        requests, pipe, null = os.dup(requests), os.dup(pipe), os.open(os.devnull, os.O_RDWR)
        for descriptor, stream in ((pipe, _CLIENT), (requests, _REQUESTS), (null, _ERRORS)):
            os.dup2(descriptor, stream, inheritable=False)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > _ERRORS:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        main(socket.socket(fileno=_REQUESTS))
    finally:
        os._exit(_BROKEN)


def main(requests: socket.socket) -> None:
    """Serve until the client is gone: first comes what to import, then a connection for each work."""
    _end_with(_CLIENT, -os.getpgrp())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children vanish without being asked after
    wanted = json.loads(requests.recv(_LONGEST_MESSAGE) or b'{"path": [], "modules": []}')
    sys.path[:] = wanted["path"]
    for module in wanted["modules"]:
        # What is missing is missed by the work that needs it.
        with contextlib.suppress(ImportError, SyntaxError):
            importlib.import_module(module)
    while True:
        message, handles, _, _ = socket.recv_fds(requests, 1, 1)
        if not message:
            return
        for handle in handles:
            _fork(requests, handle)


def _end_with(pipe: int, owner: int) -> None:
    """Have the kernel end `owner`, us or our group (negative), when the other end of the pipe is closed."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
    fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    ended = select.poll()
    ended.register(pipe, select.POLLHUP)
    if ended.poll(0):  # before we asked to be told
        os._exit(_BROKEN)


def _fork(requests: socket.socket, handle: int) -> None:
    """Fork a process for the work on the connection; if that fails, tell the client why."""
    with socket.socket(fileno=handle) as connection:
        try:
            is_ours = os.fork() != 0
        except OSError as error:
            _tell_lacking(connection, error)
            return
        if is_ours:
            return
        try:
            requests.close()
            _supervise(connection)
        finally:
            os._exit(_BROKEN)


def _tell_lacking(connection: socket.socket, error: OSError) -> None:
    with contextlib.suppress(OSError):  # the client is gone
        connection.sendall(LACKING + b"%d" % (error.errno or 0))


def _supervise(connection: socket.socket) -> None:
    """Have the work done by a child, end it when the client asks for that, and report how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = 0
    try:
        lives, held = os.pipe()
        child = os.fork()
        ended = os.pidfd_open(child) if child else -1
    except OSError as error:
        if child:
            os.kill(child, signal.SIGKILL)
        _tell_lacking(connection, error)
        return
    if child == 0:
        try:
            os.close(held)
            _end_with(lives, os.getpid())
            _work(connection)
        finally:
            os._exit(_BROKEN)
    connection.sendall(BEGUN)
    either = select.poll()
    either.register(ended, select.POLLIN)
    either.register(connection, select.POLLRDHUP)
    either.poll()
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    connection.sendall(pickle.dumps(os.waitstatus_to_exitcode(status)))


def _work(connection: socket.socket) -> None:
    with connection.makefile("rb") as asked:
        try:
            work, arguments = pickle.load(asked)  # noqa: S301 - the client's own words
        except (ImportError, AttributeError, SyntaxError):
            os._exit(UNLOADED)
    connection.sendall(pickle.dumps(work(*arguments)))
    os._exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=_REQUESTS))
