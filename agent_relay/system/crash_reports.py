"""Crash reports: where our code failed, without any of the contents it was working on."""

import contextlib
import os
import platform
import sys
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import write_atomic
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.failures import render_error

_KEPT = 20


def write_crash(folder: str, error: BaseException, *, at: datetime, version: str, doing: str) -> str:
    """Write a new report to `folder` and return its path, empty if it could not be written; never raise.

    It contains versions, the types of the errors and the lines of our own code they passed: no messages, no
    values, no foreign paths, for any of these may quote a prompt or a key. `doing` is a constant or an
    operation's name. The newest 20 reports are kept.
    """
    path = f"{folder}/{at:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}.txt"
    try:
        ensure_private(folder)
        write_atomic(path, render_crash(error, at=at, version=version, doing=doing).encode(), durable=False)
        _remove_old(folder)
    except (RelayError, OSError):
        return ""
    return path


def render_crash(error: BaseException, *, at: datetime, version: str, doing: str) -> str:
    """Return the report's text."""
    lines = [
        f"agent-relay {version}",
        f"python {platform.python_version()} on {sys.platform} {platform.release()}",
        f"at {at.isoformat(timespec='seconds')}",
        f"doing {doing}",
        "",
    ]
    return "\n".join([*lines, *render_error(error)]) + "\n"


def _remove_old(folder: str) -> None:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".txt"))
    for name in names[:-_KEPT]:
        with contextlib.suppress(OSError):
            os.unlink(f"{folder}/{name}")
