"""Runs the git program without side effects: no locks, hooks, pagers, prompts, monitors or fetches.

Every git of ours is started here. Which filters it may ask is decided in `git_filters`.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent_relay.system.search_path import keep_absolute

TIMEOUT_S = 10.0
LIMIT_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16
_EXHAUSTED = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

# Command-line configuration outranks every file, and git hands it on to submodules.
_OVERRIDES = (
    "safe.bareRepository=explicit",  # else files of a clone that look like a repository are taken for one
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "diff.external=",
    "diff.autoRefreshIndex=false",  # else `git diff` rewrites the index, optional locks or not
    "diff.ignoreSubmodules=none",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
)
# Variables a git hook or a wrapping tool leaves behind would point us at another repository.
_KEPT = ("GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")
_FORCED = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class GitMissingError(Exception):
    """There is no git program to run, or no such folder to run it in.

    Or the machine can start no program now: `is_exhausted`, and nothing is known of git then.
    """

    def __init__(self, why: str, *, is_exhausted: bool = False) -> None:
        super().__init__(why)
        self.is_exhausted = is_exhausted


@dataclass(slots=True)
class Answer:
    """What one git command said. `cut` is true where it was ended at its size or time limit."""

    code: int = -1
    out: bytearray = field(default_factory=bytearray)
    error: bytearray = field(default_factory=bytearray)
    cut: bool = False
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether git finished and reported success."""
        return self.code == 0 and not self.cut


def ask_git(
    cwd: str,
    *commands: Sequence[str],
    limit_bytes: int = LIMIT_BYTES,
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] = NO_VARIABLES,
) -> list[Answer]:
    """The answers of `commands`, which run at the same time in `cwd`; a failing command is an answer too.

    `environ` is added to what git sees: another index, another store of objects.
    Output beyond `limit_bytes` ends its command. Raises GitMissingError where git cannot be started.
    """
    running: list[subprocess.Popen[bytes]] = []
    answers = [Answer() for _ in commands]
    try:
        for command in commands:
            running.append(_start(cwd, command, environ))  # noqa: PERF401 - what started must be known when one fails
        _drain(running, answers, limit_bytes=limit_bytes, deadline=time.monotonic() + timeout_s)
    finally:
        for process, answer in zip(running, answers, strict=False):
            _end(process, answer)
    return answers


def _start(cwd: str, command: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    flags = [part for pair in _OVERRIDES for part in ("-c", pair)]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    environment["PATH"] = keep_absolute(os.environ.get("PATH", os.defpath))
    try:
        return subprocess.Popen(
            ["git", "--no-pager", "--literal-pathspecs", *flags, *command],
            cwd=cwd,
            env=environment | _FORCED | dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as problem:
        why = problem.strerror or "git cannot be started"
        raise GitMissingError(why, is_exhausted=problem.errno in _EXHAUSTED) from problem


def _drain(
    running: Sequence[subprocess.Popen[bytes]],
    answers: Sequence[Answer],
    *,
    limit_bytes: int,
    deadline: float,
) -> None:
    with selectors.DefaultSelector() as selector:
        for process, answer in zip(running, answers, strict=True):
            for stream, into in ((process.stdout, answer.out), (process.stderr, answer.error)):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ, (process, answer, into))
        while selector.get_map():
            left_s = deadline - time.monotonic()
            ready = selector.select(max(left_s, 0.0))
            if not ready and left_s <= 0:
                for key in list(selector.get_map().values()):
                    key.data[1].cut = key.data[1].timed_out = True
                return
            for key, _ in ready:
                process, answer, into = key.data
                chunk = os.read(key.fd, _CHUNK_BYTES)
                room = limit_bytes - len(into)
                into += chunk[:room]
                if chunk and len(chunk) <= room:
                    continue
                if chunk:
                    answer.cut = True
                    _kill(process)  # it would wait for a reader until the deadline
                selector.unregister(key.fileobj)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The group, because git may have started itself again for a submodule or a filter.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], answer: Answer) -> None:
    if answer.cut:
        _kill(process)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    try:
        answer.code = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        _kill(process)
        answer.code = process.wait()
        answer.cut = answer.timed_out = True
