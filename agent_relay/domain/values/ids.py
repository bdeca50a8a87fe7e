"""Define ids as types, the owner of legs and trees, and a working tree at one moment."""

from dataclasses import dataclass
from typing import Literal, NewType

SessionId = NewType("SessionId", str)
LegId = NewType("LegId", str)
PacketId = NewType("PacketId", str)
AgentName = NewType("AgentName", str)


@dataclass(frozen=True, slots=True)
class Owner:
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
        """Whether anything is recorded."""
        return bool(self.boot or self.host or self.runtime)


UNKNOWN_OWNER = Owner()
"""Of a leg whose journal was written before owners were."""


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One path that differs from HEAD; relative to the root, undecodable bytes as surrogate escapes.

    `added` and `removed` are lines, `None` for binary, untracked and conflicted files.
    """

    path: str
    status: Literal["created", "modified", "deleted", "renamed", "untracked"]
    added: int | None = None
    removed: int | None = None
    previous_path: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of the folder a session works in.

    `root` is the git toplevel, or the folder itself if there is no work tree; then `is_git` is false
    and `note` says why if that is worth knowing. `head` is `None` before the first commit, `branch`
    is `None` when HEAD is detached. `fingerprint` is SHA-256 over HEAD, the index, the contents of
    changed files and the names, sizes and times of untracked ones; empty without git. `omitted` counts
    changed or untracked paths beyond the listed ones.

    If git did not report everything, it is not `is_whole`, and `note` says why: what is missing is unknown
    then, `dirty` is `None` unless a change was seen, and there is no fingerprint.
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


def render_path(path: str) -> str:
    r"""Return `path` as documents carry it: undecodable bytes as `\xNN`, everything else as it is."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
