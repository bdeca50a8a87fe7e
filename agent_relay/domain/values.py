"""Define ids as types, the owner of legs and trees, a working tree at one moment, and elapsed time.

Time elapses by a wall clock that may be set, on machines that sleep.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NewType

import msgspec

if TYPE_CHECKING:
    # Does the same, and mypy knows from it which fields there are, and of which types.
    from dataclasses import replace as replace  # noqa: PLC0414 - so that other modules may import it
else:
    from msgspec.structs import replace

LegId = NewType("LegId", str)
AgentName = NewType("AgentName", str)


class Confidential(msgspec.Struct, frozen=True):
    """A value that holds a user's environment, keys included: as text it shows nothing of what it holds."""

    def __repr__(self) -> str:
        """Return the kind of value it is."""
        return f"{type(self).__name__}(…)"


class Owner(msgspec.Struct, frozen=True):
    """The agent-relay of one user; tells it apart from another one of the same user.

    `host` is the machine's name, `machine` a digest of its id (two machines may have one name, and clones one
    id), `boot` the kernel's boot id, `pid_namespace` the namespace of its pids, `runtime` the absolute path
    of the runtime folder. A field is empty if it could not be read; all are in journals older than this
    class.
    """

    host: str = ""
    machine: str = ""
    boot: str = ""
    pid_namespace: str = ""
    runtime: str = ""

    @property
    def is_known(self) -> bool:
        """True if anything is recorded."""
        return bool(self.boot or self.host or self.runtime)


UNKNOWN_OWNER = Owner()
"""Owner of a leg whose journal was written before owners were recorded."""


class Asker(msgspec.Struct, frozen=True):
    """The user who asked for something, by login name, and how; empty if not known.

    `via` is terminal, program (a process without a terminal), agent (a command that an agent ran), mcp (an
    agent's tool) or config (a setting).
    """

    user: str = ""
    via: str = ""


NOBODY = Asker()
BY_CONFIG = Asker(via="config")


class TreeFile(msgspec.Struct, frozen=True):
    """One path that differs from HEAD; relative to the root, undecodable bytes as surrogate escapes.

    `added` and `removed` are lines, `None` for binary, conflicted and most untracked files. `changed_at`
    (aware) is when the file was last written, `None` if nobody looked.
    """

    path: str
    status: Literal["created", "modified", "deleted", "renamed", "untracked"]
    added: int | None = None
    removed: int | None = None
    previous_path: str | None = None
    changed_at: datetime | None = None


class Tree(msgspec.Struct, frozen=True):
    """The state of the folder a session works in.

    `root` is the git toplevel, or the folder itself if there is no work tree; then `is_git` is false
    and `note` says why if that is worth knowing. `head` is `None` before the first commit, `branch`
    is `None` when HEAD is detached. `fingerprint` is SHA-256 over HEAD, the index, the contents of
    changed files and the names, sizes and times of untracked ones; empty without git. `omitted` counts
    changed or untracked paths beyond the listed ones.

    If git did not report everything, it is not `is_whole`, and `note` says why: what is missing is unknown
    then, `dirty` is `None` unless a change was seen, and there is no fingerprint.

    Among files that were looked up by name, `clean` are those that match HEAD, `gone` those that are neither
    in the folder nor in git; both relative to the root.
    """

    root: str
    is_git: bool = False
    branch: str | None = None
    head: str | None = None
    dirty: bool | None = False
    fingerprint: str = ""
    note: str = ""
    files: tuple[TreeFile, ...] = ()
    omitted: int = 0
    is_whole: bool = True
    clean: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def render_path(path: str) -> str:
    r"""Return `path` as documents carry it: undecodable bytes as `\xNN`, everything else as it is."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_TOLD = 5


def render_paths(paths: Sequence[str]) -> str:
    """Render the first five paths, and how many more there are: `a, b and 3 more`."""
    names = ", ".join(map(render_path, paths[:_TOLD]))
    return f"{names} and {len(paths) - _TOLD} more" if len(paths) > _TOLD else names


class ClockJump(msgspec.Struct, frozen=True):
    """The wall clock moved by `by` more than time passed for the waking machine: it slept, or was set.

    `since` (aware) is a moment by the new time; nothing was written between it and the jump.
    """

    by: timedelta
    since: datetime

    @property
    def is_back(self) -> bool:
        """True if the clock was set back, so that newer moments seem older."""
        return self.by < timedelta(0)


class Start(msgspec.Struct, frozen=True):
    """A moment something began at: `at` (aware) for comparing with moments noted later.

    `counts_from` is what is subtracted from a later now, both by the wall clock as it was set since.
    """

    at: datetime
    counts_from: datetime

    def after(self, jump: ClockJump) -> "Start":
        """Return the same moment, seen after a jump of the clock."""
        at = min(self.at, jump.since) if jump.is_back else self.at
        return replace(self, at=at, counts_from=self.counts_from + jump.by)

    def get_elapsed(self, now: datetime) -> timedelta:
        """Return how long it has lasted while the machine was awake; never less than nothing."""
        return max(timedelta(0), now - self.counts_from)


def start_at(at: datetime) -> Start:
    """Return the start of something that begins at `at`, by the wall clock as it is set now."""
    return Start(at, at)


def is_later(at: datetime, than: datetime, now: datetime) -> bool:
    """Return whether `at` is later than `than`, by a clock that may have been set back since `than`.

    If `than` is in the future, it was noted before the clock was set back: any moment up to now is later.
    """
    return at <= now if than > now else at > than


def has_passed(span: timedelta, since: datetime, now: datetime) -> bool:
    """Return whether `span` has passed since a moment noted by a clock that may have been set since.

    A moment that is further ahead than `span` was noted by another time: nothing is to wait until it comes.
    """
    return abs(now - since) >= span
