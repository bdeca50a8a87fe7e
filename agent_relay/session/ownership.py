"""Decide whose a session is: compare owners, and check sessions adopted from elsewhere."""

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.names import HOME_VARIABLE
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.names import agent_command, continue_command
from agent_relay.domain.values import Owner

if TYPE_CHECKING:
    from agent_relay.domain.facts import NativeSession

_LONGEST_NAME, _LONGEST_PATH = 255, 4096


class OwnerRelation(StrEnum):
    """Relation of another owner to us."""

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
    variable = {"agent-relay": "XDG_RUNTIME_DIR", "run": HOME_VARIABLE}.get(name)
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


def build_history(leg: str, agent: str, native: "NativeSession") -> tuple[events.Body, ...]:
    """Return the events of an adopted session: a leg that worked, named its session, and is over."""
    return (
        events.LegStarting(leg, agent, 1, native_id=native.native_id),
        events.LegBusy(leg),
        events.LegNamed(leg, native_id=native.native_id, transcript=native.path),
        events.LegEnded(leg, "exited", 0),
        events.SessionEnded(f"adopted from {agent}"),
    )


def is_only_adopted(session: Session) -> bool:
    """Return whether the first leg was adopted and no leg that relay started has lived since.

    Whether the program of that leg still runs is not in the journal: relay did not start it.
    """
    has_past = bool(session.legs) and session.legs[0].how == "exited"
    return has_past and not any(leg.child_pid for leg in session.legs)


def check_program(
    agent: str, cwd: str, pids: Sequence[int], *, successor: str, session: str = "", force: bool
) -> bool:
    """Return whether to end the programs `pids` of the adopted `agent` before `successor` starts.

    Some agents go on by themselves at a limit's reset: such a program beside a successor would be a second
    owner. `session` is the one the conversation was adopted into before, empty for none. Raises
    WrongUseError if they run and the user has not said that they may be ended.
    """
    if not pids:
        return False
    if force:
        return True
    named = ", ".join(map(str, pids))
    words = ("--session", session) if session else ("--from", agent)
    raise WrongUseError(
        f"{agent} still runs in {cwd} (process {named}) and may go on with that session itself",
        hint=f"Quit {agent} first, or let relay end it: {agent_command(successor, *words, '--yes')}",
    )


def check_conversations(
    agent: str, native_ids: Iterable[str], at_work: Iterable[Session], *, successor: str, but: str = ""
) -> None:
    """Raise WrongUseError if one of these native sessions of `agent` is already worked on.

    `at_work` are the sessions that have not ended; `but` is the id of the session to leave out.
    """
    wanted = {native_id for native_id in native_ids if native_id}
    for session in at_work:
        if session.id == but or session.state is State.ENDED:
            continue
        if any(leg.agent == agent and leg.native_id in wanted for leg in session.legs):
            raise WrongUseError(
                f"session {session.id} already works on that session of {agent}",
                hint=f"Hand that one over: {continue_command(successor, session.id)}",
            )


def build_move(session: Session, root: str) -> events.SessionMoved:
    """Return the event that records `root` as the session's new root; its working folder moves along."""
    is_below = session.cwd == session.root or session.cwd.startswith(f"{session.root}/")
    return events.SessionMoved(root, f"{root}{session.cwd[len(session.root) :]}" if is_below else session.cwd)
