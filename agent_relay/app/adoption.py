"""Adopting a native session relay did not start: its history becomes a new session's first leg."""

import asyncio
from typing import TYPE_CHECKING

from agent_relay.app.ground import Ground
from agent_relay.app.native_owners import list_adopted_owners, list_owners
from agent_relay.app.room import Room
from agent_relay.app.wishes import OpenWish, is_on_its_way
from agent_relay.domain.effect import Asked
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.session import Session
from agent_relay.logic.adopting import check_program
from agent_relay.system.native_programs import end_programs

if TYPE_CHECKING:
    from agent_relay.domain.facts import NativeSession

_LOOKED_AT = 500
"""How many of an agent's sessions a name is looked for among, newest first."""


def find_adoptable(ground: Ground, wish: OpenWish) -> "NativeSession":
    """The native session `wish.source` has in `wish.cwd`: the one named, else the newest. Reads disk.

    Raises WrongUseError where it has none, or not exactly one of that name; RelayError where one that might
    be the newest cannot be read.
    """
    # Readers of transcripts take long to load, and few sessions begin so.
    from agent_relay.system.native_sessions import Found, find_native_sessions

    agent, wanted = wish.source, wish.native
    spec = ground.get_adapter(agent).adapter.transcript
    found = Found((), ())
    if spec is not None:
        home = wish.environ.get("HOME", "")
        limit = _LOOKED_AT if wanted else 1
        found = find_native_sessions(spec, cwd=wish.cwd, home=home, environ=wish.environ, limit=limit)
    if found.unread and not found.sessions:
        raise found.unread[0]
    if found.unread and not wanted:
        raise RelayError(
            f"cannot tell {agent}'s newest session in {wish.cwd}: {found.unread[0].sentence}",
            hint=f"Name one, --from {agent}:ID; see: agent-relay sessions --native",
        )
    if not found.sessions:
        raise WrongUseError(
            f"{agent} has no session of its own in {wish.cwd}", hint="Leave out --from to start one"
        )
    exact = [native for native in found.sessions if wanted and native.native_id == wanted]
    named = exact or [native for native in found.sessions if _is_named(native.native_id, wanted)]
    if len(named) != 1:
        what = f"{len(named)} sessions" if named else "no session"
        raise WrongUseError(
            f"{agent} has {what} of its own called {wanted[:40]!r} in {wish.cwd}",
            hint="See: agent-relay sessions --native",
        )
    return named[0]


def check_program_ended(ground: Ground, wish: OpenWish, native: "NativeSession") -> None:
    """Raise WrongUseError if the agent's own program still runs and the user has not said to end it.

    Reads processes; ends none: that waits until a successor is known to be able to start.
    """
    found = list_owners(ground, wish.source, native, cwd=wish.cwd, environ=wish.environ)
    pids = [pid for pid, _ in found]
    check_program(wish.source, wish.cwd, pids, successor=wish.agent, force=wish.force)


async def end_adopted_program(ground: Ground, room: Room, asked: Asked, wish: OpenWish) -> None:
    """End the user's own program that has what the room's session adopted, if the user said yes.

    Raises WrongUseError where they did not, and what asking would raise: nobody is stopped for whom nobody
    could come.
    """
    session = room.session
    found = await asyncio.to_thread(list_adopted_owners, ground, session, wish.environ)
    agent, pids = session.agent, [pid for pid, _ in found]
    is_ended = check_program(
        agent, session.cwd, pids, successor=wish.agent, session=session.id, force=wish.force
    )
    if not is_ended:
        return
    await room.host.check(asked)
    fault = await asyncio.to_thread(ground.holders.find_fault)
    if fault:
        raise RelayError(fault)
    await asyncio.to_thread(end_programs, found)


def was_adopted(session: Session, wish: OpenWish) -> bool:
    """Whether `session` is what the wish would make of a native session: another terminal was faster."""
    if not session.legs or not (session.agent == wish.agent or is_on_its_way(session, wish.agent)):
        return False
    first = session.legs[0]
    is_named = not wish.native or _is_named(first.native_id, wish.native)
    return first.agent == wish.source and not first.child_pid and is_named


def _is_named(native_id: str, wanted: str) -> bool:
    return native_id.startswith(wanted) or native_id.endswith(wanted)
