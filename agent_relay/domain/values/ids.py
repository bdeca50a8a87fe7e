"""Ids as types, and the owner of legs and trees: one runtime folder, on one boot of one host."""

from dataclasses import dataclass
from typing import NewType

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
