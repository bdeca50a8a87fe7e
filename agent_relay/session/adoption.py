"""Sessions that come from elsewhere: started without relay, or moved with their repository.

For a native session relay did not start: its past as journal events, and the checks before somebody else
may continue it. For a moved repository: the event that records the new folders.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events.session import (
    Body,
    LegBusy,
    LegEnded,
    LegNamed,
    LegStarting,
    SessionEnded,
    SessionMoved,
)
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.commands import agent_command, continue_command

if TYPE_CHECKING:
    from agent_relay.domain.facts import NativeSession


def build_history(leg: str, agent: str, native: "NativeSession") -> tuple[Body, ...]:
    """Return the events of an adopted session: a leg that worked, named its session, and is over."""
    return (
        LegStarting(leg, agent, 1, native_id=native.native_id),
        LegBusy(leg),
        LegNamed(leg, native_id=native.native_id, transcript=native.path),
        LegEnded(leg, "exited", 0),
        SessionEnded(f"adopted from {agent}"),
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


def build_move(session: Session, root: str) -> SessionMoved:
    """Return the event that records `root` as the session's new root; its working folder moves along."""
    is_below = session.cwd == session.root or session.cwd.startswith(f"{session.root}/")
    return SessionMoved(root, f"{root}{session.cwd[len(session.root) :]}" if is_below else session.cwd)
