"""Mistakes of ours in a holder: noted without a word of what it was working on, and survived."""

import os
import time

from agent_relay.system.crash_lines import render_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

NOTES_FILE = "holder-crash.txt"
# A mistake that is made with every key or read must not fill the runtime folder, which lies in memory.
_MOST_NOTES = 50


class Faults:
    """The notes in a leg's folder. `told(doing)` is called with each mistake; `count` says how many."""

    __slots__ = ("_folder", "_told", "count")

    def __init__(self, folder: str, told: "Callable[[str], None] | None" = None) -> None:
        self._folder = folder
        self._told = told
        self.count = 0

    def note(self, error: BaseException, doing: str) -> None:
        """Write down where it happened; `doing` is a constant or an operation's name. Raise nothing."""
        self.count += 1
        if self.count <= _MOST_NOTES:
            append_note(self._folder, error, doing)
        if self._told is not None:
            self._told(doing)

    def guard(self, doing: str) -> "_Guard":
        """Return a guard: what is raised within ends what is done within, and nothing else."""
        return _Guard(self, doing)


class _Guard:
    """One step of several, none of which may keep the others from being done."""

    __slots__ = ("_doing", "_faults")

    def __init__(self, faults: Faults, doing: str) -> None:
        self._faults = faults
        self._doing = doing

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: "type[BaseException] | None", error: BaseException | None, _trace: "TracebackType | None"
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._faults.note(error, self._doing)
        return True


def append_note(folder: str, error: BaseException, doing: str) -> None:
    """Add a note to the leg's folder; a folder that is gone or full is no reason to fail."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = "\n".join([f"at {moment}", f"doing {doing}", *render_error(error)]) + "\n\n"
    try:
        fd = os.open(
            f"{folder}/{NOTES_FILE}",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            os.write(fd, text.encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except OSError:
        return
