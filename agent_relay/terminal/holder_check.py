"""Check whether a holder could be started now."""

import contextlib
import json
import os
import sys
import threading
import time

from agent_relay.domain.text.reasons import find_reason
from agent_relay.system.programs import Ending, run_program
from agent_relay.terminal.holder.entry import CHECK
from agent_relay.terminal.holder_start import ENTRY, build_command

_CHECK_S = 20.0
_AGAIN_S = 1.0
"""How long a fault is remembered: frequent checks must not start a program each time."""


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
        with contextlib.suppress(ValueError):
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
