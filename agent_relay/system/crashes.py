"""Crash reports: where our code broke, without a word of what it was working on."""

import contextlib
import os
import platform
import sys
from datetime import datetime
from types import TracebackType

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import write_atomic
from agent_relay.system.folders import ensure_private

_KEPT = 20
_CHAIN_LIMIT = 8
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def write_crash(folder: str, error: BaseException, *, at: datetime, version: str, doing: str) -> str:
    """The path of a new report in `folder`, or empty where it could not be written; never raises.

    It holds versions, the types of the errors and the lines of our own code they passed: no messages, no
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
    """The report's text."""
    lines = [
        f"agent-relay {version}",
        f"python {platform.python_version()} on {sys.platform} {platform.release()}",
        f"at {at.isoformat(timespec='seconds')}",
        f"doing {doing}",
        "",
    ]
    current: BaseException | None = error
    for _ in range(_CHAIN_LIMIT):
        if current is None:
            break
        lines.append(type(current).__name__)
        lines.extend(_render_frames(current.__traceback__))
        following = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if following is not None:
            lines.append("caused by")
        current = following
    return "\n".join(lines) + "\n"


def _render_frames(trace: TracebackType | None) -> list[str]:
    lines: list[str] = []
    foreign = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        if os.path.abspath(code.co_filename).startswith(_PACKAGE + os.sep):
            if foreign:
                lines.append(f"  ({foreign} lines of other code)")
                foreign = 0
            place = os.path.relpath(os.path.abspath(code.co_filename), os.path.dirname(_PACKAGE))
            lines.append(f"  {place}:{trace.tb_lineno} in {code.co_name}")
        else:
            foreign += 1
        trace = trace.tb_next
    if foreign:
        lines.append(f"  ({foreign} lines of other code)")
    return lines


def _remove_old(folder: str) -> None:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".txt"))
    for name in names[:-_KEPT]:
        with contextlib.suppress(OSError):
            os.unlink(f"{folder}/{name}")
