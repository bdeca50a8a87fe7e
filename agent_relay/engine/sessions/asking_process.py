"""Tell whether a person or an agent asks, by the process that does.

What a client says of itself proves nothing: an agent may clear its environment. But whatever it starts has
the holder of its leg among its parents, as a holder adopts every process below it that loses its own.
"""

import os
import pwd
from collections.abc import Mapping
from functools import cache
from threading import Thread

from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.session import Session
from agent_relay.domain.values import Asker
from agent_relay.engine.sessions.handoff_requests import clean_line
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.threads import finish
from agent_relay.system.processes import born, find_parent, has_terminal, read_environ

_UNSEEN = "a process that relay cannot see"
_MOST_PARENTS = 1000
_NAME_S = 1.0
"""Longest wait for a login name, in seconds."""
_names: dict[int, str] = {}


def name_speaker(session: Session, asked: op.HandoffVerdictFields) -> str:
    """Return the agent that judges: the one named, or that of the asking leg; empty for none."""
    leg = asked.env.get(LEG_VARIABLE, "")
    if asked.by or not leg:
        return clean_line("by", asked.by)
    return next((one.agent for one in session.legs if one.id == leg), "an agent of another session")


async def find_asker(sessions: SessionRegistry, peer: op.Peer) -> tuple[str, Asker]:
    """Return the asking agent, empty for a person, and the asker to record.

    A process that cannot be seen is not taken for a person.
    """
    by_pid: dict[int, str] = {}
    by_leg: dict[str, str] = {}
    for host in sessions:
        for leg in host.session.legs:
            by_leg[leg.id] = leg.agent
            live = host.runner.find_live(leg.id)
            if live is not None:
                by_pid |= dict.fromkeys((live.leg.holder_pid, live.leg.child_pid), leg.agent)
    return await finish(_find_asker, peer, by_pid, by_leg)


async def find_tool_user(peer: op.Peer) -> Asker:
    """Return the asker to record for an agent that uses one of its tools."""
    return Asker(await finish(_name_user, peer.uid), "mcp")


def _find_asker(peer: op.Peer, by_pid: Mapping[int, str], by_leg: Mapping[str, str]) -> tuple[str, Asker]:
    agent = _find_agent(peer.pid, by_pid, by_leg)
    person = "terminal" if has_terminal(peer.pid) else "program"
    return agent, Asker(_name_user(peer.uid), "agent" if agent else person)


def _name_user(uid: int) -> str:
    """Return the login name; the number for a user that has none, as in a container, or none yet."""
    _look_up(uid)
    return _names.get(uid, str(uid))


@cache
def _look_up(uid: int) -> None:
    """Look the login name up, once; a name that comes later is used from then on.

    That may ask a directory on the network and never end: a thread of the pool would keep the daemon from
    ending, too.
    """
    asking = Thread(target=_note_name, args=(uid,), name="login name", daemon=True)
    asking.start()
    asking.join(_NAME_S)


def _note_name(uid: int) -> None:
    try:
        _names[uid] = pwd.getpwuid(uid).pw_name
    except KeyError:
        _names[uid] = str(uid)


def _find_agent(pid: int, by_pid: Mapping[int, str], by_leg: Mapping[str, str]) -> str:
    line = list_line(pid)
    if not line:
        return _UNSEEN
    for one in line:
        # A leg's variable outlives its holder.
        agent = by_pid.get(one) or by_leg.get(read_environ(one).get(LEG_VARIABLE, ""))
        if agent:
            return agent
    # Documents, check commands and the server of agents' tools are children of the daemon itself.
    return "an agent that relay runs" if os.getpid() in line[1:] else ""


def list_line(pid: int) -> list[int]:
    """Return the process and its parents up to the first one, nearest first; nothing if it is gone."""
    line: list[int] = []
    while pid > 0 and len(line) < _MOST_PARENTS:
        pid_born = born(pid)
        if pid_born is None:
            break
        line.append(pid)
        pid = find_parent(pid, pid_born)
    return line
