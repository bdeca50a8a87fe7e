"""The process that has loaded the product and forks it: `python -I preload_server.py CHECKOUT FOLDER ROOM`.

An order comes over a socket in `FOLDER`. It names a program, its words, environment, folder and namespaces,
and brings three streams and a pipe for the status. This process has one thread, and ends with the first
connection.

What is forked starts a daemon as the product does, by a Python whose path it knows: here that is a script
which has this process fork it.
"""

import array
import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import termios
import time
from typing import NoReturn

CHECKOUT, FOLDER, _ = sys.argv[1:]
_ARGV_FIELD, _ENVIRON_FIELD = 45, 47
"""Where proc(5) names the bounds of the command line and of the environment, counted from the state on."""
_ASK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preload_ask.py")
_PYTHON = f"""#!/bin/sh
[ "$3" = --detached ] && exec '{sys.executable}' -I -S '{_ASK}' '{FOLDER}/sock' "$@"
exec '{sys.executable}' "$@"
"""
_status: list[int] = []
"""What this process will end with; nothing in the one that forks the others."""


def main() -> None:
    """Fork what is asked for, until the first connection ends."""
    # What is registered first is called last.
    atexit.register(_leave_at_once)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"{FOLDER}/sock")
    listening.listen(16)
    with open(f"{FOLDER}/python", "w", encoding="utf-8", opener=_open_program) as file:
        file.write(_PYTHON)
    load()
    owner, _ = listening.accept()
    endings: dict[int, tuple[int, int]] = {}
    polling = select.poll()
    for handle in (owner, listening):
        polling.register(handle, select.POLLIN)
    while True:
        for ready, _events in polling.poll():
            if ready in endings:
                polling.unregister(ready)
                _report(ready, *endings.pop(ready))
                continue
            asked = owner if ready == owner.fileno() else listening.accept()[0]
            order, rights, _flags, _peer = asked.recvmsg(1 << 20, socket.CMSG_SPACE(16))
            if not order:
                return
            *streams, status = array.array("i", rights[0][2])
            pid = os.fork()
            if not pid:
                ours = {owner.fileno(), listening.fileno(), asked.fileno(), status, *endings}
                for handle in ours | {told for _pid, told in endings.values()}:
                    os.close(handle)
                become(json.loads(order), streams)
            for stream in streams:
                os.close(stream)
            ending = os.pidfd_open(pid)
            endings[ending] = (pid, status)
            polling.register(ending, select.POLLIN)
            asked.send(str(pid).encode())
            if asked is not owner:
                asked.close()


def _open_program(path: str, flags: int) -> int:
    return os.open(path, flags, 0o700)


def _report(handle: int, pid: int, told: int) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(told, str(status).encode())
    os.close(told)
    os.close(handle)


def load() -> None:
    """Load every module of the product but the programs that are run by their paths."""
    sys.path.append(CHECKOUT)
    package = importlib.import_module("agent_relay")
    for module in pkgutil.walk_packages(package.__path__, "agent_relay."):
        if module.name != "agent_relay.hook":
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def become(order: dict[str, object], streams: list[int]) -> NoReturn:
    """Run the program in this process, and end with its status."""
    program, cwd, words, env = order["program"], order["cwd"], order["words"], order["env"]
    assert isinstance(program, str)
    assert isinstance(cwd, str)
    assert isinstance(words, list)
    assert isinstance(env, dict)
    namespaces = order["namespaces"]
    assert isinstance(namespaces, list)
    _enter(namespaces)
    if order["leads"]:
        os.setsid()
        if os.isatty(streams[0]):
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    path = os.path.join(CHECKOUT, program)
    sys.argv = [path, *words]
    python, sys.executable = sys.executable, f"{FOLDER}/python"
    _show([python, "-I", *sys.argv], _ARGV_FIELD)
    _show([f"{name}={value}" for name, value in env.items()], _ENVIRON_FIELD)
    time.tzset()
    _open_streams()
    name = os.path.relpath(path, CHECKOUT).removesuffix(".py").replace("/", ".")
    _status.append(1)
    try:
        code = importlib.import_module(name).main()
    except SystemExit as leaving:
        code = leaving.code
    except KeyboardInterrupt:
        _status.clear()
        raise
    _status[0] = code if isinstance(code, int) else int(code is not None)
    sys.exit(code)


def _leave_at_once() -> None:
    """End a forked process: to take apart what all of them share would copy it first, which takes 0.1 s."""
    with contextlib.suppress(OSError, ValueError):
        if _status:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_status[0])


def _enter(namespaces: list[str]) -> None:
    """Enter the namespaces at these paths, as nsenter(1) does; whoever is in one already stays."""
    for path in namespaces:
        here = f"/proc/self/ns/{os.path.basename(path)}"
        if os.stat(path).st_ino == os.stat(here).st_ino:
            continue
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.setns(handle, 0) == 0, f"{path} cannot be entered: {os.strerror(ctypes.get_errno())}"
        os.close(handle)


def _show(texts: list[str], field: int) -> None:
    """Have `/proc` show these texts, as it would of a program that was started with them."""
    with open("/proc/self/stat", "rb") as file:
        first, last = (int(word) for word in file.read().rpartition(b")")[2].split()[field : field + 2])
    block = b"".join(os.fsencode(text) + b"\0" for text in texts)
    assert len(block) <= last - first, "no room for so long a command line or environment"
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(first)
        memory.write(block.ljust(last - first, b"\0"))


def _open_streams() -> None:
    """Open the standard streams as Python does at its start (sys.stdout, its documentation)."""
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False, buffering=1 if os.isatty(1) else -1)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")


if __name__ == "__main__":
    main()
