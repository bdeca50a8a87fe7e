"""Compare owners: whether another agent-relay may still live, and whether its pids are valid here."""

import shlex
from datetime import datetime
from enum import StrEnum

from agent_relay.domain.values.ids import Owner

_LONGEST_NAME, _LONGEST_PATH = 255, 4096


class OwnerRelation(StrEnum):
    """How another owner is related to us."""

    SELF = "self"
    SAME_KERNEL = "same kernel"
    """Another runtime folder or pid namespace: a lock tells whether it lives."""
    BEFORE_REBOOT = "before the reboot"
    """An earlier boot of this very machine: nothing of it lives."""
    ELSEWHERE = "elsewhere"
    """Perhaps another machine: nothing here can tell whether it lives."""


def find_owner_relation(other: Owner, us: Owner) -> OwnerRelation:
    """Return how `other` is related to `us`; an owner of which nothing is known counts as us.

    A machine that was renamed since it booted is still the same machine.
    """
    if other == us or not other.is_known:
        return OwnerRelation.SELF
    if other.boot and other.boot == us.boot:
        is_self = (other.pid_namespace, other.runtime) == (us.pid_namespace, us.runtime)
        return OwnerRelation.SELF if is_self else OwnerRelation.SAME_KERNEL
    is_rebooted = bool(other.boot and us.boot) and (other.host, other.machine) == (us.host, us.machine)
    return OwnerRelation.BEFORE_REBOOT if is_rebooted else OwnerRelation.ELSEWHERE


def may_use_pid(owner: Owner, us: Owner, *, noted_at: datetime, booted_at: datetime) -> bool:
    """Return whether a pid `owner` noted at `noted_at` can mean the same process here and now.

    If no boot was noted, the time tells whether the machine was started since. The caller must still compare
    the process's start time: another process may have got the same number.
    """
    if not owner.is_known:
        return noted_at >= booted_at
    if owner.boot and us.boot:
        return (owner.boot, owner.pid_namespace) == (us.boot, us.pid_namespace)
    is_here = (owner.host, owner.pid_namespace) == (us.host, us.pid_namespace)
    return is_here and noted_at >= booted_at


def is_plausible(owner: Owner) -> bool:
    """Return whether an agent-relay may have noted it: names are words, paths absolute or empty.

    A record may come with a cloned repository, and what it says is shown to people.
    """
    names = (owner.host, owner.machine, owner.boot, owner.pid_namespace)
    are_words = all(name.isprintable() and " " not in name and len(name) <= _LONGEST_NAME for name in names)
    runtime = owner.runtime
    is_path = runtime[:1] in ("", "/") and runtime.isprintable() and len(runtime) <= _LONGEST_PATH
    return are_words and is_path


def render_way_there(owner: Owner, command: str) -> str:
    """Return how a person runs `command` with the runtime folder of `owner`, on its machine."""
    folder, _, name = owner.runtime.rpartition("/")
    variable = {"agent-relay": "XDG_RUNTIME_DIR", "run": "AGENT_RELAY_HOME"}.get(name)
    return f"{variable}={shlex.quote(folder)} agent-relay {command}" if variable else f"agent-relay {command}"


def render_owner(owner: Owner, us: Owner) -> str:
    """Return a description of the owner for a person: what differs from us."""
    if not owner.is_known:
        return "another agent-relay"
    if owner.host != us.host and owner.boot != us.boot:
        return f"the agent-relay on {owner.host or 'another machine'}"
    if owner.pid_namespace != us.pid_namespace:
        return "the agent-relay of another container on this machine"
    return f"the agent-relay with the runtime folder {owner.runtime}"
