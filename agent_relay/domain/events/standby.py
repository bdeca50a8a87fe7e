"""Define the lines of a session's journal about its standby: the next agent, started before a limit."""

from typing import ClassVar

import msgspec

from agent_relay.domain.values import Owner


class StandbyStarting(msgspec.Struct, frozen=True):
    """The agent that would take over is about to be started as `leg`, which has no task and no lease.

    `setup` identifies the configuration it is started with. The other fields are as in `LegStarting`.
    """

    name: ClassVar[str] = "standby.starting"
    leg: str
    agent: str
    native_id: str = ""
    resumes: bool = False
    setup: str = ""
    effort: str = ""
    host: str = ""
    machine: str = ""
    boot: str = ""
    pid_namespace: str = ""
    runtime: str = ""

    @property
    def owner(self) -> Owner:
        """The owner of the leg."""
        return Owner(self.host, self.machine, self.boot, self.pid_namespace, self.runtime)


class StandbyStarted(msgspec.Struct, frozen=True):
    """The standby's process lives; the pids are as in `LegStarted`."""

    name: ClassVar[str] = "standby.started"
    leg: str
    holder_pid: int
    child_pid: int
    child_born: int


class StandbyReady(msgspec.Struct, frozen=True):
    """The standby waits for a prompt."""

    name: ClassVar[str] = "standby.ready"
    leg: str
    agent: str


class StandbyDropped(msgspec.Struct, frozen=True):
    """The standby is not wanted any more, or `unfit` to take over, and is about to be ended."""

    name: ClassVar[str] = "standby.dropped"
    leg: str
    agent: str
    why: str = ""
    unfit: bool = False


class StandbyEnded(msgspec.Struct, frozen=True):
    """The standby's process is gone, or was never there, before it took over; `why` if nobody ended it."""

    name: ClassVar[str] = "standby.ended"
    leg: str
    agent: str
    why: str = ""


StandbyBody = StandbyStarting | StandbyStarted | StandbyReady | StandbyDropped | StandbyEnded
