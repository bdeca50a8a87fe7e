"""Adopting a native session relay did not start: its history becomes a new session's first leg."""

from typing import TYPE_CHECKING

from agent_relay.app.ground import Ground
from agent_relay.app.wishes import OpenWish, is_on_its_way
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.event import Body, LegBusy, LegEnded, LegNamed, LegStarting, SessionEnded
from agent_relay.domain.session import Session
from agent_relay.logic.hints import agent_command
from agent_relay.system.adapters import find_program

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


def check_left(ground: Ground, wish: OpenWish, native: "NativeSession") -> None:
    """Raise WrongUseError if the agent's own program still runs; end it if the user said yes.

    Some agents go on by themselves at a limit's reset: its own program beside a successor would be a second
    owner. Reads processes.
    """
    from agent_relay.system.native_programs import end_programs, find_holding, find_running

    loaded = ground.get_adapter(wish.source)
    spec, program = loaded.adapter.transcript, find_program(loaded, wish.environ)
    if spec is not None and spec.held_open:
        found = find_holding(native.path)
    elif program is not None:
        found = find_running(program, wish.cwd, by=native.changed_at, now=ground.clock.now())
    else:
        found = []
    if not found:
        return
    if wish.force:
        end_programs(found)
        return
    pids = ", ".join(str(pid) for pid, _ in found)
    take_over = agent_command(wish.agent, "--from", wish.source, "--yes")
    raise WrongUseError(
        f"{wish.source} still runs in {wish.cwd} (process {pids}) and may go on with that session itself",
        hint=f"Quit {wish.source} first, or let relay end it: {take_over}",
    )


def was_adopted(session: Session, wish: OpenWish) -> bool:
    """Whether `session` is what the wish would make of a native session: another terminal was faster."""
    if not session.legs or not (session.agent == wish.agent or is_on_its_way(session, wish.agent)):
        return False
    first = session.legs[0]
    is_named = not wish.native or _is_named(first.native_id, wish.native)
    return first.agent == wish.source and not first.child_pid and is_named


def _is_named(native_id: str, wanted: str) -> bool:
    return native_id.startswith(wanted) or native_id.endswith(wanted)


def build_history(leg: str, agent: str, native: "NativeSession") -> tuple[Body, ...]:
    """What the journal says of an adopted session: a leg that worked, told its name, and is over."""
    return (
        LegStarting(leg, agent, 1, native_id=native.native_id),
        LegBusy(leg),
        LegNamed(leg, native_id=native.native_id, transcript=native.path),
        LegEnded(leg, "exited", 0),
        SessionEnded(f"adopted from {agent}"),
    )
